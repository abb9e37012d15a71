"""PHP: classes are found by the namespace and the name they declare, as an autoloader finds them by path."""

from __future__ import annotations

from collections import defaultdict

from carbon_mind.repo.facts.context import Context, directory
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, nearest, relative
from carbon_mind.values import RepoPath


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves PHP files."""
    del context  # what composer.json maps to paths, the files themselves declare
    found = Found(files)
    homes: dict[str, list[RepoPath]] = defaultdict(list)
    spaces: set[str] = set()
    for path, tags in files.items():
        for space in tags.packages or ("",):
            spaces.add(space)
            found.shows(space, path)
            found.sees(path, space)
            for name in sorted({item.name for item in tags.definitions if item.kind not in ("method", "module")}):
                homes[f"{space}\\{name}"].append(path)
    for path, tags in files.items():
        here = directory(path)
        for text in tags.imports:
            if text.endswith(".php") or "/" in text:
                places = (relative(here, text.lstrip("/")), relative("", text.lstrip("/")))
                found.exact(path, first((place for place in places if place), files))
            elif targets := homes.get(text if "\\" in text else f"\\{text}"):
                found.exact(path, nearest(path, targets))
            elif text in spaces:
                found.sees(path, text)
    return found.done()
