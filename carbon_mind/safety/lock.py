"""One process at a time, held by the operating system so that a killed process never leaves anything locked."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["locked"]

_POLL_S = 0.05
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

# File systems without locks (some network mounts): go on unprotected, every result is verified by checksum anyway.
_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})

if sys.platform == "win32":
    import msvcrt

    def _try(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

else:
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS_HERE:
                return True
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK):
                return False
            raise
        return True


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None, *, timeout_s: float = math.inf) -> Iterator[None]:
    """Hold the lock file `path` (0600); `on_wait` is called once when another process holds it.

    Raises TimeoutError after `timeout_s`, and any other OSError.
    """
    waited = False
    last = time.monotonic() + timeout_s
    while (fd := _acquire(path)) is None:
        if not waited and on_wait is not None:
            on_wait()
            waited = True
        if time.monotonic() > last:
            raise TimeoutError(errno.ETIMEDOUT, f"another process has held it for {timeout_s:.0f} s", os.fspath(path))
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(fd)
        with contextlib.suppress(OSError):  # Windows refuses while another process waits: then that one removes it
            path.unlink()
        if sys.platform != "win32":
            os.close(fd)


def _acquire(path: Path) -> int | None:
    fd = os.open(path, _OPEN, 0o600)
    try:
        if _try(fd) and _is_same(fd, path):
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _is_same(fd: int, path: Path) -> bool:
    """False when the holder before us removed the name while we waited: then our lock protects nothing."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
