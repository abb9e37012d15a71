"""Code in a child process that may not do what root may, so that permissions mean something in every test run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH leave the bounding set; the exec that follows loses them.
_DROP = """
import ctypes, os, sys
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):
        if libc.prctl(24, capability, 0, 0, 0):
            sys.exit("cannot drop a capability")
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""


def run_unprivileged(code: str, *args: str | Path) -> str:
    """Standard output of Python `code` (its arguments in sys.argv), run without root's leave to read and write everything."""
    if os.name != "posix" or (os.geteuid() == 0 and sys.platform != "linux"):
        pytest.skip("needs POSIX permissions that hold")
    done = subprocess.run(
        [sys.executable, "-c", _DROP, code, *map(str, args)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
