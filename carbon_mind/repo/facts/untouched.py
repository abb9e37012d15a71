"""The wordings of "do not edit": made in one place, so that what they say can be found again in AGENTS.md."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.text import listing

_LINE = re.compile(r"do not edit (?:\(\w+\): (?P<paths>.+)|(?P<path>\S+)(?: \([^()]*\))?)\Z")
_MORE = re.compile(r" and \d+ more\Z")


def all_of(kind: str, paths: list[str], room: int) -> str:
    """`do not edit (vendored): a/, b/ and 2 more`; "" when there are none."""
    shown = listing(paths, room)
    return f"do not edit ({kind}): {shown}" if shown else ""


def made(path: str, how: str) -> str:
    """`do not edit a.h (generated: make a.h)`."""
    return f"do not edit {path} (generated: {how})"


def paths_of(text: str) -> list[str]:
    """The paths that such a line names; none for another line, and for one that does not name them all."""
    match = _LINE.match(text)
    if match is None or _MORE.search(text):
        return []
    return [match["path"]] if match["path"] else match["paths"].split(", ")
