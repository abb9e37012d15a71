"""A lock that another process holds is waited for, and given up in time when asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carbon_mind.safety.lock import locked

HOLD = (
    "import sys; from pathlib import Path; from carbon_mind.safety.lock import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()\n"
)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with process:
        yield process


def test_a_held_lock_is_given_up_in_time(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    waits: list[str] = []
    with (
        pytest.raises(TimeoutError, match="another process has held it"),
        locked(tmp_path / "lock", lambda: waits.append("told"), timeout_s=0.2),
    ):
        pytest.fail("it is held")
    assert waits == ["told"], "once"
    assert holder.stdin is not None
    holder.stdin.close()
    with locked(tmp_path / "lock", timeout_s=30):
        pass
    assert not (tmp_path / "lock").exists()


def test_a_link_in_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic link"), locked(tmp_path / "lock", timeout_s=1):
        pytest.fail("followed")
    assert (tmp_path / "target").read_text() == "precious"
