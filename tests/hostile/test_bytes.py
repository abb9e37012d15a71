"""Case 9: encodings, line ends and names. What is text is read, what is not is named; nothing is dropped in silence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.conftest import Repository
from tests.hostile.conftest import copy_of, digest_of, distil, skipped

SOURCE = "def größe(länge: int) -> int:\n    # FIXME: früher mehr\n    return länge\n"
USER = "from pkg.shape import größe\n\n\ndef use() -> int:\n    return größe(1)\n"

ENCODINGS = {
    "utf-8": SOURCE.encode(),
    "bom": b"\xef\xbb\xbf" + SOURCE.encode(),
    "latin-1": SOURCE.encode("latin-1"),
    "utf-16": SOURCE.encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + SOURCE.encode("utf-16-be"),
    "utf-32": SOURCE.encode("utf-32"),
    "crlf": SOURCE.replace("\n", "\r\n").encode(),
    "cr": SOURCE.replace("\n", "\r").encode(),
    "mixed": SOURCE.replace("\n", "\r\n", 1).encode(),
    "no newline at the end": SOURCE.rstrip().encode(),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_same_text_gives_the_same_digest(repository: Repository, tmp_path: Path, encoding: str) -> None:
    def of(data: bytes, name: str) -> str:
        repository.write("pkg/shape.py", data)
        return distil(repository.path, tmp_path / name, full=True).markdown

    repository.write("pkg/__init__.py", b"")
    repository.write("pkg/use.py", USER)
    expected = of(SOURCE.encode(), "a")
    assert "größe" in expected
    assert "früher mehr" in expected
    assert of(ENCODINGS[encoding], "b") == expected


@pytest.mark.parametrize("encoding", ["bom", "crlf", "latin-1"])
def test_manifests_in_other_bytes(repository: Repository, tmp_path: Path, encoding: str) -> None:
    texts = {
        "package.json": '{"name": "x", "scripts": {"test": "jest --größe"}}\n',
        "Makefile": "lint:\n\truff check größe\n",
        "tox.ini": "[testenv]\ncommands =\n    pytest größe\n",
    }
    for name, text in texts.items():
        if encoding == "bom":
            data = b"\xef\xbb\xbf" + text.encode()
        else:
            data = text.replace("\n", "\r\n").encode() if encoding == "crlf" else text.encode("latin-1")
        repository.write(name, data)
    commands = {
        command.kind: command.command for command in digest_of(distil(repository.path, tmp_path / "cache")).commands
    }
    assert "test" in commands
    assert commands["lint"] == "make lint"
    assert not any("\r" in command or "\ufeff" in command for command in commands.values())


def test_what_is_no_text_is_named(repository: Repository, tmp_path: Path) -> None:
    repository.write("good.py", "def good() -> None: ...\n")
    repository.write("empty.py", b"")
    repository.write("nul.py", b"def a() -> None: ...\n\0\n")
    repository.write("random.py", bytes(range(256)) * 8)
    repository.write("only_nul.py", b"\0" * 4096)
    repository.write("half_utf16.py", SOURCE.encode("utf-16")[:-1])
    repository.write("bom_only.py", b"\xef\xbb\xbf")
    repository.write("lone.py", b"x = '\xed\xa0\x80'\ndef lone() -> None: ...\n")
    mind = distil(repository.path, tmp_path / "cache")
    coverage = digest_of(mind).coverage
    assert coverage.files == 8
    assert skipped(mind) == {"not text": 3}
    assert coverage.parsed == 5


NAMES = [
    b"new\nline.py",
    b"sp ace.py",
    b" lead.py",
    b"trail .py",
    b"tick`.py",
    b"two``ticks.py",
    b'quo"te.py',
    b"quo'te.py",
    b"back\\slash.py",
    b"inv\xff\xfe.py",
    b"half\xc3.py",
    "schön.py".encode(),
    "scho\u0308n.py".encode(),  # the same to the eye
    "日本語.py".encode(),
    b"-rf.py",
    b"$(touch owned).py",
    b"`touch owned`.py",
    b"#hash.py",
    b"[x]*?.py",
    b"{a,b}.py",
    b"tab\there.py",
    b"\x1b[31m.py",
    b"a" * 250 + b".py",
    b"...py",
    b"~.py",
    b":colon.py",
    b"!bang.py",
]


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
@pytest.mark.parametrize("how", ["tracked", "untracked", "plain"])
def test_no_name_is_dropped(repository: Repository, tmp_path: Path, how: str) -> None:
    for number, name in enumerate(NAMES):
        (repository.path / os.fsdecode(name)).write_text(
            f"def f{number}() -> None:\n    # FIXME: number {number}\n    return\n"
        )
    folder = repository.path / os.fsdecode(b"fol\nder \xff`")
    folder.mkdir()
    (folder / "in.py").write_text("def inside() -> None: ...\n")
    if how == "tracked":
        repository.commit()
    elif how == "plain":
        (repository.path / ".git").rename(tmp_path / "git")
    mind = distil(repository.path, tmp_path / "cache")
    coverage = digest_of(mind).coverage
    assert (coverage.files, coverage.parsed, coverage.skipped) == (len(NAMES) + 1, len(NAMES) + 1, ())
    assert all(line.startswith(("#", "- ", "  - ")) or not line for line in mind.markdown.split("\n"))
    assert not (repository.path / "owned").exists()
    cold = distil(copy_of(repository.path, tmp_path / "cold"), tmp_path / "cold-cache")
    assert cold.json == mind.json


def test_names_that_differ_in_case_or_form_only(repository: Repository, tmp_path: Path) -> None:
    pairs = ["A.py", "a.py", "é.py", "e\u0301.py"]
    for number, name in enumerate(pairs):
        repository.write(name, f"def f{number}() -> None: ...\n")
    if len(list(repository.path.glob("*.py"))) < len(pairs):
        pytest.skip("this file system does not tell them apart")
    assert digest_of(distil(repository.path, tmp_path / "cache")).coverage.parsed == 4
