"""What kind of file a path is: code of this project, or something that must not look important.

By name only, so that it costs nothing and is the same everywhere; `linguist-vendored` and `linguist-generated` attributes of a root
.gitattributes are honoured because their authors wrote them for this very question.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from carbon_mind.values import RepoPath

Kind = Literal["source", "test", "example", "docs", "vendored", "generated"]

_VENDORED = re.compile(
    r"(^|/)(deps|vendor|vendored|_vendor|third[_-]?party|3rdparty|external|node_modules|bower_components|Pods)/", re.I
)
_GENERATED = re.compile(
    r"(\.pb\.(go|cc|h)|_pb2(_grpc)?\.pyi?|\.g\.dart|\.generated\.[a-z]+|\.designer\.cs|\.min\.(js|css)|[.-]bundle\.js|\.snap"
    r"|(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|uv\.lock|Cargo\.lock|poetry\.lock|go\.sum|composer\.lock)"
    r"|(^|/)(generated|__generated__|dist)/.*)$",
    re.I,
)
_TEST = re.compile(
    r"(^|/)(tests?|testing|__tests__|spec|specs|e2e|testdata|test[_-]?data|test[_-]?utils|fixtures?|__mocks__|benches|benchmarks?|private/dts-test)/"
    r"|(^|/)(test_[^/]*|[^/]*(_test|_spec|\.test|\.spec|-test|-spec|Tests?)|conftest)\.[a-z]+$"
    r"|(^|/)tests?\.[a-z]+$",
    re.I,
)
_EXAMPLE = re.compile(r"(^|/)(examples?|samples?|demos?|tutorials?|playground|packages-private)/", re.I)
_DOCS = re.compile(r"(^|/)(docs?|documentation|website)/", re.I)


@dataclass(frozen=True, slots=True)
class Attributes:
    """Patterns of .gitattributes that say what a path is."""

    vendored: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()


def parse_attributes(text: str) -> Attributes:
    """The linguist attributes of a .gitattributes file that are set (not `-attr`, not `=false`)."""
    vendored, generated = [], []
    for line in text.splitlines()[:2000]:
        pattern, *attributes = line.split() or [""]
        if pattern.startswith(("#", "[")):
            continue
        for attribute in attributes:
            name, _, value = attribute.partition("=")
            if value.lower() in ("", "true") and name == "linguist-vendored":
                vendored.append(pattern)
            elif value.lower() in ("", "true") and name == "linguist-generated":
                generated.append(pattern)
    return Attributes(tuple(vendored), tuple(generated))


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = path.rsplit("/", 1)[-1]
    for pattern in patterns:
        plain = pattern.strip("/")
        if "/" not in plain and fnmatch.fnmatchcase(name, plain):
            return True
        if fnmatch.fnmatchcase(path, plain.replace("**", "*")) or path.startswith(plain.rstrip("*").rstrip("/") + "/"):
            return True
    return False


def kind_of(path: RepoPath, attributes: Attributes = Attributes()) -> Kind:  # noqa: B008 - frozen and empty
    """The kind of `path`; the first rule that fits, from the least to the most like this project's own code."""
    if _VENDORED.search(path) or _matches(path, attributes.vendored):
        return "vendored"
    if _GENERATED.search(path) or _matches(path, attributes.generated):
        return "generated"
    if _TEST.search(path):
        return "test"
    if _EXAMPLE.search(path):
        return "example"
    return "docs" if _DOCS.search(path) else "source"
