"""AGENTS.md: only the managed block between our two markers is ever changed; everything else stays byte for byte."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Literal

from carbon_mind.errors import StorageProblem
from carbon_mind.safety import block
from carbon_mind.safety.files import atomic_write, read_regular

LIMIT = 32 * 1024
"""Bytes that some clients read of an AGENTS.md; what is beyond is silently lost to the agent, so we never go there."""

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # UTF-32-LE begins like UTF-16-LE


def write_block(root: Path, markdown: str) -> Literal["created", "updated", "unchanged"]:
    """Put the digest into the managed block of AGENTS.md, which is created when there is none.

    Raises StorageProblem when the file is a link, its markers are damaged, or it would grow over LIMIT; nothing is changed then.
    """
    path = root / block.AGENTS
    exists = path.exists() or path.is_symlink()
    try:
        before = read_regular(root, block.AGENTS, 1 << 20) if exists else b""
    except OSError as unreadable:
        raise StorageProblem(
            f"AGENTS.md cannot be read as a regular file: {unreadable.strerror or unreadable}",
            hint="make it a regular, readable file, or leave --write-agents away",
        ) from unreadable
    if before.startswith(_WIDE):
        raise StorageProblem(
            "AGENTS.md is UTF-16 or UTF-32 text", hint="save it as UTF-8, or leave --write-agents away"
        )
    try:
        after = block.put(before, markdown.encode("utf-8"))
    except block.BlockProblem as damaged:
        raise StorageProblem(
            f"AGENTS.md holds damaged carbon-mind markers ({damaged})",
            hint="remove the marker lines by hand, then run again",
        ) from damaged
    if len(after) > LIMIT:
        raise StorageProblem(
            f"AGENTS.md would have {len(after):,} bytes; some clients read only {LIMIT:,}",
            hint="shorten AGENTS.md or give a smaller --budget",
        )
    if after == before:
        return "unchanged"
    atomic_write(path, after, mode=None if exists else 0o644)
    return "updated" if exists else "created"
