"""`carbon store` and `carbon why` as a person runs them, on snapshots of the real llama.cpp and a tiny model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import carbon
from tests.conftest import Repository

CHANGE = ("Makefile", "test:\n\tpytest\n")


@pytest.fixture
def model(tiny: Callable[[str], Path]) -> Path:
    return tiny("dense")


@pytest.fixture
def warm(sample: Repository, model: Path) -> Repository:
    assert carbon("warm", "--model", model, cwd=sample.path).returncode == 0
    return sample


@pytest.fixture
def folder(private_home: Path) -> Path:
    return private_home / "cache" / "snapshots"


def snapshots(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kv"), key=lambda path: path.stat().st_size)


# --- store -------------------------------------------------------------------------------------------------------


def test_list_shows_layers_by_model_and_repository(warm: Repository, folder: Path) -> None:
    found = json.loads(carbon("store", "list", "--json").stdout)
    assert found["folder"] == str(folder)
    assert found["budget"] == 4096 << 20
    rows = {row["labels"]["layer"]: row for row in found["snapshots"]}
    assert set(rows) == {"base", "digest"}
    assert rows["base"]["labels"] == {"layer": "base", "model": "dense.gguf"}
    assert rows["digest"]["labels"]["repository"] == warm.path.name
    assert rows["digest"]["start"] == rows["base"]["tokens"]
    assert sum(row["bytes"] for row in rows.values()) <= found["bytes"]
    assert {row["name"] for row in rows.values()} == {path.name for path in snapshots(folder)}
    table = carbon("store", "list")
    assert table.returncode == 0
    assert rows["base"]["name"][:12] in table.stdout
    assert "dense.gguf" in table.stdout
    assert "2 snapshots" in table.stderr


def test_an_empty_store_is_no_error() -> None:
    for command in ("list", "verify", "gc", "purge"):
        done = carbon("store", command)
        assert done.returncode == 0, done.stderr
    assert json.loads(carbon("store", "list", "--json").stdout)["snapshots"] == []


def test_verify_names_what_is_damaged_sets_it_aside_and_ends_with_6(
    warm: Repository, model: Path, folder: Path
) -> None:
    assert carbon("store", "verify").stdout.startswith("store: 2 snapshots are whole")
    path = snapshots(folder)[0]
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(bytes(data))
    done = carbon("store", "verify")
    assert done.returncode == 6
    assert f"damaged {path.name[:12]}: the payload is damaged: wrong checksum" in done.stdout
    assert "carbon store gc" in done.stderr
    assert not path.exists()
    again = carbon("warm", "--model", model, cwd=warm.path)
    assert again.returncode == 0
    assert carbon("store", "gc").stdout.startswith("store: removed 1 files")
    found = json.loads(carbon("store", "verify", "--json").stdout)
    assert (found["verified"], found["damaged"], found["unfinished"]) == (2, {}, [])


def test_a_snapshot_of_an_old_format_is_named_and_collected(warm: Repository, folder: Path) -> None:
    old = folder / ("5" * 64 + ".kv")
    shutil.copy(Path(__file__).parents[1] / "store" / "version1.kv", old)
    done = carbon("store", "verify")
    assert done.returncode == 0
    assert "1 snapshots have an old format" in done.stderr
    removed = json.loads(carbon("store", "gc", "--json").stdout)
    assert list(removed["removed"]) == [old.name]
    assert len(snapshots(folder)) == 2


def test_purge_takes_what_was_asked_for(warm: Repository, model: Path, folder: Path, tmp_path: Path) -> None:
    assert json.loads(carbon("store", "purge", "--model", "llama", "--json").stdout)["removed"] == {}
    only = json.loads(carbon("store", "purge", "--repository", warm.path.name, "--json").stdout)
    assert len(only["removed"]) == 1
    assert len(snapshots(folder)) == 1, "the base serves others"
    carbon("warm", "--model", model, cwd=warm.path)
    everything = json.loads(carbon("store", "purge", "--model", "DENSE", "--json").stdout)
    assert len([name for name in everything["removed"] if name.endswith(".kv")]) == 2
    assert snapshots(folder) == []
    carbon("warm", "--model", model, cwd=warm.path)
    carbon("store", "purge")
    assert [path for path in folder.rglob("*.json") if path.name != "bandwidth.json"] == [], "nor what was said of them"


def test_a_budget_is_kept_before_writing(sample: Repository, model: Path, folder: Path) -> None:
    done = carbon("warm", "--model", model, cwd=sample.path, env={**os.environ, "CARBON_STORE_BUDGET_MIB": "1"})
    assert done.returncode == 0
    sizes = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    assert sizes <= 1 << 20
    big = carbon("warm", "--fresh", "--model", model, cwd=sample.path)
    assert big.returncode == 0


def test_a_store_that_cannot_be_used_starts_cold_with_one_line(
    sample: Repository, model: Path, private_home: Path
) -> None:
    cache = private_home / "cache"
    cache.mkdir()
    (cache / "snapshots").write_text("in the way")
    for command in (("warm",), ("ask", "Why?", "--max-tokens", "2")):
        done = carbon(*command, "--model", model, cwd=sample.path)
        assert done.returncode == 0, done.stderr
        assert "nothing can be restored or stored" in done.stderr
    refused = carbon("store", "list")
    assert refused.returncode == 6
    assert "snapshots" in refused.stderr


# --- why ---------------------------------------------------------------------------------------------------------


def test_why_explains_the_first_the_unchanged_and_the_changed(warm: Repository, model: Path) -> None:
    first = carbon("why", cwd=warm.path).stdout
    assert "dense.gguf: miss" in first
    assert "why:      nothing has been stored yet" in first
    assert "lost:" in first
    carbon("warm", "--model", model, cwd=warm.path)
    ready = carbon("why", cwd=warm.path).stdout
    assert "hit (nothing to do)" in ready
    assert "saved:" in ready
    carbon("warm", "--prove", "--model", model, cwd=warm.path)
    hit = carbon("why", cwd=warm.path).stdout
    assert ": hit\n" in hit
    assert " 0 evaluated;" in hit
    assert "clocks:   read and verify" in hit
    warm.write(*CHANGE)
    carbon("warm", "--model", model, cwd=warm.path)
    changed = carbon("why", cwd=warm.path).stdout
    assert "partial hit" in changed
    assert "in digest: Commands" in changed
    assert "  stored: " in changed
    assert "  now:    " in changed
    told = json.loads(carbon("why", "--json", cwd=warm.path).stdout)
    assert told["result"]["miss"]["difference"]["where"] == "digest: Commands"
    assert told["lost_tokens"] == told["result"]["evaluated"] > 0
    assert told["lost_s"] == told["result"]["clocks"]["prefill_s"] > 0


def test_why_names_the_field_of_another_setup_with_both_values(warm: Repository, model: Path) -> None:
    env = {**os.environ, "CARBON_TYPE_K": "f32"}
    carbon("warm", "--model", model, cwd=warm.path, env=env)
    text = carbon("why", cwd=warm.path).stdout
    assert "changed:  type_k: f16 -> f32" in text
    assert json.loads(carbon("why", "--json", cwd=warm.path).stdout)["result"]["miss"]["changes"] == [
        {"field": "type_k", "old": "f16", "new": "f32"}
    ]


def test_why_after_ask_names_the_command(sample: Repository, model: Path) -> None:
    carbon("ask", "Why?", "--max-tokens", "2", "--model", model, cwd=sample.path)
    assert "carbon ask, dense.gguf: miss" in carbon("why", cwd=sample.path).stdout


def test_why_without_a_warm_start_says_what_to_run(sample: Repository) -> None:
    done = carbon("why", cwd=sample.path)
    assert done.returncode == 2
    assert "run `carbon warm`" in done.stderr.lower()


def test_two_snapshots_or_token_lists_are_compared(warm: Repository, model: Path, folder: Path, tmp_path: Path) -> None:
    warm.write(*CHANGE)
    carbon("warm", "--model", model, cwd=warm.path)
    rows = json.loads(carbon("store", "list", "--json").stdout)["snapshots"]
    new, old = [row["name"][:16] for row in rows if row["labels"]["layer"] == "digest"]
    found = json.loads(carbon("why", "--tokens", old, new, "--model", model, "--json", cwd=warm.path).stdout)
    assert (found["same"], found["where"], found["changes"]) == (False, "digest: Commands", [])
    assert 0 < found["shared"] < min(found["tokens"])
    assert found["lost_tokens"] == found["tokens"][1] - found["shared"]
    assert found["text"][0] != found["text"][1]
    text = carbon("why", "--tokens", old, new, "--model", model, cwd=warm.path).stdout
    assert f"differs:  from token {found['shared']:,} on, in digest: Commands" in text
    same = carbon("why", "--tokens", old, folder / f"{new}.kv", "--model", model, cwd=warm.path)
    assert same.returncode == 0, "the path of a snapshot names it too"

    left, right = tmp_path / "left.json", tmp_path / "right.json"
    left.write_text("[1, 2, 36]")
    right.write_text("[1, 2, 103, 104]")
    plain = json.loads(carbon("why", "--tokens", left, right, "--model", model, "--json", cwd=warm.path).stdout)
    assert (plain["shared"], plain["ids"], plain["text"]) == (2, [[36], [103, 104]], ["$", "gh"])
    assert json.loads(carbon("why", "--tokens", left, left, "--json", cwd=warm.path).stdout)["same"] is True


def test_tokens_of_another_model_are_not_read_with_this_ones_words(
    warm: Repository, tiny: Callable[[str], Path], folder: Path
) -> None:
    left, right = (path.stem[:16] for path in snapshots(folder))
    done = carbon("why", "--tokens", left, right, "--model", tiny("hybrid"), cwd=warm.path)
    assert done.returncode == 0
    assert "shown as token ids: of the model dense.gguf; give it with --model" in done.stderr.lower()


def test_what_cannot_be_compared_is_a_usage_error(warm: Repository, model: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.json"
    noise.write_text('{"a": 1}')
    for given in (noise, "nothing", ""):
        done = carbon("why", "--tokens", given, given, "--model", model, cwd=warm.path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_why_without_a_model_shows_ids(warm: Repository, tmp_path: Path) -> None:
    left, right = tmp_path / "left.json", tmp_path / "right.json"
    left.write_text("[1, 2]")
    right.write_text("[1, 3]")
    done = carbon("why", "--tokens", left, right, cwd=warm.path)
    assert done.returncode == 0
    assert "shown as token ids" in done.stderr
    assert '"2"' in done.stdout
