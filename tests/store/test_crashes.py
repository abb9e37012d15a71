"""Real processes, really killed: the store is whole after each, what was stored before is intact, and no lock outlives its process."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind.store.states import Store
from tests.cli.test_commands import carbon
from tests.conftest import Repository
from tests.store.test_states import IDENTITY, TOKENS, header

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
ROOT = Path(__file__).parents[2]
KILLS = 50

# Stores one snapshot after the other (two in three of them a layer on the one before), collects, and says what is done.
WRITER = """
import sys
from pathlib import Path
from carbon_mind.store.states import Store
from tests.store.test_states import TOKENS, header
store, seed = Store(Path(sys.argv[1]), int(sys.argv[2])), int(sys.argv[3])
print("go", flush=True)
for number in range(10_000):
    tokens = (seed, number // 3, *TOKENS)
    ends = (30, 60, 102)[: number % 3 + 1]
    payload = bytes((seed % 251, number % 251)) * 100_000
    print(store.put(header(tokens[: ends[-1]], ends=ends), payload)[0], flush=True)
    if number % 4 == 3:
        store.collect()
"""

# Counts every call that touches the disk, and dies in the middle of one of them.
STEPPER = """
import os, signal, sys
from pathlib import Path
from carbon_mind.store.states import Store
from tests.store.test_states import TOKENS, header
last, steps = int(sys.argv[2]), 0
def counted(real, half=None):
    def call(*args, **kwargs):
        global steps
        steps += 1
        if steps == last:
            if half:
                half(*args)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call
write = os.write
os.write = counted(write, lambda fd, data: write(fd, bytes(data)[: len(data) // 2]))
for name in ("open", "close", "replace", "fsync", "unlink", "rename", "utime"):
    setattr(os, name, counted(getattr(os, name)))
store = Store(Path(sys.argv[1]), 450_000)
store.put(header((2, *TOKENS)), b"new" * 40_000)
store.put(header((3, *TOKENS)), b"one more" * 30_000)
store.collect()
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )


def check(store: Store) -> None:
    """Everything that has the name of a snapshot is one, with what it stands on."""
    for entry in store.entries():
        store.verify(entry.name)


@pytest.mark.parametrize("budget", [1 << 30, 2_000_000], ids=["roomy", "evicting"])
def test_killed_at_any_moment_of_saving_and_collecting(tmp_path: Path, budget: int) -> None:
    store = Store(tmp_path / "store", budget)
    mine = store.put(header(), b"mine" * 1000)[0]
    chance, kept = random.Random(budget), {mine}
    for seed in range(KILLS // 2):
        child = start(WRITER, store.folder, budget, seed)
        assert child.stdout is not None
        assert child.stdout.readline() == "go\n"
        time.sleep(chance.uniform(0, 0.12))
        child.kill()
        child.wait()
        kept |= set(child.stdout.read().split())
        child.stdout.close()
        check(store)
        there = {entry.name for entry in store.entries()}
        if budget == 1 << 30:
            assert kept <= there, "what was reported as stored is"
        else:
            assert store.size() <= budget + 250_000, "but for a file that was not finished"
        again = store.put(header((1000 + seed, *TOKENS)), b"after" * 1000)[0]
        store.verify(again)
        kept.add(again)
        assert store.unfinished() == [], "the next writer cleans up"
        assert store.rejected() == []
    assert len(kept) > KILLS, "there was something to kill"
    if budget == 1 << 30:
        assert bytes(store.read(mine, IDENTITY, TOKENS).payload) == b"mine" * 1000


def test_killed_at_every_single_step(tmp_path: Path) -> None:
    step, died = 0, True
    while died:
        step += 1
        store = Store(tmp_path / f"store{step}", 450_000)
        old = [store.put(header((number, *TOKENS)), bytes((number,)) * 100_000)[0] for number in (0, 1)]
        store.used(old[0])
        child = start(STEPPER, store.folder, step)
        died = child.wait() == -signal.SIGKILL
        assert child.stdout is not None
        child.stdout.close()
        check(store)
        assert {entry.name for entry in store.entries()} >= {old[0]}, "the one that was used is the last to go"
        assert bytes(store.read(old[0], IDENTITY, (0, *TOKENS)).payload) == bytes(100_000)
        name, _ = store.put(header((4, *TOKENS)), b"after")
        store.verify(name)
        assert store.unfinished() == []
        assert store.size() <= store.budget
    assert step > 30, "there were steps to die in"


WARMER = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from carbon_mind.engine.fake import FakeEngine
from carbon_mind.store.states import Store
from carbon_mind.warm import warm
from tests.test_warm import prefix_of
engine, store = FakeEngine(), Store(Path(sys.argv[1]), 1 << 30)
prefix = prefix_of(engine)
sys.stdin.readline()
result = warm(engine, store, engine.fingerprint("m"), prefix)
print(json.dumps({"state": result.state, "written": [layer.bytes_written for layer in result.layers],
    "names": [layer.snapshot for layer in result.layers], "miss": result.miss and result.miss.not_stored}))
"""


def test_of_two_warmers_at_once_one_writes_each_layer(tmp_path: Path) -> None:
    for turn in range(10):
        store = Store(tmp_path / f"store{turn}", 1 << 30)
        children = [
            subprocess.Popen(
                [sys.executable, "-c", WARMER, str(store.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
            )
            for _ in range(2)
        ]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        results = [json.loads(child.communicate(timeout=60)[0]) for child in children]
        assert [child.returncode for child in children] == [0, 0]
        check(store)
        sizes = {entry.name: entry.size for entry in store.entries()}
        assert len(sizes) == 3
        for index, name in enumerate(results[0]["names"]):
            assert name == results[1]["names"][index]
            assert sum(result["written"][index] for result in results) == sizes[name]
        assert not any(result["miss"] for result in results)
        assert (store.unfinished(), store.rejected()) == ([], [])


def test_a_warm_command_that_was_killed_leaves_a_store_that_verifies(
    sample: Repository, tiny: Callable[[str], Path], private_home: Path
) -> None:
    chance, model = random.Random(7), tiny("dense")
    assert carbon("warm", "--model", model, cwd=sample.path).returncode == 0, "it can be killed, so it must run"
    for number in range(6):
        sample.write(f"sample/new{number}.py", f"def fresh_{number}() -> None:\n    # FIXME: {number}\n    return\n")
        child = subprocess.Popen(
            [sys.executable, "-m", "carbon_mind", "warm", "--model", str(model)],
            cwd=sample.path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.1, 1.2))
        child.kill()
        child.wait()
        verified = carbon("store", "verify")
        assert verified.returncode == 0, verified.stdout
    done = carbon("warm", "--model", model, cwd=sample.path)
    assert done.returncode == 0
    assert carbon("warm", "--model", model, cwd=sample.path).stdout.startswith("warm: ready")
