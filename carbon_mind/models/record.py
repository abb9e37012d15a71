"""What stands beside a model's file: the note that its bytes were verified, in the format of sha256sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carbon_mind.safety.files import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

    from carbon_mind.models.registry import Entry

__all__ = ["forget", "pulled", "record"]


def pulled(entry: Entry, folder: Path) -> Path | None:
    """The entry's file when it was pulled (or verified) before and still has its size; reads no weights."""
    final = folder / entry.file
    try:
        with _note(final).open("rb") as file:
            recorded = file.read(1024)
        size = final.stat().st_size
    except OSError:
        return None
    same = recorded == _content(entry) and final.is_file() and size == (entry.size or size)
    return final if same else None


def record(entry: Entry, folder: Path) -> None:
    """Note that the entry's file in `folder` was found right. Raises StorageProblem."""
    atomic_write(_note(folder / entry.file), _content(entry), mode=0o600)


def forget(entry: Entry, folder: Path) -> None:
    """Remove the note. Raises OSError."""
    _note(folder / entry.file).unlink(missing_ok=True)


def _note(final: Path) -> Path:
    return final.with_name(final.name + ".sha256")


def _content(entry: Entry) -> bytes:
    return f"{entry.sha256}  {entry.file}\n".encode()
