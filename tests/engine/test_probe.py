"""The probe with children that really die: a signal is a crash, an error is not, and a verdict is asked for once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from carbon_mind.engine import probe
from carbon_mind.errors import EngineCrashes
from carbon_mind.machine import cpu

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


class Children:
    """Makes the children's command lines and counts them."""

    def __init__(self, with_buffers: str, without: str) -> None:
        self.code = {True: with_buffers, False: without}
        self.started: list[bool] = []

    def __call__(self, _model: Path, extra_buffers: bool) -> Sequence[str]:
        self.started.append(extra_buffers)
        return [sys.executable, "-c", self.code[extra_buffers]]


def test_a_child_that_survives_is_remembered(tmp_path: Path) -> None:
    children = Children("pass", DIES)
    for _ in range(2):
        verdict = probe.probe(Path("m"), "key", tmp_path / "verdicts.json", command=children)
        assert verdict == probe.Verdict("full")
        assert probe.require(verdict) is True
    assert children.started == [True]


def test_a_crash_is_tried_again_without_extra_buffers(tmp_path: Path) -> None:
    children = Children(DIES, "pass")
    verdict = probe.probe(Path("m"), "key", tmp_path / "verdicts.json", command=children)
    assert verdict == probe.Verdict("without-extra-buffers", "killed by SIGSEGV")
    assert probe.require(verdict) is False
    assert children.started == [True, False]
    assert (
        probe.probe(Path("m"), "other", tmp_path / "verdicts.json", command=children).outcome == "without-extra-buffers"
    )
    assert children.started == [True, False, True, False], "another key is another question"
    assert set(probe.read_verdicts(tmp_path / "verdicts.json")) == {"key", "other"}


def test_an_engine_that_always_crashes_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    verdict = probe.probe(Path("m"), "key", tmp_path / "verdicts.json", command=Children(DIES, DIES))
    assert verdict.outcome == "crashes"
    with pytest.raises(EngineCrashes) as caught:
        probe.require(verdict)
    assert caught.value.exit_code == 5
    assert "carbon doctor --probe" in caught.value.hint


def test_a_child_that_fails_with_an_error_says_nothing_about_the_cpu(tmp_path: Path) -> None:
    children = Children("raise SystemExit(3)", "pass")
    cache = tmp_path / "verdicts.json"
    assert probe.probe(Path("m"), "key", cache, command=children) == probe.Verdict("full", "exit status 3")
    assert not cache.exists(), "not remembered"


def test_a_damaged_cache_is_asked_again_and_again_on_request(tmp_path: Path) -> None:
    cache = tmp_path / "verdicts.json"
    cache.write_bytes(b'{"key": 7')
    children = Children("pass", "pass")
    probe.probe(Path("m"), "key", cache, command=children)
    probe.probe(Path("m"), "key", cache, command=children, again=True)
    assert children.started == [True, True]


def test_the_real_child_survives_here(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    verdict = probe.probe(tiny("dense"), "key", tmp_path / "verdicts.json")
    assert verdict.outcome in ("full", "without-extra-buffers")
    assert (tmp_path / "verdicts.json").exists()


def test_the_key_names_build_cpu_and_kind_of_model() -> None:
    assert probe.verdict_key("a", "llama/2") == probe.verdict_key("a", "llama/2")
    assert len({probe.verdict_key(build, kind) for build in "ab" for kind in ("llama/2", "mamba/2")}) == 4
    assert cpu().model
