"""Java: a package may lie in many directories (modules, source roots), so files are found by what they declare."""

from __future__ import annotations

from collections import defaultdict

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import nearest
from carbon_mind.values import RepoPath

_TYPES = frozenset({"class", "interface", "enum", "struct", "type"})


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves Java files."""
    del context  # no manifest is needed
    found = Found(files)
    types: dict[str, list[RepoPath]] = defaultdict(list)  # a public type has the name of its file
    others: dict[str, list[RepoPath]] = defaultdict(list)
    for path, tags in files.items():
        package = tags.packages[0] if tags.packages else ""
        stem = path.rpartition("/")[2].partition(".")[0]
        types[f"{package}.{stem}"].append(path)
        for name in sorted({item.name for item in tags.definitions if item.kind in _TYPES} - {stem}):
            others[f"{package}.{name}"].append(path)
        found.shows(package, path)
        found.sees(path, package)
    for path, tags in files.items():
        for text in tags.imports:
            if text.endswith(".*"):
                found.sees(path, text[:-2])
            name = text.removesuffix(".*")
            # A nested type, a static member: the innermost name that is a type of its own decides.
            while "." in name:
                if homes := types.get(name) or others.get(name):
                    found.exact(path, nearest(path, homes))
                    break
                name = name.rpartition(".")[0]
    return found.done()
