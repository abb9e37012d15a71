"""C#: `using` opens a namespace, wherever its files lie; a namespace sees those around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from carbon_mind.repo.facts.context import Context, directory
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import nearest
from carbon_mind.values import RepoPath

_TYPES = frozenset({"class", "interface", "enum", "struct", "type"})


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves C# files."""
    found = Found(files)
    namespaces: set[str] = set()
    types: dict[str, list[RepoPath]] = defaultdict(list)
    projects = _projects(context)
    # What a file of this name opens, it opens for its whole project.
    shared = {
        _project(path, projects): tags.imports
        for path, tags in files.items()
        if path.rpartition("/")[2].lower() in ("globalusings.cs", "usings.cs")
    }
    for path, tags in files.items():
        spaces = tags.packages or ("",)
        if not set(spaces).isdisjoint(tags.imports):
            spaces = (*spaces, "")  # who opens a namespace of its own has code outside of it
        namespaces.update(spaces)
        for space in spaces:
            found.shows(space, path)
            for name in sorted({item.name for item in tags.definitions if item.kind in _TYPES}):
                types[f"{space}.{name}"].append(path)
    for path, tags in files.items():
        around = [outer for space in tags.packages for outer in _outwards(space)]
        found.sees(path, "", *around)
        for text in (*tags.imports, *shared.get(_project(path, projects), ())):
            name = next((full for full in (text, *(f"{outer}.{text}" for outer in around)) if full in namespaces), "")
            if name:
                found.sees(path, name)
            elif homes := types.get(text):  # `using static A.B.C`, `using C = A.B.C`
                found.exact(path, nearest(path, homes))
    return found.done()


def _outwards(space: str) -> Iterator[str]:
    while space:
        yield space
        space = space.rpartition(".")[0]


def _projects(context: Context) -> frozenset[str]:
    """Directories with a project file."""
    return frozenset(directory(path) for path in context.paths if path.endswith(".csproj"))


def _project(path: str, projects: frozenset[str]) -> str:
    """The nearest project's directory at or above the file; the file's own when there is none."""
    here = directory(path)
    place = here
    while place not in projects:
        if not place:
            return here
        place = directory(place)
    return place
