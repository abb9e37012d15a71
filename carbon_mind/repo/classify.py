"""What kind of file a path is: code of this project, or something that must not look important.

By names only, so that it costs nothing and is the same everywhere; `linguist-vendored` and `linguist-generated` attributes of a root
.gitattributes are honoured because their authors wrote them for this very question. A name that projects also use for code of
their own (`external`, a `deps` that is not at the root) needs evidence: what others wrote brings its licence along.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from carbon_mind.values import RepoPath

Kind = Literal["source", "test", "example", "docs", "vendored", "generated"]

_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|_vendor|third[_-]?party|3rdparty|node_modules|bower_components|(?-i:Pods))/|\Adeps/",
    re.I,
)
_MAYBE_VENDORED = re.compile(
    r"((?:[^/]+/)*?(?:deps|extern|externals?)/)[^/]+/(?:licen[cs]e|copying|copyright|notice)[^/]*\Z", re.I
)
_GENERATED = re.compile(
    r"(\.pb\.(go|cc|h)|_pb2(_grpc)?\.pyi?|\.g\.dart|\.generated\.[a-z]+|_generated\.go|\.designer\.cs|\.min\.(js|css)|[.-]bundle\.js"
    r"|\.snap|(^|/)zz_generated[^/]*\.go"
    r"|(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|uv\.lock|Cargo\.lock|poetry\.lock|go\.sum|composer\.lock))\Z"
    r"|(^|/)(generated|__generated__|dist)/",
    re.I,
)
_TEST = re.compile(
    r"(^|/)(tests?|__tests__|specs?|e2e|testdata|test[_-]?data|test[_-]?(utils?|helpers?|support)|fixtures?|__mocks__"
    r"|[\w.]+[_-]tests|(integration|system|smoke|functional|acceptance|regression|unit)[_-]test"
    r"|fuzz|fuzzing|fuzzers|bench|benches|benchmarks?|[\w.]+\.benchmarks?|(?-i:[\w.]*[a-z0-9.]Tests?))/"
    r"|^testing/"
    # The camel-case forms count only as such: `contest.py` and `latest.go` end in "test" too.
    r"|(^|/)(test_[^/]*|[^/]*(_tests?|_spec|\.test|\.spec|\.test-d|\.bench|-test|-spec|(?-i:[a-z0-9]Tests?))|(?-i:Test[A-Z])[^/]*(?=\.java\Z)"
    r"|conftest|tests?|([^/]*_)?testutils?)\.[a-z]+\Z",
    re.I,
)
_EXAMPLE = re.compile(r"(^|/)(examples?|samples|demos?|tutorials?|([\w.]+-)?playgrounds?)/", re.I)
_DOCS = re.compile(r"(^|/)(docs?|documentation|website)/", re.I)

MAX_LINES = 2000
_RULED: dict[str, Kind] = {"linguist-vendored": "vendored", "linguist-generated": "generated"}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a .gitattributes file says: (pattern, kind, set or unset), in the file's order; the last that matches decides."""

    rules: tuple[tuple[str, Kind, bool], ...] = ()


def parse_attributes(text: str) -> Attributes:
    """The linguist attributes of a .gitattributes file (gitattributes(5)): set, unset (`-name`), `=true` or `=false`."""
    rules: list[tuple[str, Kind, bool]] = []
    for line in text.removeprefix("\ufeff").splitlines()[:MAX_LINES]:
        pattern, *attributes = line.split() or [""]
        if pattern.startswith(
            ("#", "[attr]", "!", '"')
        ):  # macros, and two forms that git refuses or that need unquoting
            continue
        for attribute in attributes:
            name, _, value = attribute.partition("=")
            unset = name.startswith(("-", "!"))
            if (kind := _RULED.get(name.lstrip("-!"))) is not None:
                rules.append((pattern, kind, not unset and value.lower() in ("", "true")))
    return Attributes(tuple(rules))


@lru_cache(maxsize=MAX_LINES)
def _parts(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """A pattern of .gitattributes as git reads it, part by part; None stands for `**`.

    Without a slash it is about names, else about whole paths from the root. Unlike in .gitignore, a pattern that matches a
    directory says nothing of what is inside (gitattributes(5)).
    """
    parts = ("**/" + pattern if "/" not in pattern else pattern.removeprefix("/")).split("/")
    if parts[-1] == "**" and len(parts) > 1:
        parts.append("*")  # all that is below, at least one part
    return tuple(None if part == "**" and len(parts) > 1 else _part(part) for part in parts)


def _part(glob: str) -> re.Pattern[str]:
    pieces = [""]  # between stars
    i = 0
    while i < len(glob):
        if glob[i] == "*":
            if i == 0 or glob[i - 1] != "*" or len(pieces) == 1:
                pieces.append("")
        elif glob[i] == "?":
            pieces[-1] += "."
        elif glob[i] == "[" and (close := glob.find("]", i + (3 if glob[i + 1 : i + 2] in ("!", "^") else 2))) > 0:
            negated = glob[i + 1] in "!^"
            body = re.sub(r"([\\\[\]&~|^])", r"\\\1", glob[i + 1 + negated : close])
            pieces[-1] += f"[{'^' if negated else ''}{body}]"
            i = close
        else:
            i += glob[i] == "\\" and i + 1 < len(glob)
            pieces[-1] += re.escape(glob[i])
        i += 1
    # The first place where a piece fits is as good as any later one, so nothing needs to be tried twice.
    first, *middle = pieces
    last = f".*{middle.pop()}" if middle else ""
    try:
        return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle) + last, re.S)
    except re.error:
        return re.compile(r"(?!)")  # a class such as `[z-a]` matches nothing


def _fits(parts: tuple[re.Pattern[str] | None, ...], names: list[str]) -> bool:
    """Whether the parts match all names; like the pieces of one part, what follows a `**` is never tried before a later `**`."""
    at, name = 0, 0
    retry: tuple[int, int] | None = None
    while name < len(names):
        if at < len(parts) and (part := parts[at]) is None:
            retry = (at + 1, name)
            at += 1
        elif at < len(parts) and part is not None and part.fullmatch(names[name]):
            at, name = at + 1, name + 1
        elif retry is not None:
            at, name = retry[0], retry[1] + 1
            retry = (at, name)
        else:
            return False
    return at == len(parts)


def _ruled(path: str, attributes: Attributes, kind: Kind) -> bool | None:
    """What the attributes say about `path` being of `kind`; None when they are silent."""
    names = path.split("/")
    for pattern, ruled, value in reversed(attributes.rules):
        if ruled == kind and _fits(_parts(pattern), names):
            return value
    return None


def kinds_of(paths: Iterable[RepoPath], attributes: Attributes = Attributes()) -> dict[RepoPath, Kind]:
    """The kind of every path of a repository."""
    paths = list(paths)
    vendored = tuple(sorted({match.group(1) for path in paths if (match := _MAYBE_VENDORED.match(path))}))
    return {path: kind_of(path, attributes, vendored) for path in paths}


def kind_of(path: RepoPath, attributes: Attributes = Attributes(), vendored_below: Collection[str] = ()) -> Kind:
    """The kind of `path`; the first rule that fits, from the least to the most like this project's own code.

    What the attributes say goes before the name, in both directions. `vendored_below`: directories, each with a `/` at its end.
    """
    vendored = _ruled(path, attributes, "vendored")
    if vendored or (vendored is None and (_VENDORED.search(path) or path.startswith(tuple(vendored_below)))):
        return "vendored"
    generated = _ruled(path, attributes, "generated")
    if generated or (generated is None and _GENERATED.search(path)):
        return "generated"
    if _TEST.search(path):
        return "test"
    if _EXAMPLE.search(path):
        return "example"
    return "docs" if _DOCS.search(path) else "source"
