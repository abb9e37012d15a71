"""The real llama-server, prebuilt and in a process of its own, as an engine: by its own counts, on tiny models of each kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("xllamacpp", reason="the server extra is not installed")

from carbon_mind.engine.server import ServerEngine
from carbon_mind.engine.serving import Running, running
from carbon_mind.errors import EngineProblem, PrefixTooLong
from tests.engine.test_engines import GRAMMAR, SUFFIX, SYSTEM

KINDS = ("dense", "recurrent", "hybrid", "sliding")


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tiny: Callable[[str], Path]) -> Iterator[tuple[str, Running]]:
    """One server for each kind, for all tests that do not end it."""
    with running({"model": str(tiny(request.param)), "n_ctx": 4096, "n_slots": 2}) as started:
        yield request.param, started


@pytest.fixture
def engine(server: tuple[str, Running]) -> Iterator[ServerEngine]:
    kind, started = server
    opened = ServerEngine(started, rollback=kind == "dense")
    opened.reset()
    yield opened
    opened.close()


def test_a_restored_state_is_not_evaluated_again_and_goes_on_the_same(
    server: tuple[str, Running], engine: ServerEngine
) -> None:
    prefix, suffix = engine.tokenize(SYSTEM), engine.tokenize(SUFFIX)
    assert engine.prefill(prefix) == len(prefix)
    state = engine.save()
    assert (state.tokens, state.pos_max) == (prefix, len(prefix) - 1)
    engine.prefill(suffix)
    said = [piece.text for piece in engine.generate(12)]

    engine.reset()
    engine.prefill(engine.tokenize("something else entirely"))
    engine.load(state)
    before = engine.evaluated
    assert engine.held == prefix
    evaluated = engine.prefill(suffix)
    assert engine.evaluated == before + evaluated
    # By the server's own count. Where there is a window, it goes on from a checkpoint a few tokens before the end.
    assert len(suffix) <= evaluated <= len(suffix) + (8 if server[0] == "sliding" else 0)
    assert [piece.text for piece in engine.generate(12)] == said


def test_slots_keep_apart(server: tuple[str, Running]) -> None:
    kind, started = server
    first, second = (ServerEngine(started, slot=slot, rollback=kind == "dense") for slot in (0, 1))
    for engine, text in ((first, SYSTEM), (second, "another head altogether " * 20)):
        engine.reset()
        engine.prefill(engine.tokenize(text))
    for engine in (first, second):
        suffix = engine.tokenize(SUFFIX)
        assert engine.prefill(suffix) == len(suffix)
        engine.close()


def test_nothing_is_left_in_the_folder_of_slots(server: tuple[str, Running], engine: ServerEngine) -> None:
    engine.prefill(engine.tokenize(SYSTEM))
    engine.load(engine.save())
    slots = server[1].slots
    assert slots is not None
    assert list(slots.iterdir()) == []
    assert slots.stat().st_mode & 0o777 == 0o700


def test_a_long_prefill_tells_its_progress_and_does_not_fit_twice(engine: ServerEngine) -> None:
    tokens = engine.tokenize(SYSTEM * 4)
    seen: list[tuple[int, int]] = []
    engine.prefill(tokens, lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, len(tokens))
    assert seen[-1] == (len(tokens), len(tokens))
    with pytest.raises(PrefixTooLong):
        engine.prefill(engine.tokenize("x" * 4096))
    assert engine.held == tokens


def test_what_http_does_not_give_is_said(engine: ServerEngine) -> None:
    engine.prefill(engine.tokenize(SYSTEM))
    with pytest.raises(EngineProblem, match="no scores"):
        engine.logits()
    with pytest.raises(EngineProblem, match="as a whole"):
        engine.save(10)
    state = engine.save()
    with pytest.raises(EngineProblem, match="in layers"):
        engine.load(replace(state, start=10))
    with pytest.raises(EngineProblem, match="nothing to sample"):
        list(engine.generate(1))
    with pytest.raises(EngineProblem, match=r"restored \d+ tokens"):
        engine.load(replace(state, tokens=state.tokens[:-1]))
    assert engine.held == ()


def test_a_grammar_holds_here_too(engine: ServerEngine) -> None:
    engine.prefill(engine.tokenize(SUFFIX))
    items = json.loads("".join(piece.text for piece in engine.generate(300, GRAMMAR)))
    assert 2 <= len(items) <= 4


def test_the_fingerprint_names_build_and_settings(tiny: Callable[[str], Path]) -> None:
    found = []
    for settings in ({}, {"type_k": "f32"}, {"n_ctx": 1024}):
        with running({"model": str(tiny("dense")), "n_ctx": 2048, **settings}) as started:
            engine = ServerEngine(started)
            found.append(engine.fingerprint("m"))
            engine.close()
    assert len({*found}) == 3
    assert found[0].engine.startswith("xllamacpp 20")
    assert len(found[0].build) == 64


def test_a_server_that_dies_is_an_error_and_not_a_wait(tiny: Callable[[str], Path]) -> None:
    with running({"model": str(tiny("dense")), "n_ctx": 2048}) as started:
        engine = ServerEngine(started)
        assert started.process is not None
        started.process.kill()
        started.process.wait()
        with pytest.raises(EngineProblem, match="does not answer"):
            engine.prefill((1, 2, 3))
        engine.close()


def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EngineProblem, match="did not start"), running({"model": str(bad)}):
        pytest.fail("it started")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_server_never_outlives_who_started_it(tiny: Callable[[str], Path]) -> None:
    code = (
        "import sys, time\nfrom carbon_mind.engine.serving import running\n"
        "with running({'model': sys.argv[1], 'n_ctx': 1024}) as started:\n"
        "    print(started.process.pid, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tiny("dense"))],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(300):
        try:
            os.kill(child, 0)
            state = Path(f"/proc/{child}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                break  # ended, and nobody has asked yet
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the server is still there")
