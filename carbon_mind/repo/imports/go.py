"""Go: an import names a package, that is a directory; its files are one scope. go.mod tells which directory a path means."""

from __future__ import annotations

import re
from collections import defaultdict

from carbon_mind.repo.facts.context import Context, Wants, directory, join
from carbon_mind.repo.facts.text import numbered
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import relative
from carbon_mind.values import RepoPath

_MODULE = re.compile(r'\s*module\s+"?([^\s"/][^\s"]*)')
_REPLACE = re.compile(r"\s*(?:replace\s+)?([^\s/]\S*)(?:\s+v\S+)?\s+=>\s+(\.{1,2}(?:/\S*)?)\s*(?://.*)?\Z")
_WANTS = Wants(names=("go.mod",), limit=400, in_tests=True)


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves Go files."""
    found = Found(files)
    modules = _modules(context)
    packages: dict[str, list[RepoPath]] = defaultdict(list)
    for path in files:
        if not path.endswith("_test.go"):
            packages[directory(path)].append(path)
    for path, tags in files.items():
        here = directory(path)
        if path.endswith("_test.go"):
            # What tests define is there for the other tests of the directory only.
            found.sees(path, here, f"{here}:test")
            found.shows(f"{here}:test", path)
        else:
            found.sees(path, here)
            found.shows(here, path)
        for text in tags.imports:
            target = _directory(text, modules)
            if target is not None and (members := packages.get(target)):
                found.sees(path, target)
                if len(members) == 1:
                    found.exact(path, members[0])
    return found.done()


def _modules(context: Context) -> dict[str, str]:
    """Module path -> directory. Of two modules with one name the shallower is meant; a `replace` by a directory counts."""
    modules: dict[str, str] = {}
    replaced: dict[str, str] = {}
    for manifest in context.choose(_WANTS):
        here = directory(manifest)
        for _, row in numbered(context.text(manifest) or ""):
            if match := _MODULE.match(row):
                modules.setdefault(match.group(1), here)
            elif match := _REPLACE.match(row):
                place = relative(here, match.group(2))
                if place is not None and context.has(join(place, "go.mod")):
                    replaced.setdefault(match.group(1), place)
    return replaced | modules


def _directory(text: str, modules: dict[str, str]) -> str | None:
    """The directory that an import path means: below the module with the longest fitting name."""
    prefix, rest = text, ""
    while prefix:
        if prefix in modules:
            return join(modules[prefix], rest) if rest else modules[prefix]
        prefix, _, last = prefix.rpartition("/")
        rest = f"{last}/{rest}" if rest else last
    return None
