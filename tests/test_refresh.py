"""Refreshes in the background: one at a time, none lost, a log that stays small; also after `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbon_mind import pipeline, refresh
from carbon_mind.refresh import alone, describe, single_flight
from carbon_mind.repo.scan import locate
from carbon_mind.settings import load
from tests.conftest import Repository
from tests.test_hooks import until

ROOT = Path(__file__).parents[1]
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, links and FIFOs")


def run(code: str, *args: object, cwd: Path = ROOT, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Python code in another process."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout == subprocess.PIPE else None,
        text=True,
    )


BUILD = """
import sys, time
from pathlib import Path
from carbon_mind.refresh import single_flight
folder, name, pause = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
def build():
    with (folder / "builds").open("a") as log: log.write(f"{name} begins\\n")
    end = time.monotonic() + pause
    while time.monotonic() < end and not (folder / "enough").exists(): time.sleep(0.01)
    with (folder / "builds").open("a") as log: log.write(f"{name} ends\\n")
single_flight(folder, build)
"""


def builds(folder: Path) -> list[str]:
    log = folder / "builds"
    return log.read_text().splitlines() if log.exists() else []


def test_a_second_refresh_is_left_to_the_first_which_runs_again(tmp_path: Path) -> None:
    first = run(BUILD, tmp_path, "first", 60)
    until(lambda: builds(tmp_path) == ["first begins"])
    others = [run(BUILD, tmp_path, f"other{i}", 0) for i in range(4)]
    assert [process.wait() for process in others] == [0] * 4, "nobody waits"
    assert builds(tmp_path) == ["first begins"]
    (tmp_path / "enough").touch()
    assert first.wait() == 0
    assert builds(tmp_path) == ["first begins", "first ends"] * 2, "four requests, one more run"


def test_never_two_at_once_and_the_last_request_is_served(tmp_path: Path) -> None:
    running = [run(BUILD, tmp_path, f"p{i}", 0.03) for i in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    log = builds(tmp_path)
    assert log[1::2] == [line.replace("begins", "ends") for line in log[0::2]]
    assert not (tmp_path / "refresh.again").exists()


@posix
def test_killed_while_it_holds_the_lock(tmp_path: Path) -> None:
    first = run(BUILD, tmp_path, "first", 60)
    until(lambda: builds(tmp_path) == ["first begins"])
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert run(BUILD, tmp_path, "second", 0).wait() == 0
    assert builds(tmp_path) == ["first begins", "second begins", "second ends"]


def test_waiting_for_the_lock(tmp_path: Path) -> None:
    first = run(BUILD, tmp_path, "first", 60)
    until(lambda: builds(tmp_path) == ["first begins"])
    with alone(tmp_path, wait=False) as mine:
        assert not mine
    (tmp_path / "enough").touch()
    with alone(tmp_path, wait=True) as mine:
        assert mine
        assert builds(tmp_path)[-1] == "first ends"
    first.wait()


@posix
@pytest.mark.parametrize("name", ["refresh.lock", "refresh.again", "refresh.log"])
@pytest.mark.parametrize("what", ["link", "fifo", "folder"])
def test_what_a_stranger_left_under_our_names_does_no_harm(
    sample: Repository, tmp_path: Path, name: str, what: str
) -> None:
    (sample.path / ".carbon").mkdir()
    place = sample.path / ".carbon" / name
    target = tmp_path / "target"
    target.write_text("precious")
    if what == "link":
        place.symlink_to(target)
    elif what == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    process = run("from carbon_mind.refresh import run; run('post-commit')", cwd=sample.path)
    assert process.wait(timeout=60) == 0
    assert (sample.path / ".carbon/mind/mind.md").exists()
    assert target.read_text() == "precious"


def test_the_log_tells_and_stays_small(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample.path)
    monkeypatch.setattr(os, "setsid", lambda: None, raising=False)
    monkeypatch.setattr(os, "nice", lambda _: 0, raising=False)
    refresh.run("post-merge")
    log = sample.path / ".carbon/refresh.log"
    (line,) = log.read_text().splitlines()
    assert " post-merge: mind: built (7 files, 5 parsed, " in line
    log.write_text("".join(f"{i:05} {'x' * 90}\n" for i in range(1000)))
    refresh.run("post-merge")
    text = log.read_text()
    assert len(text) < refresh.LOG_BYTES
    lines = text.splitlines()
    assert {len(line) for line in lines[:-1]} == {96}, "whole lines"
    assert lines[-2].startswith("00999 ")
    assert "; the prefix is the same" in lines[-1]


def test_errors_are_in_the_log_and_nowhere_else(sample: Repository, tmp_path: Path) -> None:
    code = "from carbon_mind.refresh import run; run('post-commit')"
    sample.write("carbon.toml", "budget = 1\n")
    assert run(code, cwd=sample.path, stdout=subprocess.PIPE).communicate()[0] == ""
    assert run(code, cwd=tmp_path, stdout=subprocess.PIPE).communicate()[0] == ""
    sample.write("carbon.toml", "enabled = false\n")
    assert run(code, cwd=sample.path, stdout=subprocess.PIPE).communicate()[0] == ""
    assert "error: carbon is switched off here" in (sample.path / ".carbon/refresh.log").read_text()
    assert not (sample.path / ".carbon/mind/mind.md").exists()


@posix
@pytest.mark.slow
def test_killed_anywhere_the_next_refresh_is_as_if_nothing_had_been(sample: Repository) -> None:
    """`kill -9` at many moments of a refresh: the mind is never wrong, and is right after the next one."""
    for number in range(40):
        sample.write(f"pkg/m{number}.py", f"def f{number}() -> int:\n    return {number}\n" * 50)
    sample.commit()
    code = "from carbon_mind.refresh import run; run('post-commit')"
    settings = load(None, {})
    for attempt in range(12):
        sample.write("sample/core.py", f"def version_{attempt}() -> int:\n    return 1\n")
        process = run(code, cwd=sample.path)
        time.sleep(0.08 + attempt * 0.04)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = pipeline.check(locate(sample.path), settings, pipeline.Silent())
        if found.current:
            markdown = (sample.path / ".carbon/mind/mind.md").read_text()
            fresh = pipeline.build(sample.path, settings, pipeline.Silent(), full=True)
            assert fresh.markdown == markdown
        process = run(code, cwd=sample.path)
        assert process.wait(timeout=60) == 0
        assert pipeline.check(locate(sample.path), settings, pipeline.Silent()).current


def test_words(sample: Repository) -> None:
    settings = load(None, {})
    silent = pipeline.Silent()
    assert describe(pipeline.build(sample.path, settings, silent)).startswith("mind: built (7 files, 5 parsed, ")
    sample.write("a.txt", "a")
    sample.write("b.txt", "b")
    line = describe(pipeline.build(sample.path, load(None, {"budget": 400}), silent))
    assert line.startswith("mind: built (2 files and settings changed, 0 parsed, ")
    assert describe(pipeline.build(sample.path, load(None, {"budget": 400}), silent, full=True)).startswith(
        "mind: built (9 files, 5 parsed, "
    )
    assert describe(pipeline.build(sample.path, load(None, {"budget": 400}), silent)).startswith(
        "mind: current (9 files, 0"
    )


def test_single_flight_without_a_folder_to_write_in(tmp_path: Path) -> None:
    done: list[int] = []
    single_flight(tmp_path / "missing", lambda: done.append(1))
    assert done == [1]
