"""Which program this is: what made something, so that nothing that an older one made passes for current."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from carbon_mind import __version__

DIGEST = (".", "digest", "knowledge", "repo", "repo/facts", "repo/imports", "safety")
"""The packages that decide the bytes of a digest and of notes."""
PREFIX = (".", "engine", "prefix", "safety", "store")
"""The packages that decide a prefix's tokens and their state, given the digest."""


@functools.cache
def program(parts: tuple[str, ...] = DIGEST) -> str:
    """Our version and a stamp over the code of some packages: a checkout changes without a new version."""
    digest = hashlib.sha256()
    for part in parts:
        try:
            with os.scandir(Path(__file__).parent / part) as entries:
                stamps = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
        except OSError:  # not installed as files: then only a new version changes the code
            continue
        for name, info in sorted(stamps, key=lambda item: item[0]):
            digest.update(f"{part}/{name} {info.st_size} {info.st_mtime_ns}\n".encode())
    return f"{__version__} {digest.hexdigest()[:16]}"
