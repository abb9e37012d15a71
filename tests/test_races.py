"""People edit while carbon reads: what was read under a name that no longer holds is neither recorded nor cached."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind import pipeline
from carbon_mind.pipeline import Mind
from carbon_mind.repo import git
from carbon_mind.repo import scan as scanning
from carbon_mind.repo.scan import moved, ripen, scan
from carbon_mind.settings import Settings, load
from tests.conftest import Repository

OTHER = "def build_other() -> int:\n    # FIXME: something other\n    return 1\n"


class Notices(pipeline.Silent):
    """Collects what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, text: str) -> None:
        """Kept."""
        self.said.append(text)


@pytest.fixture
def settings() -> Settings:
    return load(None, {})


def build(repository: Repository, settings: Settings) -> Mind:
    return pipeline.build(repository.path, settings, pipeline.Silent())


def cold(repository: Repository, tmp_path: Path) -> str:
    """The digest of what is there, made elsewhere from nothing."""
    copy = tmp_path / f"copy{time.monotonic_ns()}"
    repository.git("clone", "--quiet", str(repository.path), str(copy))
    for path in ("sample/core.py", "sample/cli.py"):
        (copy / path).write_bytes((repository.path / path).read_bytes())
    return build(Repository(copy), load(None, {"cache_dir": str(tmp_path / "cold")})).markdown


def age(repository: Repository) -> None:
    """Until no file is younger than the clock's tick."""
    time.sleep(0.05)


def before_parsing(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Have `act` run after the files are identified and before any of them is parsed; it gets the number of the attempt."""
    real, calls = pipeline._plan, iter(range(1, 100))

    def plan(*args: object) -> object:
        act(next(calls))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "_plan", plan)


@pytest.mark.parametrize("state", ["clean", "dirty"])
def test_an_edit_between_the_look_and_the_read(
    sample: Repository, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    if state == "dirty":
        sample.write("sample/core.py", (sample.path / "sample/core.py").read_text() + "\n")
    before = (sample.path / "sample/core.py").read_bytes()
    honest = cold(sample, tmp_path)
    age(sample)

    def edit() -> None:
        sample.write("sample/core.py", OTHER)

    with monkeypatch.context() as patch:
        before_parsing(patch, lambda attempt: edit() if attempt == 1 else None)
        mind = build(sample, settings)
    assert "something other" in mind.markdown
    assert mind.markdown == cold(sample, tmp_path)
    assert build(sample, settings).built is False, "the second look was of files that held still"
    # Had the new text been cached under the old identity, this would still tell of it.
    sample.write("sample/core.py", before)
    again = build(sample, settings)
    assert again.markdown == honest
    assert "something other" not in again.markdown


def test_files_that_never_hold_still(sample: Repository, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Notices()

    def edit(attempt: int) -> None:
        sample.write("sample/core.py", OTHER + "\n" * attempt)

    with monkeypatch.context() as patch:
        before_parsing(patch, edit)
        mind = pipeline.build(sample.path, settings, report)
    assert mind.built
    assert report.said == ["files changed while they were read: the next run looks again"]
    assert not pipeline.check(sample.path, settings, report).current
    assert build(sample, settings).built
    assert pipeline.check(sample.path, settings, report).current


def test_converted_line_ends_are_no_movement(sample: Repository, settings: Settings, tmp_path: Path) -> None:
    """Under `core.autocrlf` or a filter a clean file does not have the bytes of its blob; its tags are cached all the same."""
    sample.git("config", "core.autocrlf", "true")
    sample.git("rm", "--quiet", "-r", "--cached", ".")
    sample.git("reset", "--quiet", "--hard")
    data = (sample.path / "sample/core.py").read_bytes()
    assert b"\r\n" in data
    age(sample)
    assert build(sample, settings).parsed == 5
    sample.write("README.md", "other\r\n")
    age(sample)
    again = build(sample, settings)
    assert (again.built, again.parsed) == (True, 0)


def test_sha256(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "sha256"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(path)], check=True)
    repository = Repository(path)
    repository.write("a.py", OTHER)
    repository.commit()
    assert build(repository, settings).parsed == 1
    assert build(repository, settings).built is False
    repository.write("b.txt", "x")
    assert build(repository, settings).parsed == 0


def test_a_stamp_younger_than_the_clocks_tick_is_waited_for(sample: Repository) -> None:
    sample.write("sample/core.py", OTHER)
    found = scan(sample.path)
    assert ripen(found) == bool(moved(found)), "one and the same rule"
    time.sleep(0.05)
    found = scan(sample.path)
    assert moved(found) == []
    assert not ripen(found)


@pytest.mark.skipif(os.name != "posix", reason="needs a time of change that cannot be set")
def test_a_change_that_hides_its_time_and_size_is_seen(sample: Repository, settings: Settings) -> None:
    file = sample.path / "sample/core.py"
    age(sample)
    build(sample, settings)
    found = scan(sample.path)
    info = file.stat()
    text = file.read_text().replace("the name is ignored", "the game is ignored")
    file.write_text(text)
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert file.stat().st_size == info.st_size
    assert file.stat().st_mtime_ns == info.st_mtime_ns
    assert moved(found) == ["sample/core.py"]
    assert not pipeline.check(sample.path, settings, pipeline.Silent()).current
    assert "the game is ignored" in build(sample, settings).markdown


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_times_that_were_set_hold_nobody_up(sample: Repository, settings: Settings, ahead: int) -> None:
    for path in sample.path.rglob("*.py"):
        os.utime(path, (time.time() + ahead,) * 2)
    time.sleep(0.05)
    assert moved(scan(sample.path)) == []
    build(sample, settings)
    assert build(sample, settings).built is False


def test_a_switch_between_listing_and_status(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both states are clean, so `git status` alone would not tell that the list is that of the other branch."""
    sample.git("checkout", "--quiet", "-b", "side")
    sample.write("sample/core.py", OTHER)
    sample.commit()
    expected = {file.path: file.blob for file in scan(sample.path).files}
    sample.git("checkout", "--quiet", "main")
    real, switches = git.index, iter([["checkout", "--quiet", "side"]])

    def index(root: Path) -> list[git.IndexEntry]:
        entries = real(root)
        for switch in switches:
            sample.git(*switch)
            break
        return entries

    monkeypatch.setattr(git, "index", index)
    assert {file.path: file.blob for file in scan(sample.path).files} == expected


def test_switches_without_end_settle_nothing(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    sample.git("checkout", "--quiet", "-b", "side")
    sample.write("sample/core.py", OTHER)
    sample.commit()
    real, sides = git.index, iter(["main", "side"] * 50)

    def index(root: Path) -> list[git.IndexEntry]:
        entries = real(root)
        sample.git("checkout", "--quiet", next(sides))
        return entries

    monkeypatch.setattr(git, "index", index)
    found = scan(sample.path)
    assert len(moved(found)) == len(found.files)
    assert scanning.NO_STAMP in found.stamps.values()
