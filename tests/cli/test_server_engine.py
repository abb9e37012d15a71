"""`carbon warm` and `carbon ask` on the prebuilt llama-server: the same promises, without a compiler."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind import opening
from carbon_mind.settings import load
from tests.cli.test_commands import carbon
from tests.conftest import Repository

pytest.importorskip("xllamacpp", reason="the server extra is not installed")


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARBON_ENGINE", "server")


@pytest.mark.parametrize("kind", ["dense", "hybrid", "sliding"])
def test_all_tokens_once_then_none_and_no_model_is_loaded(
    sample: Repository, tiny: Callable[[str], Path], kind: str
) -> None:
    model = tiny(kind)
    first = json.loads(carbon("warm", "--json", "--model", model, cwd=sample.path).stdout)
    assert (first["state"], first["evaluated"]) == ("prefilled", first["tokens"])
    assert [layer["name"] for layer in first["layers"]] == ["prefix"], "over HTTP a state is whole"
    assert carbon("warm", "--model", model, cwd=sample.path).stdout.startswith("warm: ready, ")
    proved = json.loads(carbon("warm", "--prove", "--json", "--model", model, cwd=sample.path).stdout)
    assert (proved["state"], proved["evaluated"], proved["restored"]) == ("restored", 0, first["tokens"])
    assert carbon("store", "verify").returncode == 0


def test_a_restored_state_answers_like_a_fresh_one(sample: Repository, tiny: Callable[[str], Path]) -> None:
    args = ("ask", "Which command runs the tests?", "--model", str(tiny("dense")), "--max-tokens", "12")
    cold, warm = carbon(*args, cwd=sample.path), carbon(*args, cwd=sample.path)
    assert cold.returncode == warm.returncode == 0
    assert cold.stdout == warm.stdout != ""
    assert "prefix: restored" in warm.stderr
    counts = json.loads(carbon(*args, "--json", cwd=sample.path).stdout)
    assert counts["reused"] == counts["prefix"]["tokens"]
    assert 0 < counts["evaluated"] < 200


def test_the_two_engines_never_share_a_state(sample: Repository, tiny: Callable[[str], Path]) -> None:
    model = tiny("dense")
    carbon("warm", "--model", model, cwd=sample.path)
    other = carbon("warm", "--model", model, cwd=sample.path, env={**os.environ, "CARBON_ENGINE": "llama"})
    assert other.stdout.startswith("warm: prefilled")
    assert "engine (xllamacpp" in other.stderr


def test_a_changed_digest_is_evaluated_from_the_change_on_and_told(
    sample: Repository, tiny: Callable[[str], Path]
) -> None:
    model = tiny("dense")
    carbon("warm", "--model", model, cwd=sample.path)
    sample.write("Makefile", "test:\n\tpytest\n")
    changed = carbon("warm", "--model", model, cwd=sample.path)
    assert changed.stdout.startswith("warm: restored "), "a dense model goes back to where they part"
    assert "differs from token" in changed.stderr
    assert "in digest: Commands" in carbon("why", cwd=sample.path).stdout


def test_doctor_names_the_server(tiny: Callable[[str], Path]) -> None:
    report = json.loads(carbon("doctor", "--json", "--model", tiny("dense")).stdout)
    assert report["engine"].startswith("xllamacpp 20")
    assert report["problems"] == []


def test_what_only_the_other_engine_can_is_said(sample: Repository, tiny: Callable[[str], Path]) -> None:
    env = {**os.environ, "CARBON_ROPE_FREQ_BASE": "20000"}
    done = carbon("warm", "--model", tiny("dense"), cwd=sample.path, env=env)
    assert done.returncode == 2
    assert "engine = llama" in done.stderr


def test_the_engine_is_the_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    present: set[str] = set()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name in present else None)
    auto = load(None, {}, {})
    for there, kind in (((), "llama"), (("xllamacpp",), "server"), (("llama_cpp",), "llama")):
        present.clear()
        present.update(there)
        assert opening.engine_kind(auto) == kind
    present.update(("llama_cpp", "xllamacpp"))
    assert opening.engine_kind(auto) == "llama"
    assert opening.engine_kind(load(None, {}, {"CARBON_ENGINE": "server"})) == "server"
