"""What not to edit because something else writes it, and who reviews: one line for each, however long the file is."""

from __future__ import annotations

import re

from carbon_mind.repo.facts import untouched, vendored
from carbon_mind.repo.facts.context import Context, Wants, join, ours, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import listing, numbered, plain_path, quote, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=(".gitattributes", "CODEOWNERS", "Makefile", "GNUmakefile", "makefile"), limit=10)

_PATTERN = re.compile(r"[\w./*@+?\[\]-]{1,60}\Z", re.ASCII)
_OWNERS_AT = frozenset({"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"})
_KINDS = {"linguist-generated": "generated", "linguist-vendored": "vendored"}
# Such directories are called vendored to keep them out of language statistics; they are the project's own.
_COUNTED = words("doc docs documentation website site test tests spec specs script scripts example examples samples")
_RULE = re.compile(r"([^\s:=#][^:=#]{0,200}?)\s*::?(?![:=])")
_VARIABLE = re.compile(r"\s*([A-Za-z_]\w*)\s*[:?]?=\s*([\w.-]{1,60})\s*\Z")
_REFERENCE = re.compile(r"\$[({](\w+)[)}]")
_SCRIPT = re.compile(r"[\w./-]{1,100}\.(?:py|sh|bash|pl|rb|js|mjs|cjs|ts|tcl|awk|lua|php)(?![\w./-])")
MAX_OWNED = 4
# `sed ... $@ > $@.tmp`; not `> $@`, not `-o $@`, and not what only moves, copies or removes it.
_READS_TARGET = re.compile(
    r"^\t(?!.*\b(?:mv|cp|rm|touch|mkdir|install|chmod|echo)\b).*(?<![>=])(?<!> )(?<!-o )(?<!-o)\$@(?![.\w])"
)
MAX_GENERATED = 2
_ROOM = 110


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one such file."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name == ".gitattributes":
        _attributes(found, text, context)
    elif name == "CODEOWNERS":
        if path in _OWNERS_AT:
            _owners(found, text)
    else:
        _made(found, text, context)
    return found.done()


def _attributes(found: Found, text: str, context: Context) -> None:
    kinds: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS.values()}
    for number, row in numbered(text):
        pattern, *attributes = row.split() or [""]
        if not _PATTERN.match(pattern):
            continue
        shown = join(found.directory, pattern.lstrip("/"))
        for attribute in attributes:
            name, _, value = attribute.lstrip("-!").partition("=")
            if name in _KINDS:
                if attribute[0] in "-!" or value == "false":
                    kinds[_KINDS[name]].pop(shown, None)  # as in git, the last word counts
                else:
                    kinds[_KINDS[name]].setdefault(shown, number)
    if kinds["vendored"]:
        known = tuple(f"{place}/" for place in vendored.directories(context))
        kinds["vendored"] = {
            name: line
            for name, line in kinds["vendored"].items()
            if not name.startswith(known) and not _COUNTED & set(name.split("/"))
        }
    for kind, patterns in kinds.items():
        if patterns:
            found.constraint(untouched.all_of(kind, list(patterns), _ROOM), min(patterns.values()))


def _owners(found: Found, text: str) -> None:
    """Patterns only: a name of an owner tells an agent nothing."""
    rules = {
        parts[0]: (number, bool(parts[1:]) and not parts[1].startswith("#"))
        for number, row in numbered(text)
        if (parts := row.split()) and parts[0][0] not in "#[^"
    }
    if not rules:
        return
    every = ", * has an owner" if rules.get("*", (0, False))[1] else ""
    owned = [name for name, (_, owner) in rules.items() if owner and name != "*" and _PATTERN.match(name)][:MAX_OWNED]
    shown = f": {listing(owned, _ROOM)}" if owned else ""
    count = f"{len(rules)} rule{'s' if len(rules) > 1 else ''}"
    found.constraint(f"code owners review changes ({count}{every}){shown}", min(line for line, _ in rules.values()))


def _made(found: Found, text: str, context: Context) -> None:
    """Committed files which a rule of this Makefile writes by running a script of the repository."""
    here = found.directory
    variables: dict[str, list[str]] = {}  # all values: which branch of an `ifdef` holds is not known, the tree is
    targets: list[str] = []
    line = 0
    done: dict[str, int] = {}
    kept: set[str] = set()
    for number, row in numbered(text):
        if match := _VARIABLE.match(row):  # also behind a tab: such a row alone makes no sense in a recipe
            variables.setdefault(match.group(1), []).append(match.group(2))
        elif row.startswith("\t"):
            scripts = [resolve(here, name) for name in _SCRIPT.findall(row)]
            scripts = [script for script in scripts if context.has(script)]
            if _READS_TARGET.search(row):  # a part of the file is kept as it is: somebody wrote it
                kept.update(targets)
            for name in targets if scripts else ():
                made = resolve(here, name)
                if made not in scripts and context.has(made) and ours(made) and plain_path(made):
                    done.setdefault(name, line)
        elif row.strip() and not row[0].isspace() and (match := _RULE.match(row)):
            targets, line = [name for name in _expanded(match.group(1), variables) if word(name)], number
    make = f"make -C {quote(here)}" if here else "make"
    for name, number in [item for item in done.items() if item[0] not in kept][:MAX_GENERATED]:
        found.constraint(untouched.made(join(here, name), f"{make} {name}"), number)


def _expanded(targets: str, variables: dict[str, list[str]]) -> list[str]:
    """The targets of a rule; one that is named with a variable stands once for each of its first values."""
    names: list[str] = []
    for name in targets.split()[:20]:
        reference = _REFERENCE.search(name)
        values = variables.get(reference.group(1), [])[:4] if reference else []
        names += [_REFERENCE.sub(value, name, count=1) for value in values] if reference else [name]
    return names
