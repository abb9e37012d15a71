"""Which files there are, and an identity for the bytes of each.

In a git working tree a clean file is never read: its blob id comes from the index. Changed and untracked files are hashed as they
are, without the conversions (line ends, filters) that git would apply when it adds them. A plain directory is walked (links are
not followed) and every file is hashed. The order is that of the path's bytes, so that it is the same in every locale.

People edit while we read. Each file's stamp (what `lstat` says: size, times, inode) is taken before its content is identified, and
`moved` compares it after the content was read: where it is the same, what was read is what was identified. Hashing what was read would
not do, because a clean file under a filter or `core.autocrlf` does not have the bytes of its blob. The stamp holds the time of the last
change (ctime), which no program can set back; only a file that changed within the clock's last tick can change again and keep its
stamp, so such a file counts as moved too, and a moment later it no longer does.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from carbon_mind.errors import EmptyRepository, NotARepository
from carbon_mind.repo import git
from carbon_mind.safety import block
from carbon_mind.safety.block import AGENTS
from carbon_mind.safety.files import read_regular
from carbon_mind.safety.secrets import is_sensitive_path
from carbon_mind.values import MIND_FOLDER, BlobId, RepoPath, Skipped, SourceFile

if TYPE_CHECKING:
    import pathspec

MAX_BYTES = 1 << 20
"""Files above 1 MiB are named, never read."""

# Without git there is no ignore list that must be obeyed; these hold no source in any project.
_NEVER = frozenset(
    f".git .hg .svn .jj {MIND_FOLDER} node_modules __pycache__ .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache .gradle .idea "
    ".cache .eggs".split()
)


# File systems keep times by the kernel's clock, which ticks every 1 to 10 ms; some (FAT, HFS+) in whole seconds, or two.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_ATTEMPTS = 3

Stamp = tuple[int, int, int, int, int]
"""(size, mtime, ctime, inode, mode) of a file: the same stamp, the same content."""
NO_STAMP: Stamp = (-1, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read: the root, and why it is read as a plain directory ("" in a git working tree)."""

    root: Path
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """The repository as a list of files. `owned` is false when git tracks a `.carbon` folder: then its content is a stranger's.

    `stamps` and `taken` (nanoseconds since the epoch) are for `moved`.
    """

    root: Path
    kind: Literal["git", "plain"]
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()
    owned: bool = True
    stamps: Mapping[RepoPath, Stamp] = field(default_factory=dict, compare=False, repr=False)
    taken: int = field(default=0, compare=False)


def git_blob_id(data: bytes, algorithm: str = "sha1") -> BlobId:
    """git's object id of a blob: hash over `blob <length>\\0` and the bytes (gitformat-loose)."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return BlobId(digest.hexdigest())


def locate(where: Path) -> Place:
    """The place to read for `where`. Raises NotARepository (missing, not a directory, bare)."""
    if not where.is_dir():
        what = "is not a directory" if where.exists() else "does not exist"
        raise NotARepository(f"{where} {what}", hint="give the path of a repository, e.g. `carbon mind .`")
    try:
        return Place(git.toplevel(where))
    except git.GitFailed as refused:
        if refused.bare:
            raise NotARepository(
                f"{where} is a bare git repository: it has no working tree",
                hint="run carbon in a clone or a worktree of it",
            ) from refused
        if "dubious ownership" in refused.reason:
            notice = "git refuses this directory (owned by somebody else): read as a plain directory"
        elif "not a git repository" in refused.reason:
            notice = "not a git repository: read as a plain directory"
        else:
            notice = f"{refused.reason}: read as a plain directory"
        return Place(Path(os.path.realpath(where)), notice)


def scan(where: Path | Place) -> Scan:
    """List and identify the files of a place, or of the one that holds a path.

    Raises NotARepository (missing, not a directory, bare) and EmptyRepository (nothing to read).
    """
    place = where if isinstance(where, Place) else locate(where)
    try:
        found = _plain(place) if place.notice else _tracked(place.root)
    except git.GitFailed as broken:  # a damaged index, say: the files are still there
        found = _plain(Place(place.root, f"{broken.reason}: read as a plain directory"))
    if not found.files:
        raise EmptyRepository(
            f"{found.root} holds no files to learn from", hint="add files first; ignored files and links do not count"
        )
    return found


def moved(found: Scan, paths: Iterable[RepoPath] | None = None) -> list[RepoPath]:
    """Those of `paths` (all files) whose content may no longer be what `found` says, or may not have been from the start."""
    return [
        path
        for path in (found.stamps if paths is None else paths)
        if (stamp := found.stamps.get(path)) is None
        or _ripe_at(stamp, found.taken)
        or stamp != _stamp_of(found.root, path)
    ]


def ripen(found: Scan) -> bool:
    """Wait until no file of `found` is too young for its stamp to be believed; false when nothing had to be waited for."""
    latest = max((_ripe_at(stamp, found.taken) for stamp in found.stamps.values()), default=0)
    if latest:
        time.sleep(max(0, latest - time.time_ns()) / 1e9)
    return latest > 0


def _ripe_at(stamp: Stamp, taken: int) -> int:
    """When a change would begin to show in the stamp; 0 when it already did at `taken`.

    A time that lies far ahead was not made by a change just now: it was set, or comes from another machine's clock.
    """
    changed = stamp[2] if os.name == "posix" else stamp[1]  # elsewhere "ctime" is the time of creation
    tick = _TICK_NS if changed % 1_000_000_000 else _COARSE_TICK_NS
    return changed + tick if taken - tick < changed <= taken + _COARSE_TICK_NS else 0


def _stamp(info: os.stat_result) -> Stamp:
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)


def _stamp_of(root: Path, path: str) -> Stamp | None:
    try:
        return _stamp(os.lstat(f"{root}/{path}"))
    except (OSError, ValueError):
        return None


def _tracked(root: Path) -> Scan:
    """The list by git. `git status` compares with the index as it is then, so the index must not have changed since it was listed."""
    for _ in range(_ATTEMPTS):
        index_before = git.index_stamp(root)
        entries = git.index(root)
        looks: dict[str, os.stat_result | OSError] = {}
        taken = time.time_ns()
        for entry in entries:
            if entry.path not in looks:
                looks[entry.path] = _look(root, entry.path)
        status = git.status(root)
        if git.index_stamp(root) == index_before:
            break
    found = _sorted_out(root, entries, status, looks, taken)
    # Somebody commits and switches faster than we can list: what the list says of a file may be of another moment.
    return (
        found if git.index_stamp(root) == index_before else replace(found, stamps=dict.fromkeys(found.stamps, NO_STAMP))
    )


def _look(root: Path, path: str) -> os.stat_result | OSError:
    try:
        return os.lstat(f"{root}/{path}")
    except OSError as refused:
        return refused


def _sorted_out(
    root: Path,
    entries: list[git.IndexEntry],
    status: git.Status,
    looks: dict[str, os.stat_result | OSError],
    taken: int,
) -> Scan:
    skipped = {Skipped(RepoPath(path), "unreadable directory") for path in status.unreadable}
    clean: dict[str, str] = {}
    dirty: set[str] = set()
    owned = True
    for entry in entries:
        # On a file system that ignores case, a tracked `.CARBON/` is our folder too.
        if entry.path.lower().startswith(MIND_FOLDER + "/"):
            owned = False
        elif entry.mode == "160000":
            skipped.add(Skipped(RepoPath(entry.path), "submodule"))
        elif entry.path in status.deleted:
            continue
        elif entry.stage or entry.unwatched or entry.path in status.changed:
            dirty.add(entry.path)
        elif entry.mode == "120000":
            skipped.add(Skipped(RepoPath(entry.path), "link"))
        else:
            clean[entry.path] = entry.blob
    for path in status.untracked:
        if path.endswith("/"):
            skipped.add(Skipped(RepoPath(path), "nested repository"))
        elif not path.startswith(MIND_FOLDER + "/"):
            dirty.add(path)
            looks[path] = _look(root, path)
    algorithm = "sha256" if _object_format_is_sha256(root, entries) else "sha1"
    files: list[SourceFile] = []
    for path in sorted(clean.keys() | dirty, key=os.fsencode):
        _identify(root, RepoPath(path), looks[path], clean.get(path), algorithm, files, skipped)
    return _scan(root, "git", files, skipped, looks, taken, owned=owned)


def _scan(
    root: Path,
    kind: Literal["git", "plain"],
    files: list[SourceFile],
    skipped: set[Skipped],
    looks: Mapping[str, os.stat_result | OSError],
    taken: int,
    *,
    notice: str = "",
    owned: bool = True,
) -> Scan:
    stamps = {file.path: _stamp(info) for file in files if isinstance(info := looks[file.path], os.stat_result)}
    in_order = sorted(skipped, key=lambda item: (os.fsencode(item.path), item.reason))
    notices = (notice,) if notice else ()
    return Scan(root, kind, tuple(files), tuple(in_order), notices, owned, stamps, taken)


def _object_format_is_sha256(root: Path, entries: list[git.IndexEntry]) -> bool:
    if entries:
        return len(entries[0].blob) == 64
    return git.run(root, "rev-parse", "--show-object-format").strip() == b"sha256"


def _plain(place: Place) -> Scan:
    files: list[SourceFile] = []
    skipped: set[Skipped] = set()
    looks: dict[str, os.stat_result | OSError] = {}
    taken = time.time_ns()
    for path in _walk(place.root, skipped):
        looks[path] = _look(place.root, path)
        _identify(place.root, path, looks[path], None, "sha1", files, skipped)
    files.sort(key=lambda file: os.fsencode(file.path))
    return _scan(place.root, "plain", files, skipped, looks, taken, notice=place.notice)


def _identify(
    root: Path,
    path: RepoPath,
    info: os.stat_result | OSError,
    blob: str | None,
    algorithm: str,
    files: list[SourceFile],
    skipped: set[Skipped],
) -> None:
    """Append the path to `files` with its identity (`blob` when the index vouches for it), or to `skipped` with the reason."""
    if isinstance(info, OSError):
        gone = isinstance(info, (FileNotFoundError, NotADirectoryError))
        skipped.add(Skipped(path, "not in the working tree" if gone else "unreadable"))
        return
    if not stat.S_ISREG(info.st_mode):
        skipped.add(Skipped(path, "link" if stat.S_ISLNK(info.st_mode) else "not a regular file"))
    elif info.st_size <= MAX_BYTES and (path == AGENTS or (blob is None and not is_sensitive_path(path))):
        try:
            data = read_regular(root, path, MAX_BYTES)
        except OSError:
            skipped.add(Skipped(path, "unreadable"))
            return
        if path == AGENTS:
            # The digest must not depend on its own copy in AGENTS.md, or writing it would make it stale.
            data = block.strip(data).rstrip(b"\r\n")
            if not data:
                return
        files.append(SourceFile(path, git_blob_id(data, algorithm), len(data)))
    else:
        # What is never read needs no identity beyond its name and size.
        files.append(SourceFile(path, BlobId(blob or f"unread-{info.st_size}"), info.st_size))


def _walk(root: Path, skipped: set[Skipped]) -> Iterator[RepoPath]:
    """Regular files below root, obeying the .gitignore files found on the way (so that a source archive reads like its repository)."""
    import pathspec

    specs: dict[str, pathspec.GitIgnoreSpec] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as listing:
                entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        except OSError:
            skipped.add(Skipped(RepoPath(folder or "."), "unreadable directory"))
            continue
        if any(entry.name == ".gitignore" and entry.is_file(follow_symlinks=False) for entry in entries):
            path = RepoPath(f"{folder}/.gitignore" if folder else ".gitignore")
            try:
                text = read_regular(root, path, MAX_BYTES).decode("utf-8", "surrogateescape")
                specs[folder] = pathspec.GitIgnoreSpec.from_lines(text.split("\n"))
            except (OSError, ValueError):
                skipped.add(Skipped(path, "unreadable"))
        for entry in entries:
            relative = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                skipped.add(Skipped(RepoPath(relative), "link"))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name not in _NEVER and not _ignored(specs, relative, "/"):
                    pending.append(relative)
            elif not entry.is_file(follow_symlinks=False):
                skipped.add(Skipped(RepoPath(relative), "not a regular file"))
            elif not _ignored(specs, relative):
                yield RepoPath(relative)


def _ignored(specs: Mapping[str, pathspec.GitIgnoreSpec], relative: str, end: str = "") -> bool:
    """Whether the .gitignore files (by folder) exclude the path; the nearest that says anything decides (gitignore(5))."""
    base = relative
    while base:
        base = base.rpartition("/")[0]
        if base in specs:
            verdict = specs[base].check_file((relative + end)[len(base) + 1 if base else 0 :]).include
            if verdict is not None:
                return verdict
    return False
