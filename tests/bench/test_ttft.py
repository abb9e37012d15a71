"""The benchmark of first tokens: by counts of evaluated tokens, each start is the one that it says it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp", reason="the llama extra is not installed")
pytest.importorskip("xllamacpp", reason="the server extra is not installed")

from carbon_mind.bench import ttft
from carbon_mind.errors import UsageProblem
from carbon_mind.pipeline import Silent
from carbon_mind.settings import load
from tests.cli.test_commands import carbon


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_each_start_is_what_it_says(tiny: Callable[[str], Path], kind: str) -> None:
    settings = load(None, {"model": str(tiny(kind))})
    report = ttft.measure(settings, ("llama", "server"), (128, 512), 2, Silent())
    assert ttft.wrong(report) == []
    by = {(s.engine, s.start, s.length): s for s in report.samples}
    assert set(by) == {
        (engine, start, length)
        for engine in ("llama", "server")
        for start in ttft.START
        for length in (128, 512)
        if (engine, start) != ("llama", "by hand")
    }
    question = by["llama", "hot", 128].evaluated
    assert by["llama", "cold", 512].evaluated == 512 + question
    assert by["llama", "restored", 512].evaluated == question
    assert len(report.samples) == 2 * len(by)
    assert all(size.bytes > 0 for size in report.sizes)
    assert {engine.name for engine in report.engines} == {"llama", "server"}


def test_a_start_that_was_none_is_told(tiny: Callable[[str], Path]) -> None:
    settings = load(None, {"model": str(tiny("dense"))})
    report = ttft.measure(settings, ("llama",), (128,), 1, Silent())
    cold, restored, hot = report.samples
    lied = replace(report, samples=(replace(cold, start="restored"), restored, replace(hot, said="other")))
    first, second = ttft.wrong(lied)
    assert "128 tokens, restored" in first
    assert "answers differ" in second


def test_the_context_bounds_the_lengths(tiny: Callable[[str], Path]) -> None:
    with pytest.raises(UsageProblem, match="holds none"):
        ttft.measure(load(None, {"model": str(tiny("dense"))}), ("llama",), (1 << 20,), 1, Silent())


def test_the_command_prints_a_table_and_json(tiny: Callable[[str], Path]) -> None:
    args = ("bench", "ttft", "--model", str(tiny("dense")), "--repeat", "1", "--lengths", "128,256")
    shown = carbon(*args)
    assert shown.returncode == 0, shown.stderr
    assert "restoring pays below, tokens/s" in shown.stdout
    raw = json.loads(carbon(*args, "--engine", "server", "--json").stdout)
    assert raw["lengths"] == [128, 256]
    assert {sample["start"] for sample in raw["samples"]} == set(ttft.START)
    for wrong in (("--lengths", "x"), ("--engine", "none")):
        assert carbon(*args, *wrong).returncode == 2


def test_quick_is_quick_in_tokens(tiny: Callable[[str], Path]) -> None:
    raw = json.loads(carbon("bench", "ttft", "--quick", "--model", tiny("dense"), "--json").stdout)
    assert raw["lengths"] == [256, 1024]
    assert sum(sample["evaluated"] for sample in raw["samples"]) < 3 * 2 * (256 + 1024) + 3 * 14 * 64
