"""Reading a file that a stranger arranged, and writing one that must never be seen half done.

A repository is hostile until proven otherwise: `src/readme` may be a link to `~/.ssh/id_rsa`, and a directory on the
way may become one between a check and its use. So nothing is checked by name: the chain is opened part by part, each
relative to the one before and without following links, and the open file says what it is.

Our own files are written beside their target and renamed over it. A reader sees the old bytes or the new ones.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Sequence
from pathlib import Path

from carbon_mind.errors import StorageProblem
from carbon_mind.values import RepoPath

__all__ = [
    "NOT_A_FILE",
    "NotRegular",
    "OutsideRoot",
    "TooLarge",
    "atomic_write",
    "is_unfinished",
    "private_dir",
    "read_regular",
    "remove_orphans",
    "require_space",
]

ORPHAN_AGE_S = 3600.0

# O_NONBLOCK: a FIFO in the tree must not hang the scan before fstat can tell that it is one.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_DIRECTORY = _READ | getattr(os, "O_DIRECTORY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_CREATE |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)

_CHAINED = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")

# What the kernels say for "a link stands there" (Linux and macOS, FreeBSD), "a directory is none", "a socket".
NOT_A_FILE = frozenset({errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP), errno.ENOTDIR, errno.ENXIO})

_TEMP_NAME = re.compile(r".*\.tmp-[0-9a-f]{16}", re.DOTALL)


class NotRegular(OSError):
    """There is something else than a regular file: a link, a directory, a FIFO, a device."""


class TooLarge(OSError):
    """The file has more bytes than the caller is willing to read."""


class OutsideRoot(OSError):
    """The path is empty, absolute, climbs with `..`, or holds a NUL: it does not name a file below the root."""


# --- reading -------------------------------------------------------------------------------------------------


def read_regular(root: Path, path: RepoPath, max_bytes: int) -> bytes:
    """All bytes of the regular file `path` below `root`; no link is followed in any part of `path`.

    `root` itself is trusted and may be reached through links. `path` is text as `os.fsdecode` gives it.

    Raises OSError only: `OutsideRoot`, `NotRegular`, `TooLarge`, or what the system said (missing, no permission).
    """
    parts = path.split("/")
    if "\0" in path or "" in parts or ".." in parts or "." in parts:
        raise OutsideRoot(errno.EINVAL, "not a path below the root", path)
    try:
        fd = _open_chain(root, parts, path) if _CHAINED else _open_checked(root, parts, path)
    except UnicodeEncodeError as error:
        raise OutsideRoot(errno.EILSEQ, "not the name of a file", path) from error
    try:
        return _read_all(fd, path, max_bytes)
    finally:
        os.close(fd)


def _open_chain(root: Path, parts: list[str], path: str) -> int:
    """Open the parts one after the other, each relative to the directory before it."""
    directory: int | None = None
    name = f"{root}/{parts[0]}"
    try:
        for following in parts[1:]:
            opened = os.open(name, _DIRECTORY, dir_fd=directory)
            if directory is not None:
                os.close(directory)
            directory, name = opened, following
        return os.open(name, _READ, dir_fd=directory)
    except OSError as error:
        if error.errno in NOT_A_FILE:
            raise NotRegular(error.errno, "not a regular file", path) from error
        raise OSError(error.errno, error.strerror, path) from error  # the subclass follows from the errno
    finally:
        if directory is not None:
            os.close(directory)


def _open_checked(root: Path, parts: list[str], path: str) -> int:
    """For systems without `dir_fd`: look at each part, open, and compare what was opened with what was looked at.

    Somebody who changes a directory into a junction in between is not caught; the file itself being swapped is.
    """
    current = os.fspath(root)
    seen: os.stat_result | None = None
    for part in parts:
        if os.sep in part or os.path.splitdrive(part)[0] or (os.name == "nt" and ":" in part):
            raise OutsideRoot(errno.EINVAL, "not a path below the root", path)
        current = os.path.join(current, part)  # noqa: PTH118 - called thousands of times
        seen = os.lstat(current)
        attributes = getattr(seen, "st_file_attributes", 0)
        if stat.S_ISLNK(seen.st_mode) or attributes & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0):
            raise NotRegular(errno.ELOOP, "not a regular file", path)
    if seen is None or not stat.S_ISREG(seen.st_mode):
        raise NotRegular(errno.EINVAL, "not a regular file", path)
    fd = os.open(current, _READ)
    opened = os.fstat(fd)
    if (opened.st_dev, opened.st_ino) != (seen.st_dev, seen.st_ino):
        os.close(fd)
        raise NotRegular(errno.ELOOP, "changed while it was opened", path)
    return fd


def _read_all(fd: int, path: str, max_bytes: int) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(errno.EINVAL, "not a regular file", path)
    size = status.st_size
    if size > max_bytes:
        raise TooLarge(errno.EFBIG, f"more than {max_bytes} bytes", path)
    data = os.read(fd, size + 1)  # one more than there should be: `size` bytes back means that this was the end
    if len(data) == size:
        return data
    pieces = [data]  # the file grows, shrinks, or lies about its size as those in /proc do
    total = len(data)
    while data and total <= max_bytes:
        data = os.read(fd, min(1 << 20, max_bytes + 1 - total))
        pieces.append(data)
        total += len(data)
    if total > max_bytes:
        raise TooLarge(errno.EFBIG, f"more than {max_bytes} bytes", path)
    return b"".join(pieces)


# --- writing -------------------------------------------------------------------------------------------------


def atomic_write(path: Path, data: bytes | Sequence[bytes | memoryview], *, mode: int | None = 0o644) -> None:
    """Put `data` into `path` so that every reader, also after a power cut, finds the old file or the new one.

    A sequence of parts is written one after the other, so that hundreds of megabytes need not be joined first.
    `mode` are the permissions, less the user's umask; None keeps those of the file that is there (0644 when none is).
    The folder must exist. Raises StorageProblem when the target is a link or no regular file, or the system refuses.
    """
    try:
        kept = _mode_of_target(path)
        temporary = path.with_name(f"{path.name[:60]}.tmp-{os.urandom(8).hex()}")
        fd = os.open(temporary, _CREATE, 0o644 if mode is None else mode)
        try:
            try:
                if mode is None and kept is not None and hasattr(os, "fchmod"):
                    os.fchmod(fd, kept)
                for part in (data,) if isinstance(data, bytes) else data:
                    _write_all(fd, part)
                os.fsync(fd)
            finally:
                os.close(fd)  # before the rename: Windows does not rename an open file
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise _storage_problem("write", path, error) from error
    _sync_directory(path.parent)


def _mode_of_target(path: Path) -> int | None:
    """Permission bits of the regular file at `path`, None when nothing is there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise StorageProblem(
            f"Refusing to write {path}: it is {kind}.",
            hint="Move it away or replace it by a regular file, then run the command again.",
        )
    return status.st_mode & 0o777


def _write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_directory(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a directory be opened; the data is safe either way."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def private_dir(path: Path) -> Path:
    """`path` as a directory that only its owner can enter (0700); it and its parents are created where missing.

    Raises StorageProblem for a link, something that is no directory, or (POSIX) a directory of another user.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if _CHAINED:
            _keep_private(path)
        elif not stat.S_ISDIR(path.lstat().st_mode) or _is_junction(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    except OSError as error:
        raise _storage_problem("use", path, error) from error
    return path


def _keep_private(path: Path) -> None:
    """Checks through an open directory, so that what is checked is what is changed."""
    fd = os.open(path, _DIRECTORY)
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise StorageProblem(
                f"Refusing to use {path}: it belongs to another user.",
                hint="Remove it, or point carbon to another folder.",
            )
        if status.st_mode & 0o777 != 0o700:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


def _is_junction(path: Path) -> bool:
    return bool(getattr(path.lstat(), "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0))


def is_unfinished(name: str) -> bool:
    """Whether a file of this name is one that `atomic_write` has not renamed yet."""
    return _TEMP_NAME.fullmatch(name) is not None


def remove_orphans(folder: Path, *, age_s: float = ORPHAN_AGE_S) -> None:
    """Remove what a killed `atomic_write` left in `folder`: our temporary names only, ours, older than `age_s`.

    0 is for who holds a lock without which nobody writes there. Never raises for a file or a folder that cannot be read or
    removed: this is housekeeping.
    """
    oldest = time.time() - age_s
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_unfinished(entry.name):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
                    if stat.S_ISREG(status.st_mode) and ours and status.st_mtime <= oldest:
                        Path(entry.path).unlink()


def require_space(folder: Path, needed: int) -> None:
    """Raise StorageProblem unless `needed` more bytes fit on the disk of `folder`."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageProblem(
            f"Not enough space in {folder}: {_megabytes(needed)} are needed, {_megabytes(free)} are free.",
            hint="Free some space on this disk, or choose another folder (cache_dir in the settings).",
        )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


_HINTS = {
    errno.ENOSPC: "Free some space on this disk, then run the command again.",
    errno.EDQUOT: "Free some of your disk quota, then run the command again.",
    errno.EROFS: "The file system is read-only: remount it writable, or choose another folder.",
    errno.EACCES: "Give your user write permission there, or choose another folder.",
    errno.EPERM: "Give your user write permission there, or choose another folder.",
    errno.ENOENT: "Create the folder first.",
    errno.ENOTDIR: "Something on the way is not a directory (or is a link): move it away, then run the command again.",
    errno.ELOOP: "It is a link: replace it by a real folder, then run the command again.",
}


def _storage_problem(verb: str, path: Path, error: OSError) -> StorageProblem:
    reason = error.strerror or str(error)
    hint = _HINTS.get(error.errno or 0, "Check the folder and its disk, then run the command again.")
    return StorageProblem(f"Cannot {verb} {path}: {reason}.", hint=hint)
