"""The list of notes: one line per directory, for whoever wonders which one to ask for."""

from __future__ import annotations

from collections.abc import Iterable

from carbon_mind.safety.safe import safe
from carbon_mind.safety.trust import resanitise
from carbon_mind.values import Note

SIZE = 4000
"""Characters of overview.md."""


def line(path: str, summary: str) -> str:
    """A directory's line, with its path as `lookup` takes it."""
    return f"- {safe(path, 120)}/: {summary}"


def overview(name: str, notes: Iterable[Note]) -> str:
    """The lines of all notes in their order, as many as fit."""
    title = f"# {safe(name, 60)}: directories" if name else "# Directories"
    lines = [line(note.path, note.summary) for note in notes]
    kept = [title, ""]
    size = len(title) + 2
    for index, text in enumerate(lines):
        left = len(lines) - index
        if size + len(text) + 1 > SIZE - (40 if left > 1 else 0):
            kept.append(f"- and {left} more")
            break
        kept.append(text)
        size += len(text) + 1
    return resanitise("\n".join(kept).rstrip("\n") + "\n", limit=SIZE)
