"""Refreshes while somebody works: the system says that something changed, and a scan says whether that matters.

An event is only a reason to look: which files count, which are ignored, and what a switch of branches did, git tells. So a lost or a
needless event is no error. The first look comes after the watch stands, so that nothing falls between the two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from carbon_mind import pipeline
from carbon_mind.errors import EmptyRepository
from carbon_mind.refresh import alone
from carbon_mind.repo import git
from carbon_mind.repo.scan import Place
from carbon_mind.values import MIND_FOLDER

if TYPE_CHECKING:
    from carbon_mind.pipeline import Mind, Reporter
    from carbon_mind.settings import Settings

POLL_S = 2.0
_LONGEST = 10  # debounces: a build that writes files without a pause is looked at that often all the same
_OF_GIT = (
    "HEAD",
    "index",
)  # what a switch, a commit or a merge writes, whether or not files of the working tree change


def watch(
    place: Place, settings: Settings, report: Reporter, *, debounce: float, poll: bool, ready: Callable[[], None]
) -> Iterator[Mind]:
    """Every mind that is built from now on, the current one first; ends with KeyboardInterrupt.

    A change counts once nothing has changed for `debounce` seconds. `ready` is called when the watch stands. Raises CarbonError.
    """
    first = True
    for _ in _reasons(place, report, debounce=debounce, poll=poll, ready=ready):
        try:
            folder = pipeline.folder_of(place, settings)
            with alone(folder.path, wait=True):
                mind = pipeline.build(place, settings, report)
        except EmptyRepository:
            if first:
                raise
            continue  # between two branches, say
        if mind.built or first:
            yield mind
        first = False


def _reasons(
    place: Place, report: Reporter, *, debounce: float, poll: bool, ready: Callable[[], None]
) -> Iterator[None]:
    """One item for every time that somebody should look."""
    if not poll:
        try:
            from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError
        except ImportError:
            report.notice(f"watchfiles is not installed: looking every {POLL_S:.0f} seconds instead")
            poll = True
    if not poll:
        own = place.root / ".git"
        folder = git.git_folder(place.root)
        paths = [place.root] if folder == own else [place.root, folder]
        try:
            notify = RustNotify([str(path) for path in paths if path.exists()], False, False, 0, True, True)
        except (OSError, WatchfilesRustInternalError) as refused:
            report.notice(f"the system refuses to watch ({_why(refused)}): looking every {POLL_S:.0f} seconds instead")
        else:
            with notify:
                ready()
                yield
                step = max(1, int(debounce * 1000))
                while True:
                    found = notify.watch(step * _LONGEST, step, 0, None)
                    if isinstance(found, str):  # a signal
                        raise KeyboardInterrupt
                    if any(_matters(place.root, folder, path) for _, path in found):
                        yield
    ready()
    while True:
        yield
        time.sleep(max(debounce, POLL_S))


def _why(refused: Exception) -> str:
    return getattr(refused, "strerror", None) or str(refused).splitlines()[0]


def _matters(root: Path, git_folder: Path, path: str) -> bool:
    """Whether a change of `path` is worth a look."""
    base = f"{git_folder}{os.sep}"
    if path.startswith(base):
        return path[len(base) :] in _OF_GIT
    first = os.path.relpath(path, root).split(os.sep, 1)[0]
    return first not in (".git", MIND_FOLDER)
