"""What an ecosystem may ask about the repository: which files there are, and the text of a few of them.

`Wants` says which manifests an ecosystem reads. Vendored trees, fixtures and examples never count: their commands are
not this project's. Test directories count only where the ecosystem says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from carbon_mind.repo.facts.text import MAX_TEXT, parse_toml, plain_path, words
from carbon_mind.values import RepoPath

NOT_OURS = words(
    "deps vendor vendored third_party third-party thirdparty node_modules bower_components testdata test-data "
    "test_data fixtures __fixtures__ fixture example examples sample samples template templates dist .venv venv "
    "site-packages __pycache__ .yarn"
)
TESTS = words("test tests __tests__ spec specs e2e")


@dataclass(frozen=True, slots=True)
class Wants:
    """Which files an ecosystem reads: by base name or suffix, at most `limit`, the shallowest first.

    `under`: only directly in one of these directories, which then count as root. `first`: a file whose name holds one
    of these comes before its neighbours. `tree`: called once, with no file at all.
    """

    names: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    limit: int = 4
    in_tests: bool = False
    tree: bool = False


class Context:
    """The repository's file list and a bounded, memoised reader. Order of the given paths does not matter."""

    def __init__(self, paths: Sequence[RepoPath], read: Callable[[RepoPath], str | None]) -> None:
        self.paths: tuple[RepoPath, ...] = tuple(sorted(set(paths)))
        self._known = frozenset(self.paths)
        self._read = read
        self._texts: dict[RepoPath, str | None] = {}
        self._toml: dict[RepoPath, dict[str, object]] = {}
        self._by_name: dict[str, list[RepoPath]] = {}
        self._by_suffix: dict[str, list[RepoPath]] = {}
        for path in self.paths:
            name = path.rpartition("/")[2]
            self._by_name.setdefault(name, []).append(path)
            if "." in name:
                self._by_suffix.setdefault("." + name.rpartition(".")[2], []).append(path)

    def has(self, path: str) -> bool:
        """Whether the file is in the repository."""
        return path in self._known

    def text(self, path: str) -> str | None:
        """The file's text; None when it is absent, unreadable, sensitive, or longer than a manifest is."""
        known = RepoPath(path)
        if known not in self._known:
            return None
        if known not in self._texts:
            text = self._read(known)
            self._texts[known] = text if text is not None and len(text) <= MAX_TEXT else None
        return self._texts[known]

    def toml(self, path: str) -> dict[str, object]:
        """The parsed TOML file; {} when there is none or it is malformed."""
        known = RepoPath(path)
        if known not in self._toml:
            self._toml[known] = parse_toml(self.text(path) or "")
        return self._toml[known]

    def below(self, directory: str) -> Iterator[RepoPath]:
        """Files below a directory, in order."""
        prefix = f"{directory}/" if directory else ""
        for index in range(bisect_left(self.paths, prefix), len(self.paths)):
            if not self.paths[index].startswith(prefix):
                return
            yield self.paths[index]

    def nearest(self, path: str, *names: str) -> RepoPath | None:
        """The first of `names` in the file's directory, else in the directories above it."""
        parent = directory(path)
        while True:
            for name in names:
                if self.has(join(parent, name)):
                    return RepoPath(join(parent, name))
            if not parent:
                return None
            parent = directory(parent)

    def named(self, name: str) -> Sequence[RepoPath]:
        """Every file of this name, in order."""
        return self._by_name.get(name, ())

    def has_suffix(self, *suffixes: str) -> bool:
        """Whether a file of ours ends so."""
        return any(ours(path) for suffix in suffixes for path in self._by_suffix.get(suffix, ()))

    def choose(self, wants: Wants) -> list[RepoPath]:
        """The files that an ecosystem reads, root first, then by depth and name."""
        found = [path for name in wants.names for path in self._by_name.get(name, ())]
        found += [path for suffix in wants.suffixes for path in self._by_suffix.get(suffix, ())]
        if wants.under:
            found = [path for path in found if directory(path) in wants.under]
        chosen = [path for path in found if ours(path, tests=wants.in_tests) and plain_path(path)]
        rank = {name: place for place, name in enumerate(wants.names)}

        def order(path: RepoPath) -> tuple[int, int, bool, RepoPath]:
            name = path.rpartition("/")[2]
            return path.count("/"), rank.get(name, len(rank)), not any(part in name for part in wants.first), path

        chosen.sort(key=order)
        return chosen[: wants.limit]


def ours(path: str, *, tests: bool = True) -> bool:
    """Whether no directory of the path is vendored, a fixture or an example (or, on request, a test directory)."""
    parts = path.split("/")[:-1]
    return not any(part in NOT_OURS or (not tests and part in TESTS) for part in parts)


def directory(path: str) -> str:
    """The directory of a file, "" for the root."""
    return path.rpartition("/")[0]


def join(parent: str, name: str) -> str:
    """A path below a directory."""
    return f"{parent}/{name}" if parent else name


def resolve(parent: str, relative: object) -> str:
    """A relative path of a manifest as a repository path; "" when it leaves the repository or is none."""
    if not isinstance(relative, str) or relative.startswith("/"):
        return ""
    parts = parent.split("/") if parent else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)
