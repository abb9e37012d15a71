"""`carbon mind status|show|lookup|list`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.recall import Recall, Status, inside

_SHOWN = 10


def _recall(where: Path) -> Recall:
    place, settings = place_and_settings(where)
    return Recall(place, settings, console.Talk())


def run_status(where: Path, *, json: bool) -> None:
    """What there is, and how it stands to the working tree. Raises CarbonError."""
    found = _recall(where).status()
    if json:
        print_json(asdict(found))
    else:
        console.data("\n".join(_lines(found)) + "\n")


def _lines(found: Status) -> list[str]:
    if not found.enabled:
        return [f"mind: {found.reason}; nothing is built and nothing is put into a prompt"]
    head = "current" if found.current else f"stale ({found.reason})"
    lines = [
        f"mind: {head}; digest {found.digest_bytes:,} bytes, {found.indexed} notes with {found.notes_bytes:,} bytes"
    ]
    for name, some in (("stale", found.stale), ("without a note", found.missing), ("gone", found.gone)):
        if some.count:
            more = f" and {some.count - _SHOWN} more" if some.names and some.count > _SHOWN else ""
            names = f": {', '.join(some.names[:_SHOWN])}{more}" if some.names else ""
            lines.append(f"{name}: {some.count}{names}")
    return lines + ([found.withheld] if found.withheld else [])


def run_show(where: Path, *, json: bool) -> None:
    """The block. Raises CarbonError."""
    block = _recall(where).show()
    if json:
        print_json({"block": block, "characters": len(block)})
    else:
        console.data(block)


def run_lookup(path: str, where: Path, *, json: bool) -> None:
    """The nearest note. A path is one of the repository, or seen from where the caller stands. Raises CarbonError."""
    recall = _recall(where)
    here = where.resolve()
    if not path.startswith("/") and here != recall.root.resolve():
        path = str(here / path)
    text = recall.lookup(path)
    if json:
        print_json({"path": inside(recall.root, path), "note": text})
    else:
        console.data(text)


def run_list(where: Path, *, json: bool) -> None:
    """The list of notes. Raises CarbonError."""
    recall = _recall(where)
    if json:
        print_json(recall.entries())
    else:
        console.data(recall.listing())
