"""The user's key: made once, kept from others, and nothing believed without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.safety.seal import KEY_FILE, Seal, open_seal
from tests.repo.unprivileged import run_unprivileged

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX modes")


def test_made_once_and_private(tmp_path: Path) -> None:
    assert open_seal(tmp_path / "cache", make=False) is None
    assert not (tmp_path / "cache").exists()
    first, second = (open_seal(tmp_path / "cache", make=True) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.fits(second.mac("mind", b"x"), "mind", b"x")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [KEY_FILE]
    assert (tmp_path / "cache" / KEY_FILE).stat().st_size == 32
    if os.name == "posix":
        assert (tmp_path / "cache" / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_mac_is_for_one_purpose_one_division_and_one_key() -> None:
    seal = Seal(b"k" * 32)
    macs = [
        seal.mac("mind", b"ab", b"c"),
        seal.mac("mind", b"a", b"bc"),
        seal.mac("mind", b"abc"),
        seal.mac("tags", b"ab", b"c"),
        seal.mac("mind", b"ab", b"c", b""),
        Seal(b"l" * 32).mac("mind", b"ab", b"c"),
    ]
    assert len(set(macs)) == len(macs)
    assert seal.fits(macs[0], "mind", b"ab", b"c")
    assert not seal.fits(macs[0][:-1], "mind", b"ab", b"c")
    assert not seal.fits(b"", "mind", b"ab", b"c")


@posix
@pytest.mark.parametrize("how", ["short", "open", "link", "folder"])
def test_a_key_that_is_unfit_is_replaced_or_refused(tmp_path: Path, how: str) -> None:
    open_seal(tmp_path, make=True)
    key = tmp_path / KEY_FILE
    if how == "short":
        key.write_bytes(b"short")
    elif how == "open":
        key.chmod(0o644)
    elif how == "link":
        key.rename(tmp_path / "elsewhere")
        key.symlink_to(tmp_path / "elsewhere")
    else:
        key.unlink()
        key.mkdir()
    assert open_seal(tmp_path, make=False) is None
    again = open_seal(tmp_path, make=True)
    if how == "folder":
        assert again is None
    else:
        assert again is not None
        assert key.lstat().st_mode & 0o777 == 0o600
        assert not key.is_symlink()


def test_processes_that_begin_together_have_one_key(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom carbon_mind.safety.seal import open_seal\nsys.stdin.read()\n"
        "print(open_seal(Path(sys.argv[1]), make=True).mac('mind', b'x').hex())"
    )
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    assert len({process.communicate()[0] for process in running}) == 1
    assert [path.name for path in tmp_path.iterdir() if ".tmp-" in path.name] == []


@posix
def test_a_read_only_home_has_no_key_and_no_failure(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from carbon_mind.safety.seal import open_seal
print(open_seal(Path(sys.argv[1]), make=True))
"""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    assert run_unprivileged(code, closed / "cache") == "None\n"
