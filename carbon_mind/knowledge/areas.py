"""Which directories get a note: every top-level one, and a big one is divided, so that no note has to speak for hundreds of files.

Areas do not overlap. A directory that is divided keeps the files that lie directly in it. An area's identity is made of the names and
the contents of its files and of nothing else: a fresh clone, a rebase, a touch or a `git add` of the same edit leave it as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping

from carbon_mind.values import Area, BlobId, RepoPath

BIG = 80
"""Files from which on a directory is divided."""
DEEPEST = 3
"""Levels of directories that may be divided into."""


def divide(files: Mapping[RepoPath, BlobId], limit: int, foreign: Container[RepoPath] = ()) -> tuple[Area, ...]:
    """The areas of a working tree, the busiest first, at most `limit`.

    Busy is who has most files, those that are `foreign` (vendored, generated) left out; ties go by all files, then by path.
    Files at the top belong to no area: the digest speaks for them.
    """
    found: dict[str, list[RepoPath]] = {}
    tops: dict[str, list[RepoPath]] = {}
    for path in files:
        if "/" in path:
            tops.setdefault(path.split("/", 1)[0], []).append(path)
    for top, paths in tops.items():
        _divide(top, paths, 1, found)
    areas = [
        Area(RepoPath(name), tuple(sorted(paths)), identity((path, files[path]) for path in paths))
        for name, paths in found.items()
    ]

    def order(area: Area) -> tuple[int, int, str]:
        return (-sum(path not in foreign for path in area.files), -len(area.files), area.path)

    return tuple(sorted(areas, key=order)[:limit])


def _divide(name: str, paths: list[RepoPath], level: int, found: dict[str, list[RepoPath]]) -> None:
    inside = len(name) + 1
    below: dict[str, list[RepoPath]] = {}
    own = []
    for path in paths:
        child, slash, _ = path[inside:].partition("/")
        if slash:
            below.setdefault(child, []).append(path)
        else:
            own.append(path)
    if len(paths) <= BIG or level == DEEPEST or not below:
        found[name] = paths
        return
    if own:
        found[name] = own
    for child, theirs in below.items():
        _divide(f"{name}/{child}", theirs, level + 1, found)


def identity(pairs: Iterable[tuple[str, str]]) -> str:
    """Hex SHA-1 over the sorted `path\\0blob` pairs, a newline after each."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path, blob in sorted(pairs):
        digest.update(f"{path}\0{blob}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def nearest(path: str, noted: Iterable[str]) -> str | None:
    """The noted directory that a path lies in, or is, the deepest one; None where there is none above it."""
    known = set(noted)
    parts = path.split("/")
    for length in range(len(parts), 0, -1):
        if (candidate := "/".join(parts[:length])) in known:
            return candidate
    return None
