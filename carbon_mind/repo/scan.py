"""Which files there are, and an identity for the bytes of each.

In a git working tree a clean file is never read: its blob id comes from the index. Changed and untracked files are hashed as they
are, without the conversions (line ends, filters) that git would apply when it adds them. A plain directory is walked (links are
not followed) and every file is hashed. The order is that of the path's bytes, so that it is the same in every locale.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Scan:
    """The repository as a list of files. `owned` is false when git tracks a `.carbon` folder: then its content is a stranger's."""

    root: Path
    kind: Literal["git", "plain"]
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...] = ()
    notices: tuple[str, ...] = ()
    owned: bool = True


def git_blob_id(data: bytes, algorithm: str = "sha1") -> BlobId:
    """git's object id of a blob: hash over `blob <length>\\0` and the bytes (gitformat-loose)."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return BlobId(digest.hexdigest())


def find_root(where: Path) -> tuple[Path, str]:
    """The root to read for `where`, and a notice ("" in a git working tree). Raises NotARepository."""
    if not where.is_dir():
        what = "is not a directory" if where.exists() else "does not exist"
        raise NotARepository(f"{where} {what}", hint="give the path of a repository, e.g. `carbon mind .`")
    try:
        return git.toplevel(where), ""
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
        return Path(os.path.realpath(where)), notice


def scan(where: Path) -> Scan:
    """List and identify the files below the root of `where`.

    Raises NotARepository (missing, not a directory, bare) and EmptyRepository (nothing to read).
    """
    root, notice = find_root(where)
    try:
        found = _plain(root, notice) if notice else _tracked(root)
    except git.GitFailed as broken:  # a damaged index, say: the files are still there
        found = _plain(root, f"{broken.reason}: read as a plain directory")
    if not found.files:
        raise EmptyRepository(
            f"{root} holds no files to learn from", hint="add files first; ignored files and links do not count"
        )
    return found


def _tracked(root: Path) -> Scan:
    entries = git.index(root)
    status = git.status(root)
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
        elif entry.stage or entry.path in status.changed:
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
    algorithm = "sha256" if _object_format_is_sha256(root, entries) else "sha1"
    files: list[SourceFile] = []
    for path in sorted(clean.keys() | dirty, key=os.fsencode):
        _identify(root, RepoPath(path), clean.get(path), algorithm, files, skipped)
    return Scan(root, "git", tuple(files), _in_order(skipped), owned=owned)


def _object_format_is_sha256(root: Path, entries: list[git.IndexEntry]) -> bool:
    if entries:
        return len(entries[0].blob) == 64
    return git.run(root, "rev-parse", "--show-object-format").strip() == b"sha256"


def _plain(root: Path, notice: str) -> Scan:
    files: list[SourceFile] = []
    skipped: set[Skipped] = set()
    for path in _walk(root, skipped):
        _identify(root, path, None, "sha1", files, skipped)
    files.sort(key=lambda file: os.fsencode(file.path))
    return Scan(root, "plain", tuple(files), _in_order(skipped), (notice,))


def _in_order(skipped: set[Skipped]) -> tuple[Skipped, ...]:
    return tuple(sorted(skipped, key=lambda item: (os.fsencode(item.path), item.reason)))


def _identify(
    root: Path, path: RepoPath, blob: str | None, algorithm: str, files: list[SourceFile], skipped: set[Skipped]
) -> None:
    """Append the path to `files` with its identity (`blob` when the index vouches for it), or to `skipped` with the reason."""
    try:
        info = os.lstat(os.path.join(root, path))  # noqa: PTH118 - once per file; Path costs more than the call
    except (FileNotFoundError, NotADirectoryError):
        skipped.add(Skipped(path, "not in the working tree"))
        return
    except OSError:
        skipped.add(Skipped(path, "unreadable"))
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
            mine = block.BEGIN in data
            data = block.strip(data).rstrip(b"\r\n")
            if mine and not data:
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
