"""How fast this disk gives back a snapshot, measured once, so that nothing is stored that would be slower than its prefill.

On a CPU a prefill always loses; on a fast GPU with a slow disk it may win (llama.cpp's state has 28 to 144 KiB a token).
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write, read_regular
from carbon_mind.values import RepoPath

FILE = "bandwidth.json"
SAMPLE = 32 << 20
_MAX_BYTES = 4096


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device: int
    bytes_per_s: float


def bandwidth(folder: Path) -> float | None:
    """Bytes a second that can be read from the disk of `folder`, the system's cache left out where it lets us.

    Measured with 32 MiB of noise the first time, then remembered for the device. None where nothing can be written: then nothing
    can be stored either.
    """
    device = folder.stat().st_dev
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode(read_regular(folder, RepoPath(FILE), _MAX_BYTES), type=_Known)
        if known.device == device and known.bytes_per_s > 0:
            return known.bytes_per_s
    sample = folder / f"{FILE}.tmp-{os.urandom(8).hex()}"  # a name that is cleaned up should we be killed
    try:
        atomic_write(sample, os.urandom(SAMPLE), mode=0o600)
        found = _timed(sample)
        atomic_write(folder / FILE, msgspec.json.encode(_Known(device, found)), mode=0o600)
    except (OSError, StorageProblem):
        return None
    finally:
        with contextlib.suppress(OSError):
            sample.unlink()
    return found


def _timed(path: Path) -> float:
    block = bytearray(4 << 20)
    with path.open("rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        started = time.perf_counter()
        done = 0
        while count := file.readinto(block):
            done += count
        return done / max(time.perf_counter() - started, 1e-9)
