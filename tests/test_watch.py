"""`carbon watch` as a person runs it: real processes, real edits, lines of JSON."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Repository

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
native = pytest.param(
    [],
    id="native",
    marks=pytest.mark.skipif(not importlib.util.find_spec("watchfiles"), reason="watchfiles is not installed"),
)
polling = pytest.param(["--poll"], id="polling", marks=pytest.mark.slow)


class Watcher:
    """A running `carbon watch --json`."""

    def __init__(self, where: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "carbon_mind", "watch", "--json", "--debounce", "0.1", *args],
            cwd=where,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._said: queue.Queue[str] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._read, args=pair)
            for pair in ((self.process.stdout, self._lines), (self.process.stderr, self._said))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: Any, into: queue.Queue[str]) -> None:
        for line in stream:
            into.put(line)

    def next(self) -> dict[str, Any]:
        """The next digest that it reports."""
        found = json.loads(self._lines.get(timeout=60))
        assert isinstance(found, dict)
        return found

    def said(self) -> str:
        """The next line of talk."""
        return self._said.get(timeout=60)

    def silent(self, seconds: float) -> bool:
        """Whether nothing is reported for so long."""
        try:
            self._lines.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def end(self, how: int = signal.SIGINT) -> int:
        """Its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@pytest.fixture
def watchers() -> Iterator[list[Watcher]]:
    running: list[Watcher] = []
    yield running
    for watcher in running:
        watcher.end(signal.SIGKILL)  # closes the pipes of one that has ended already


@pytest.mark.parametrize("how", [native, polling])
def test_edits_new_folders_and_switches_are_seen(sample: Repository, watchers: list[Watcher], how: list[str]) -> None:
    watcher = Watcher(sample.path, *how)
    watchers.append(watcher)
    first = watcher.next()
    assert (first["built"], first["files"], first["parsed"], first["prefix_changed"]) == (True, 7, 5, None)
    assert watcher.said() == f"watching {sample.path}; Ctrl-C ends it\n"

    sample.write("sample/core.py", "def other() -> int:\n    return 1\n")
    found = watcher.next()
    assert (found["changed"], found["parsed"], found["prefix_changed"]) == (1, 1, True)

    sample.write("sample/deep/er/new.py", "def new() -> int:\n    return 1\n")
    found = watcher.next()
    assert (found["files"], found["changed"]) == (8, 1)
    sample.write("sample/deep/er/new.py", "# only a remark\ndef new() -> int:\n    return 1\n")
    assert watcher.next()["changed"] == 1

    sample.git("stash", "--quiet", "--include-untracked")
    while found["files"] != 7:
        found = watcher.next()

    sample.write(".gitignore", "build/\n")
    found = watcher.next()
    assert (found["files"], found["prefix_changed"]) == (8, False)
    sample.write("build/out.py", "x = 1\n")
    sample.write(".carbon/own", "x")
    assert watcher.silent(3 if how else 1), "what is ignored, and our own folder, are not worth a digest"

    (sample.path / "sample/core.py").unlink()
    assert watcher.next()["files"] == 7
    assert watcher.end() == 0
    assert "ended" in watcher.said()


@pytest.mark.parametrize("how", [native, polling])
def test_a_burst_is_one_digest(sample: Repository, watchers: list[Watcher], how: list[str]) -> None:
    watcher = Watcher(sample.path, "--debounce", "1", *how)
    watchers.append(watcher)
    watcher.next()
    for number in range(50):
        sample.write(f"many/{number}.py", f"x = {number}\n")
    files = 7
    lines = 0
    while files != 57:
        files = watcher.next()["files"]
        lines += 1
    assert lines <= 2
    assert watcher.end() == 0


@pytest.mark.parametrize("how", [native, polling])
def test_a_worktree_and_a_folder_without_git(
    sample: Repository, watchers: list[Watcher], tmp_path: Path, how: list[str]
) -> None:
    side, plain = tmp_path / "side", tmp_path / "plain"
    sample.git("worktree", "add", "--quiet", str(side), "-b", "side")
    plain.mkdir()
    (plain / "a.py").write_text("x = 1\n")
    for where in (side, plain):
        watcher = Watcher(where, *how)
        watchers.append(watcher)
        files = watcher.next()["files"]
        (where / "b.py").write_text("x = 1\n")
        assert watcher.next()["files"] == files + 1
        assert watcher.end() == 0


def test_errors_are_errors(tmp_path: Path, watchers: list[Watcher]) -> None:
    (tmp_path / "empty").mkdir()
    watcher = Watcher(tmp_path / "empty")
    watchers.append(watcher)
    assert watcher.process.wait(timeout=60) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on inotify")
def test_where_the_system_refuses_it_polls(sample: Repository, watchers: list[Watcher]) -> None:
    """A namespace of its own may have no inotify at all: the limit that a user with many editors meets."""
    pytest.importorskip("watchfiles")
    code = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"'
    program = ["unshare", "--user", "--map-root-user", "sh", "-c", code, "sh"]
    try:
        subprocess.run([*program, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
    }
    process = subprocess.Popen(
        [*program, sys.executable, "-P", "-m", "carbon_mind", "watch", "--json"],
        cwd=sample.path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["files"] == 7
    sample.write("new.py", "x = 1\n")
    assert json.loads(process.stdout.readline())["files"] == 8
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "looking every 2 seconds instead" in said
    process.stdout.close()
    assert process.returncode == 0
