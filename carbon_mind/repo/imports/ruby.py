"""Ruby: `require` searches the load path; what one file has loaded, every other sees.

So a constant that one file defines is visible everywhere, which is also how Rails loads app/.
"""

from __future__ import annotations

from collections import defaultdict

from carbon_mind.repo.facts.context import Context, directory
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, nearest, relative
from carbon_mind.values import RepoPath

_SCOPE = "ruby"
_LOAD_PATH = frozenset({"lib", "app", "test", "spec"})


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves Ruby files."""
    del context  # a gem whose require_paths are not lib/ is rare
    found = Found(files)
    features: dict[str, list[RepoPath]] = defaultdict(list)
    for path in files:
        parts = path.removesuffix(".rb").split("/")
        for start, part in enumerate(parts[:-1], start=1):
            if part in _LOAD_PATH:
                features["/".join(parts[start:])].append(path)
    found.shows(_SCOPE, *files)
    for path, tags in files.items():
        found.sees(path, _SCOPE)
        for text in tags.imports:
            if text.startswith("."):
                place = relative(directory(path), text)
                found.exact(path, first((place, f"{place}.rb"), files) if place else None)
            else:
                found.exact(path, nearest(path, features.get(text.removesuffix(".rb"), [])))
    return found.done()
