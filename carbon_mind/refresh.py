"""Refreshes that nobody waits for: after a git command, or on a change of files. One at a time, and none is lost.

A rebase fires a hook for every commit. So who wants a refresh leaves a mark and then tries the lock; who gets it takes the mark away
before it looks at the files, and looks for a new mark after it has let go. A lock of the system is freed with its process, also by
`kill -9`. The lock, the mark and the log lie beside the mind.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from carbon_mind import pipeline
from carbon_mind.digest.folder import Changes
from carbon_mind.errors import CarbonError
from carbon_mind.pipeline import Mind
from carbon_mind.safety.files import atomic_write, read_regular
from carbon_mind.settings import Settings
from carbon_mind.values import RepoPath

LOG = "refresh.log"
LOG_BYTES = 64 << 10
_LOCK = "refresh.lock"
_AGAIN = "refresh.again"
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def describe(mind: Mind) -> str:
    """What came of a build, in one line; the last words tell whether a session's prefix is another now."""
    changed = mind.changes
    if not mind.built or changed is None or changed == Changes():
        what = f"{mind.files:,} files"
    else:
        parts = [f"{changed.files:,} file{'' if changed.files == 1 else 's'}"] if changed.files else []
        parts += [name for name, is_so in (("settings", changed.settings), ("program", changed.program)) if is_so]
        what = f"{' and '.join(parts)} changed"
    prefix = {None: "the prefix is new", True: "the prefix changed", False: "the prefix is the same"}
    state = "built" if mind.built else "current"
    return f"mind: {state} ({what}, {mind.parsed:,} parsed, {mind.seconds:.2f} s); {prefix[mind.prefix_changed]}"


# --- one at a time ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def alone(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock of the mind in `folder`; gives False when another process has it and `wait` is false.

    Where there can be no lock (a read-only folder, a file system without locks) everybody goes ahead: two builds at once are safe,
    only wasteful.
    """
    fd = _open_regular(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        yield fd is None or _lock(fd, wait=wait)
    finally:
        if fd is not None:
            os.close(fd)


def single_flight(folder: Path, build: Callable[[], None]) -> None:
    """Run `build`, or leave it to the process that is at it: that one builds again when it has ended."""
    again = folder / _AGAIN
    with contextlib.suppress(CarbonError):
        atomic_write(again, b"")
    while True:
        with alone(folder, wait=False) as mine:
            if not mine:
                return
            stays = not _take_away(again)
            build()
        if stays or not again.exists():
            return


def _take_away(mark: Path) -> bool:
    try:
        mark.unlink(missing_ok=True)
    except OSError:  # a folder of that name, say: it must not keep us going round
        return False
    return True


def _lock(fd: int, *, wait: bool) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return sys.platform != "win32"  # there, a lock that is held is a PermissionError
    return True


def _open_regular(path: Path, flags: int) -> int | None:
    """A file of ours; a link or a FIFO that came with the repository under its name is not opened."""
    try:
        fd = os.open(path, flags | _OPEN, 0o644)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return fd


# --- in the background -----------------------------------------------------------------------------------------


class _Log:
    """The reporter of a refresh that nobody sees."""

    def __init__(self, folder: Path, cause: str) -> None:
        self._path = folder / LOG
        self._cause = cause

    def notice(self, text: str) -> None:
        """A line of the log, with the time; the log keeps its newest half when it has grown too long."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._cause}: {text}\n".encode("utf-8", "replace")
        with contextlib.suppress(OSError, CarbonError):
            if self._path.lstat().st_size > LOG_BYTES:
                kept = read_regular(self._path.parent, RepoPath(LOG), 1 << 30)[-LOG_BYTES // 2 :]
                atomic_write(self._path, kept[kept.find(b"\n") + 1 :])
        fd = _open_regular(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if fd is not None:
            with contextlib.suppress(OSError):
                os.write(fd, line[: LOG_BYTES // 2])
            os.close(fd)

    def progress(self, label: str) -> Callable[[int, int], None]:
        """Nobody watches."""
        return lambda _done, _total: None


def run(cause: str, changed: Callable[[Settings], str] = lambda _settings: "") -> None:
    """What a hook starts: refresh the mind of the current directory, apart from the terminal and behind everybody else.

    `changed` is called when the text of the prefix is another than before; what it gives goes into the log. Ends without a word
    whatever happens: git has long gone on. What there is to say is in the log.
    """
    from carbon_mind import settings
    from carbon_mind.repo.scan import locate

    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()  # the terminal may be closed meanwhile
        with contextlib.suppress(OSError):
            os.nice(10)
    try:
        place = locate(Path())
        found = settings.load(place.root, {})
        folder = pipeline.folder_of(place, found)
    except CarbonError:
        return
    log = _Log(folder.path, cause)

    def build() -> None:
        try:
            mind = pipeline.build(place, found, log)
            log.notice(describe(mind))
            if mind.built and mind.prefix_changed is not False and (told := changed(found)):
                log.notice(told)
        except CarbonError as problem:
            log.notice(f"error: {problem.message}")
        except Exception as unexpected:
            log.notice(f"unexpected: {unexpected!r}")
            raise

    single_flight(folder.path, build)
