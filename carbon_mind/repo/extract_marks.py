"""What the text of a file says about itself: known faults in comments, tests that are switched off, and that a program wrote it."""

from __future__ import annotations

import re

from carbon_mind.values import Marker

__all__ = ["cut", "markers"]

MAX_MARKER = 200


def cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 3] + "..."


# --- markers -------------------------------------------------------------------------------------------------

_TAG = rb"(FIXME|BUG|HACK|XXX)"
_ANY_TAG = re.compile(_TAG)
_LEAD = re.compile(rb"[\s/*#;!<>=|-]*@?")
_FIRST = re.compile(_TAG + rb"(?![\w./\x80-\xff-])")
_FURTHER = re.compile(rb"(?<![\w./\x80-\xff-])" + _TAG + rb"(?=[:(])")
_AUTHOR = re.compile(rb"\([^()]*\)")
_CLOSING = re.compile(rb"\s*(?:\*+/|-->)\s*$")


def markers(text: bytes, comments: dict[int, int]) -> tuple[Marker, ...]:
    if not _ANY_TAG.search(text):
        return ()
    found = []
    position, line = 0, 1
    for start in sorted(comments):
        comment = text[start : comments[start]]
        if not _ANY_TAG.search(comment):
            continue
        line += text.count(b"\n", position, start)
        position = start
        for offset, content in enumerate(comment.split(b"\n")):
            mark = _marker(content)
            if mark is not None:
                found.append(Marker(mark[0], line + offset, mark[1]))
    return tuple(sorted(found, key=lambda marker: (marker.line, marker.tag)))


def _marker(line: bytes) -> tuple[str, str] | None:
    """The tag of a comment's line and what follows it."""
    lead = _LEAD.match(line)
    found = _FIRST.match(line, lead.end() if lead else 0) or _FURTHER.search(line)
    if found is None:
        return None
    rest = line[found.end() :]
    author = _AUTHOR.match(rest)
    rest = _CLOSING.sub(b"", rest[author.end() :] if author else rest)
    words = " ".join(rest.decode("utf-8", "replace").split()).lstrip(" :,;.!-\N{EN DASH}\N{EM DASH}")
    return found[1].decode(), cut(words, MAX_MARKER)
