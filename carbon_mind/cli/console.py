"""Everything that is printed. stdout is data, stderr is talk; colour only where a person reads it (and not with NO_COLOR)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from carbon_mind.errors import CarbonError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def _colour() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _say(text: str, style: str = "") -> None:
    start, end = (style, "\x1b[0m") if style and _colour() else ("", "")
    # A terminal that cannot show a character gets a replacement, not a traceback.
    encoding = sys.stderr.encoding or "utf-8"
    print(f"{start}{text}{end}".encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)


def data(text: str) -> None:
    """Data for a program or a file, as UTF-8 whatever the locale says."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def step(text: str) -> None:
    """What is being done or was done."""
    _say(text)


def notice(text: str) -> None:
    """Something to know; the work goes on."""
    _say(f"note: {text}", "\x1b[33m")


def error(problem: CarbonError) -> None:
    """What happened, and on a line of its own what to do."""
    _say(f"error: {problem.message}", "\x1b[31m")
    if problem.hint:
        _say(f"hint: {problem.hint}", "\x1b[36m")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Plain aligned columns; the first is left-aligned, the others right-aligned. Readable without colour and in a mail."""
    cells = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    cells.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


class Talk:
    """The reporter of the command line: notices at once, bars on a terminal, one line every few seconds elsewhere."""

    def __init__(self) -> None:
        self._bars: Progress | None = None

    def notice(self, text: str) -> None:
        """Print it."""
        notice(text)

    def progress(self, label: str) -> Callable[[int, int], None]:
        """A bar from the first call that does not end it; it leaves no trace on the screen."""
        last = time.monotonic()
        task: TaskID | None = None

        def update(done: int, total: int) -> None:
            nonlocal task, last
            now = time.monotonic()
            if sys.stderr.isatty():
                if task is None and done < total:
                    task = self._rich().add_task(label, total=total)
                if task is not None:
                    self._rich().update(task, completed=done, total=total)
                    if done >= total:
                        self.close()
            elif now - last >= 5 and done < total:
                last = now
                _say(f"{label}: {done:,} of {total:,}")

        return update

    def _rich(self) -> Progress:
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self._bars

    def close(self) -> None:
        """Take the bars off the screen."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
