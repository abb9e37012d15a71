"""The managed block of AGENTS.md: the only bytes of that file that are ours.

Everything outside the two markers is somebody's text and stays as it is, byte for byte, whatever its encoding or line ends.
"""

from __future__ import annotations

from carbon_mind.values import RepoPath

AGENTS = RepoPath("AGENTS.md")
"""The file that may hold the block."""

BEGIN = b"<!-- carbon-mind:begin -->"
END = b"<!-- carbon-mind:end -->"


class BlockProblem(ValueError):
    """The markers in the file do not form exactly one block; guessing would destroy text."""


def _bounds(data: bytes) -> tuple[int, int] | None:
    begins, ends = data.count(BEGIN), data.count(END)
    if begins == ends == 0:
        return None
    start = data.find(BEGIN)
    stop = data.find(END)
    if begins != 1 or ends != 1 or stop < start:
        raise BlockProblem(f"{begins} begin and {ends} end markers")
    return start, stop + len(END)


def strip(data: bytes) -> bytes:
    """The file without the block (and without the blank line that `put` adds before it), for identity and for reading."""
    try:
        bounds = _bounds(data)
    except BlockProblem:
        return data
    if bounds is None:
        return data
    start, stop = bounds
    stop += 1 if data[stop : stop + 1] == b"\n" else 0
    before = data[:start]
    if before.endswith(b"\n\n"):
        before = before[:-1]
    return before + data[stop:]


def put(data: bytes, content: bytes) -> bytes:
    """The file with `content` between the markers: replaced in place, or appended after a blank line when there is no block.

    Raises BlockProblem when the markers are damaged, or `content` holds one: the next run could not find the block's end.
    """
    if BEGIN in content or END in content:
        raise BlockProblem("the new content holds a marker")
    block = BEGIN + b"\n" + content.strip(b"\n") + b"\n" + END
    bounds = _bounds(data)
    if bounds is not None:
        return data[: bounds[0]] + block + data[bounds[1] :]
    if not data:
        return block + b"\n"
    gap = b"\n" if data.endswith(b"\n") else b"\n\n"
    return data + gap + block + b"\n"
