"""What the resolver of one language family finds, collected file by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from carbon_mind.values import RepoPath, Tags

Files = Mapping[RepoPath, Tags]
"""The parsed files of one family, in the order of their paths."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What one file's imports mean. `files` are named exactly; a scope only makes its members visible.

    A scope stands for many files at once: a Go package, a namespace, all that a header brings along. A member counts only
    where it defines a name that is used. Scopes have names, because a list of pairs would grow with the square of their size.
    """

    files: tuple[RepoPath, ...] = ()  # by path, without the file itself
    sees: tuple[str, ...] = ()  # scopes that the file opens
    shown_by: tuple[str, ...] = ()  # scopes that it is a member of


class Found:
    """Collects; order and repetitions of what is given do not matter."""

    def __init__(self, files: Files) -> None:
        self._exact: dict[RepoPath, set[RepoPath]] = {path: set() for path in files}
        self._sees: dict[RepoPath, set[str]] = {path: set() for path in files}
        self._shown: dict[RepoPath, set[str]] = {path: set() for path in files}

    def exact(self, path: RepoPath, target: RepoPath | None) -> None:
        """An import of `path` names the file `target`."""
        if target is not None and target != path:
            self._exact[path].add(target)

    def sees(self, path: RepoPath, *scopes: str) -> None:
        """`path` opens the scopes."""
        self._sees[path].update(scopes)

    def shows(self, scope: str, *members: RepoPath) -> None:
        """The scope makes `members` visible."""
        for member in members:
            self._shown[member].add(scope)

    def exact_of(self, path: RepoPath) -> Iterable[RepoPath]:
        """The files that imports of `path` name so far, by path."""
        return sorted(self._exact[path])

    def done(self) -> dict[RepoPath, Resolved]:
        """Everything, sorted."""
        return {
            path: Resolved(tuple(sorted(files)), tuple(sorted(self._sees[path])), tuple(sorted(self._shown[path])))
            for path, files in self._exact.items()
        }
