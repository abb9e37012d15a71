"""Many files to tags: in this process, and from some size on in others beside it.

py-tree-sitter never releases the GIL, so a second core needs a second process. The tags come in the order of the files, whoever made
them. A query takes 10 to 200 ms to compile, in each process anew: files of one language should stand together.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING

from carbon_mind.machine import usable_cores
from carbon_mind.repo.extract import MAX_BYTES, extract
from carbon_mind.repo.languages import Language
from carbon_mind.safety.files import TooLarge, read_regular
from carbon_mind.values import Tags

if TYPE_CHECKING:
    import multiprocessing.context
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future, ProcessPoolExecutor
    from pathlib import Path

    from carbon_mind.values import SourceFile

__all__ = ["extract_files"]

POOL_FROM = 1_500_000  # bytes to parse from which starting processes (0.13 s) pays
FORK_FROM = 200_000  # ... and where they are forks of this one (0.01 s)
MAX_WORKERS = 8

Job = tuple["SourceFile", Language]


def extract_files(
    root: Path,
    files: Sequence[Job],
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[tuple[SourceFile, Tags]]:
    """The tags of each file below `root`, in the order of `files`, whatever the number of `workers`.

    `meanwhile` is called once, before the first result: this process has nothing else to do while others parse.
    `progress` is called with the number of files done and of all. Beyond what `extract` tells, a file may be degraded as
    "unreadable" (no regular file, or not there any more) or "parser crashed" (it killed the process that parsed it).
    """
    workers = workers if workers is not None else min(usable_cores(), MAX_WORKERS)
    for done, tags in enumerate(_all_tags(root, files, workers, meanwhile), start=1):
        yield files[done - 1][0], tags
        if progress is not None:
            progress(done, len(files))


def _all_tags(root: Path, files: Sequence[Job], workers: int, meanwhile: Callable[[], None]) -> Iterator[Tags]:
    total = sum(min(file.size, MAX_BYTES) for file, _ in files)
    if workers < 2 or total < (FORK_FROM if _alone() else POOL_FROM):
        meanwhile()
        for job in files:
            yield _extract_file(root, job)
        return
    for batch in _in_pool(root, _chunks(files, total, workers), workers, meanwhile):
        yield from batch


def _extract_file(root: Path, job: Job) -> Tags:
    file, language = job
    try:
        return extract(read_regular(root, file.path, MAX_BYTES), language)
    except TooLarge:
        return Tags(language.name, degraded="too large")
    except OSError:
        return Tags(language.name, degraded="unreadable")


def _extract_all(root: Path, jobs: Sequence[Job]) -> list[Tags]:
    return [_extract_file(root, job) for job in jobs]


def _chunks(files: Sequence[Job], total: int, workers: int) -> list[Sequence[Job]]:
    """Runs of neighbours of about the same size: few enough to cost nothing, enough that nobody waits for the last one."""
    target = max(total // (workers * 6), 1 << 15)
    chunks: list[Sequence[Job]] = []
    first, size = 0, 0
    for index, (file, _) in enumerate(files):
        size += file.size
        if size >= target:
            chunks.append(files[first : index + 1])
            first, size = index + 1, 0
    return [*chunks, files[first:]] if first < len(files) else chunks


# --- processes -----------------------------------------------------------------------------------------------


def _in_pool(
    root: Path, chunks: Sequence[Sequence[Job]], workers: int, meanwhile: Callable[[], None]
) -> Iterator[list[Tags]]:
    """The tags of each chunk in order. A chunk that a dying worker took with it is parsed again, file by file."""
    from concurrent.futures.process import BrokenProcessPool

    careful = _Careful(root)
    pool: ProcessPoolExecutor | None = None
    try:
        futures: list[Future[list[Tags]]] = []
        try:
            pool = _pool(min(workers, len(chunks)))
            with _without_main():
                futures = [pool.submit(_extract_all, root, chunk) for chunk in chunks]
        except (OSError, NotImplementedError, BrokenProcessPool):
            pass  # no semaphores or sockets here, or a worker died at once: `careful` finds out
        meanwhile()
        for index, chunk in enumerate(chunks):
            try:
                tags = futures[index].result() if index < len(futures) else None
            except BrokenProcessPool:
                tags = None
            yield tags if tags is not None else [careful.parse(job) for job in chunk]
    finally:
        careful.close()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


class _Careful:
    """Parses one file at a time in one other process, so that it is known which file kills it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pool: ProcessPoolExecutor | None = None
        self._possible = True

    def parse(self, job: Job) -> Tags:
        if not self._possible:
            return _extract_file(self._root, job)
        tags = self._elsewhere([job])
        if tags is not None:
            return tags[0]
        if self._elsewhere([]) is None:  # not even nothing can be parsed there: it was not the file
            self._possible = False
            return _extract_file(self._root, job)
        return Tags(job[1].name, degraded="parser crashed")

    def _elsewhere(self, jobs: Sequence[Job]) -> list[Tags] | None:
        from concurrent.futures.process import BrokenProcessPool

        try:
            if self._pool is None:
                self._pool = _pool(1)
            with _without_main():
                future = self._pool.submit(_extract_all, self._root, jobs)
            return future.result()
        except (OSError, NotImplementedError, BrokenProcessPool):
            self.close()
            return None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _pool(workers: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, mp_context=_context(), initializer=_start_worker)


def _context() -> multiprocessing.context.BaseContext:
    import multiprocessing

    if _alone():
        return multiprocessing.get_context("fork")  # starts at once, with all that is imported and compiled here
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _alone() -> bool:
    """Whether this process has one thread, as the system counts them: only then a fork copies no lock that somebody holds."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - only their number is wanted
    except OSError:  # not Linux
        return False


def _start_worker() -> None:
    """An interrupt goes to the whole group of processes; the parent alone answers it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


_main_lock = threading.Lock()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Start workers that do not import the caller's script.

    multiprocessing runs the parent's `__main__` in each new process. Ours need nothing of it, it costs the import of a whole
    command line, and a script without `if __name__ == "__main__"` would start itself again. Workers are started by `submit`, in
    the calling thread, so an empty module stands in for that long.
    """
    with _main_lock:
        main = sys.modules.get("__main__")
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            if main is not None:
                sys.modules["__main__"] = main
            else:
                del sys.modules["__main__"]
