"""From imports to files: what each import of a file means in this repository.

`Tags.imports` holds what the source says, spelled as `extract_imports` tells; `Tags.packages` what a file declares to be part of: a
Java or Go package, C# or PHP namespaces.

Each family's resolver is a module with one function; the table below chooses. Manifests are read only where a language's own
rules say so (go.mod, Cargo.toml, package.json, tsconfig.json). What does not resolve is not guessed: it is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import c, csharp, ecma, go, java, php, python, ruby, rust, shell
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.values import RepoPath, Tags

__all__ = ["FAMILY", "Resolved", "resolve"]

FAMILY = {"c": "c", "cpp": "c", "javascript": "js", "typescript": "js", "tsx": "js"}
"""Languages that use each other's names; one that is not here is a family of its own."""

_RESOLVERS: dict[str, Callable[[Files, Context], dict[RepoPath, Resolved]]] = {
    "bash": shell.resolve,
    "c": c.resolve,
    "c_sharp": csharp.resolve,
    "go": go.resolve,
    "java": java.resolve,
    "js": ecma.resolve,
    "php": php.resolve,
    "python": python.resolve,
    "ruby": ruby.resolve,
    "rust": rust.resolve,
}


def resolve(tags: Mapping[RepoPath, Tags], context: Context) -> dict[RepoPath, Resolved]:
    """What the imports of every parsed file mean, by path."""
    families: dict[str, dict[RepoPath, Tags]] = {}
    for path in sorted(tags):
        language = tags[path].language
        families.setdefault(FAMILY.get(language, language), {})[path] = tags[path]
    result: dict[RepoPath, Resolved] = {}
    for family, files in families.items():
        result.update(_RESOLVERS[family](files, context) if family in _RESOLVERS else _open(family, files))
    return result


def _open(family: str, files: Files) -> dict[RepoPath, Resolved]:
    """A language whose imports nobody reads: every file may see every other."""
    found = Found(files)
    for path in files:
        found.sees(path, family)
    found.shows(family, *files)
    return found.done()
