"""AGENTS.md: our block is written, and nothing else changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carbon_mind.digest.agents import LIMIT, write_block
from carbon_mind.errors import StorageProblem
from carbon_mind.safety.block import BEGIN, END

DIGEST = "# sample: repository digest\n\n## Commands\n- test: `pytest` (tox.ini:1)\n"


def test_created_updated_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    assert write_block(tmp_path, DIGEST) == "created"
    assert file.read_bytes() == BEGIN + b"\n" + DIGEST.encode() + END + b"\n"
    assert write_block(tmp_path, DIGEST) == "unchanged"
    assert write_block(tmp_path, DIGEST + "- more\n") == "updated"
    assert b"- more\n" + END in file.read_bytes()
    assert write_block(tmp_path, DIGEST) == "updated"
    assert file.read_bytes() == BEGIN + b"\n" + DIGEST.encode() + END + b"\n"
    assert [path.name for path in tmp_path.glob("AGENTS*")] == ["AGENTS.md"]


@pytest.mark.parametrize(
    "text",
    [
        b"# Rules\r\n\r\n- one\r\n",
        b"# Rules",
        b"caf\xe9\n",
        b"\xef\xbb\xbf# Rules\n",
        b"\n\n\n",
        b"a\0b\n",
        b"```\nopen fence\n",
    ],
)
def test_everything_else_stays(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_bytes(text)
    assert write_block(tmp_path, DIGEST) == "updated"
    first = file.read_bytes()
    assert first.startswith(text)
    assert write_block(tmp_path, DIGEST) == "unchanged"
    assert file.read_bytes() == first
    file.write_bytes(first + b"behind\r\n")
    assert write_block(tmp_path, "other\n") == "updated"
    assert file.read_bytes() == first.replace(DIGEST.encode(), b"other\n") + b"behind\r\n"


def test_a_file_without_bytes(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").touch()
    assert write_block(tmp_path, DIGEST) == "updated"
    assert (tmp_path / "AGENTS.md").read_bytes() == BEGIN + b"\n" + DIGEST.encode() + END + b"\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BEGIN + b"\nno end\n", "damaged"),
        (END + BEGIN, "damaged"),
        (BEGIN + END + BEGIN + END, "damaged"),
        (b"x" * LIMIT, "bytes"),
        (b"x" * (2 << 20), "cannot be read"),
        ("# Rules\n".encode("utf-16"), "UTF-16"),
        ("# Rules\n".encode("utf-32"), "UTF-16"),
    ],
)
def test_refused_and_untouched(tmp_path: Path, text: bytes, problem: str) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_bytes(text)
    before = file.stat()
    with pytest.raises(StorageProblem, match=problem) as caught:
        write_block(tmp_path, DIGEST)
    assert caught.value.hint
    assert file.read_bytes() == text
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_limit_is_exact(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    room = LIMIT - len(BEGIN + b"\n" + DIGEST.encode() + END + b"\n") - 1
    file.write_bytes(b"x" * (room - 1) + b"\n")
    assert write_block(tmp_path, DIGEST) == "updated"
    assert file.stat().st_size == LIMIT
    file.write_bytes(b"x" * room + b"\n")
    with pytest.raises(StorageProblem):
        write_block(tmp_path, DIGEST)


@pytest.mark.skipif(os.name != "posix", reason="needs links and modes")
def test_links_folders_and_modes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs\n")
    root = tmp_path / "root"
    root.mkdir()
    file = root / "AGENTS.md"
    for target in (outside, tmp_path / "missing"):
        file.symlink_to(target)
        with pytest.raises(StorageProblem):
            write_block(root, DIGEST)
        assert file.is_symlink()
        file.unlink()
    assert outside.read_bytes() == b"theirs\n"
    assert not (tmp_path / "missing").exists()
    file.mkdir()
    with pytest.raises(StorageProblem):
        write_block(root, DIGEST)
    file.rmdir()
    file.write_bytes(b"# Rules\n")
    file.chmod(0o640)
    write_block(root, DIGEST)
    assert file.stat().st_mode & 0o777 == 0o640
