"""Case 4: links out of the repository, into themselves, to nothing, and a FIFO that would block for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.digest.render import from_json
from tests.conftest import Repository
from tests.hostile.conftest import ROOT, carbon, digest_of, distil, skipped, written

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file systems")
OUTSIDE = "outside_the_repository"


def outside(tmp_path: Path) -> Path:
    """A folder beside the repository whose content must never show."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "leak.py").write_text(f"def {OUTSIDE}() -> None:\n    # FIXME: {OUTSIDE}\n    pass\n")
    (folder / "Makefile").write_text(f"test:\n\techo {OUTSIDE}\n")
    (folder / "package.json").write_text(json.dumps({"scripts": {"test": f"echo {OUTSIDE}"}, "name": OUTSIDE}))
    return folder


def link(repository: Repository, tmp_path: Path) -> None:
    folder = outside(tmp_path)
    (repository.path / "leak.py").symlink_to(folder / "leak.py")
    (repository.path / "Makefile").symlink_to(folder / "Makefile")
    (repository.path / "package.json").symlink_to("../outside/package.json")
    (repository.path / "whole").symlink_to(folder)
    (repository.path / "up").symlink_to("..")
    (repository.path / "here").symlink_to(".")
    (repository.path / "loop").symlink_to("loop")
    (repository.path / "broken.py").symlink_to("nowhere.py")
    (repository.path / "device.py").symlink_to("/dev/zero")
    (repository.path / "inside.py").symlink_to("sample/core.py")


@pytest.mark.parametrize("how", ["tracked", "untracked", "plain"])
def test_no_link_is_opened(sample: Repository, tmp_path: Path, how: str) -> None:
    before = distil(sample.path, tmp_path / "cache")
    link(sample, tmp_path)
    if how == "tracked":
        sample.commit()
    elif how == "plain":
        (sample.path / ".git").rename(tmp_path / "git")
    mind = distil(sample.path, tmp_path / "cache")
    assert skipped(mind) == {"link": 10}
    assert mind.markdown == before.markdown, "a link adds nothing and takes nothing away"
    for name, data in written(sample.path / ".carbon", tmp_path / "cache").items():
        assert OUTSIDE.encode() not in data, name


def test_a_folder_on_the_way_becomes_a_link(sample: Repository, tmp_path: Path) -> None:
    """git still lists `sample/core.py`; what is there now is somebody else's."""
    folder = outside(tmp_path)
    for name in ("core.py", "cli.py", "server.py", "__init__.py"):
        (folder / name).write_text(f"def {OUTSIDE}() -> None: ...\n")
    (sample.path / "sample").rename(tmp_path / "moved")
    (sample.path / "sample").symlink_to(folder)
    mind = distil(sample.path, tmp_path / "cache")
    assert OUTSIDE not in mind.markdown
    assert digest_of(mind).coverage.parsed == 1, "the test is left"


def within(seconds: float, path: Path) -> bytes:
    """The digest's JSON by a process group with a deadline: a read that blocks would hang the whole test run."""
    process = subprocess.Popen(
        [sys.executable, "-m", "carbon_mind", "mind", "--json", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0
    return output


@pytest.mark.parametrize("how", ["git", "plain"])
def test_a_fifo_blocks_nobody(sample: Repository, tmp_path: Path, how: str) -> None:
    for name in ("pipe.py", "package.json", "sample/go.mod", "AGENTS.md"):
        os.mkfifo(sample.path / name)
    (sample.path / "sample/core.py").unlink()
    os.mkfifo(sample.path / "sample/core.py")
    if how == "plain":
        os.mkfifo(sample.path / ".gitignore")
        (sample.path / ".git").rename(tmp_path / "git")
    coverage = from_json(within(60, sample.path)).digest.coverage
    assert coverage.parsed == 4
    if how == "plain":
        assert dict(coverage.skipped) == {"not a regular file": 6}


def test_a_fifo_as_ignore_file(sample: Repository) -> None:
    os.mkfifo(sample.path / ".gitignore")
    assert from_json(within(5, sample.path)).digest.coverage.parsed == 5


def test_a_fifo_as_settings(sample: Repository) -> None:
    os.mkfifo(sample.path / "carbon.toml")
    assert from_json(within(5, sample.path)).digest.coverage.parsed == 5


def test_our_own_folder_is_a_link(sample: Repository, tmp_path: Path) -> None:
    """A stranger's `.carbon` that leads elsewhere is not written through."""
    target = tmp_path / "target"
    target.mkdir()
    (sample.path / ".carbon").symlink_to(target)
    found = carbon("mind", sample.path)
    assert found.returncode == 0, found.stderr
    assert list(target.iterdir()) == []
    assert "cannot be written" in found.stderr


@pytest.mark.parametrize(
    "name", ["mind", "cache.db", "cache.db-wal", ".gitignore", "mind/mind.json", "mind/index.json"]
)
def test_parts_of_our_own_folder_are_links(sample: Repository, tmp_path: Path, name: str) -> None:
    target = tmp_path / "victim"
    if name == "mind":
        target.mkdir()
    else:
        target.write_text("mine\n")
    place = sample.path / ".carbon" / name
    place.parent.mkdir(parents=True)
    place.symlink_to(target)
    found = carbon("mind", sample.path)
    assert found.returncode in (0, 6) or found.stderr, found.stderr
    if name == "mind":
        assert list(target.iterdir()) == []
    else:
        assert target.read_text() == "mine\n"


def test_agents_is_a_link(sample: Repository, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine\n")
    (sample.path / "AGENTS.md").symlink_to(tmp_path / "notes")
    found = carbon("mind", "--write-agents", sample.path)
    assert found.returncode != 0
    assert "AGENTS.md" in found.stderr
    assert (tmp_path / "notes").read_text() == "mine\n"
