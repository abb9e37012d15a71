"""The benchmark of peers: what it counts, what it leaves as it was, and how it judges."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

SCRIPT = Path(__file__).parents[1] / "bench" / "peers.py"

if TYPE_CHECKING:
    from bench import peers
else:  # a script, not a package
    _spec = importlib.util.spec_from_file_location("bench_peers", SCRIPT)
    peers = importlib.util.module_from_spec(_spec)
    sys.modules[_spec.name] = peers
    _spec.loader.exec_module(peers)

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts whole process trees by means that only Linux has")

# Works until it has used 0.2 seconds of CPU, however long that takes.
BURN = "import time\nwhile time.process_time() < 0.2: pass\n"


def measured(tmp_path: Path, code: str, limit: float = 60) -> dict[str, Any]:
    """One measured run of a Python program, in a process of its own: `measure` reaps every child there is."""
    script = (
        "import json, os, sys\nfrom dataclasses import asdict\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(SCRIPT.parent)!r})\nimport peers\npeers.adopt_orphans()\n"
        f"run = peers.measure([sys.executable, '-c', sys.argv[1]], Path({str(tmp_path)!r}), dict(os.environ), {limit}, "
        f"Path({str(tmp_path / 'out.txt')!r}))\nprint(json.dumps(asdict(run)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@linux
def test_cpu_of_a_process_that_outlives_the_command_is_counted(tmp_path: Path) -> None:
    code = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)\nprint('done')"
    run = measured(tmp_path, code)
    assert run["exit"] == 0
    assert run["cpu_s"] >= 0.2
    assert (tmp_path / "out.txt").read_text() == "done\n"


@linux
def test_memory_is_that_of_the_largest_process(tmp_path: Path) -> None:
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'x = bytearray(90_000_000)'], check=True)"
    run = measured(tmp_path, code)
    assert 90 < run["peak_mb"] < 180


@linux
def test_a_hanging_command_is_ended_with_all_its_children(tmp_path: Path) -> None:
    hang = "import time; time.sleep(1000)"
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {hang!r}], start_new_session=True)\n"
        "print(child.pid, flush=True)\ntime.sleep(1000)"
    )
    run = measured(tmp_path, code, limit=1)
    assert run["failure"] == "more than 1 s"
    child = int((tmp_path / "out.txt").read_text())
    assert not Path(f"/proc/{child}").exists()


@linux
def test_a_failure_is_told_with_its_last_line(tmp_path: Path) -> None:
    assert measured(tmp_path, "raise SystemExit('no such thing')")["failure"] == "exit code 1: no such thing"


@pytest.fixture
def bench(tmp_path: Path) -> peers.Bench:
    where = peers._commit(tmp_path / "made", peers.made_files(5))
    item = peers.subject(where, tmp_path / "cache")
    tool = peers.Tool("tool", "1", ("true",))
    found = peers.Bench(tool, item, tmp_path / "clone" / item.name, tmp_path / "home")
    found.prepare()
    return found


def status(where: Path) -> str:
    return subprocess.run(
        ["git", "-C", str(where), "status", "--porcelain", "--ignored"], capture_output=True, text=True, check=True
    ).stdout


def test_cold_is_without_anything_that_a_tool_wrote(bench: peers.Bench) -> None:
    (bench.clone / ".git" / "info" / "exclude").write_text(".cache/\n")
    (bench.clone / ".cache").mkdir()
    (bench.clone / ".cache" / "tags.db").write_text("x")
    (bench.home / ".config").mkdir()
    (bench.home / ".config" / "y").write_text("y")
    assert bench.caches() == [".cache/", "~/.config/y"]
    with bench.state("cold", 1):
        assert bench.caches() == []
        assert bench.home.is_dir()


def test_an_edit_is_new_each_time_and_leaves_no_trace(bench: peers.Bench) -> None:
    file = bench.clone / bench.subject.edited
    before, when = file.read_bytes(), file.stat().st_mtime_ns
    seen = []
    for number in (1, 2):
        with bench.state("edit", number):
            seen.append(file.read_bytes())
            assert status(bench.clone) == f" M {bench.subject.edited}\n"
        assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, when)
    assert len({before, *seen}) == 3
    assert all(text.startswith(before) and b"\n# " in text[len(before) :] for text in seen)


def test_touch_changes_the_time_of_every_file_and_nothing_else(bench: peers.Bench) -> None:
    files = [file for file in bench.clone.rglob("*") if file.is_file() and ".git" not in file.parts]
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
    with bench.state("touch", 1):
        assert all(file.stat().st_mtime_ns > before[file][0] for file in files)
    assert all(file.read_bytes() == before[file][1] for file in files)
    assert status(bench.clone) == ""


def test_the_checkout_is_neither_touched_nor_linked(bench: peers.Bench, tmp_path: Path) -> None:
    assert status(tmp_path / "made") == ""
    inodes = {file.stat().st_ino for file in (tmp_path / "made").rglob("*") if file.is_file()}
    assert not inodes & {file.stat().st_ino for file in (tmp_path / "cache").rglob("*") if file.is_file()}


def test_the_edited_file_is_of_middle_size_in_the_main_language() -> None:
    sizes = {"a.py": 1, "src/b.c": 10, "src/c.c": 30, "src/d.c": 20, "deps/e.c": 15, "tests/f.c": 16, "README": 5}
    assert peers.edited_file(sizes) == "src/d.c"
    assert peers.edited_file({"README": 5}) == ""


def test_copies_have_names_of_their_own_and_still_find_each_other() -> None:
    files = {
        "src/ae_poll.h": b"int ae_poll(size_t n);\n",
        "src/main.c": b'#include "ae_poll.h"\nint main(void) { return ae_poll(static_cast(FooBar)); }\n',
    }
    found = peers.copied_files(files, 2)
    assert sorted(found) == ["copy1/src/ae_poll_1.h", "copy1/src/main.c", "copy2/src/ae_poll_2.h", "copy2/src/main.c"]
    assert b'#include "ae_poll_2.h"' in found["copy2/src/main.c"]
    assert b"static_cast(FooBar_2)" in found["copy2/src/main.c"]
    names = [set(re.findall(rb"ae_poll\w*", found[f"copy{k}/src/main.c"])) for k in (1, 2)]
    assert not names[0] & names[1]


def test_lines_that_differ_are_counted() -> None:
    assert peers.unlike("a\nb\nc", "a\nb\nc") == 0
    assert peers.unlike("a\nb\nc", "a\nX\nc") == 1
    assert peers.unlike("a\nb", "b\na") == 1
    assert peers.unlike("a", "a\nb\nc") == 2


def sample(
    tool: str, repository: str, scenario: str, wall: float, *, cpu: float = 1, failure: str = ""
) -> peers.Sample:
    run = peers.Run(1 if failure else 0, wall, cpu, 100, 100, failure)
    return peers.Sample(tool, repository, scenario, 1, run, 10, 5, "", 0, 0)


SUBJECT = peers.Subject("redis", Path(), "0" * 40, 1, 1, 1_000_000, "a.c")


def verdicts(*samples: peers.Sample, sizes: tuple[float, ...] = ()) -> dict[str, bool | None]:
    grown = [replace(SUBJECT, name=f"x{i}", source_bytes=int(i * 1_000_000)) for i in sizes]
    found = peers.targets(peers.Results(samples), [SUBJECT], grown, replace(SUBJECT, name="tree"))
    return {target.text.partition(":")[0]: target.holds for target in found}


def test_what_was_not_measured_has_no_verdict() -> None:
    assert set(verdicts().values()) == {None}
    failed = verdicts(sample(peers.CARBON, "redis", "cold", 0.1), sample("aider", "redis", "cold", 9, failure="x"))
    assert failed["cold"] is None
    assert failed["memory"] is True


def test_each_target_can_be_missed() -> None:
    carbon = [sample(peers.CARBON, "redis", s, w) for s, w in zip(peers.SCENARIOS, (0.5, 0.2, 0.2, 0.29), strict=True)]
    others = [sample("aider", "redis", "cold", 9, cpu=8), sample("codemap-agents", "redis", "cold", 0.1)]
    tree = [sample(peers.CARBON, "tree", "unchanged", 0.2), sample("codemap-agents", "tree", "unchanged", 0.3)]
    good = verdicts(*carbon, *others, *tree)
    assert set(good.values()) == {True}
    slow = [replace(s, run=replace(s.run, wall_s=s.run.wall_s * 2, cpu_s=1.1, peak_mb=151)) for s in (*carbon, tree[0])]
    assert set(verdicts(*slow, *others, tree[1]).values()) == {False}


@pytest.mark.parametrize(("last", "holds"), [(5.0, True), (9.0, False)])
def test_growth_is_judged_without_the_cost_of_starting(last: float, holds: bool) -> None:
    seconds = {1: 2.0, 2: 3.0, 4: last}
    samples = [sample(peers.CARBON, f"x{k}", "cold", 1, cpu=cpu) for k, cpu in seconds.items()]
    assert verdicts(*samples, sizes=(1, 2, 4))["growth"] is holds
