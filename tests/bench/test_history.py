"""What a digest named of the files that the next commit changed: counted on histories that are made for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carbon_mind.bench.commands import check
from carbon_mind.bench.history import DIGEST, FREQUENT, RANDOM, bootstrapped, measure, named
from carbon_mind.errors import RepositoryProblem, UsageProblem
from carbon_mind.settings import load
from carbon_mind.values import Command
from tests.cli.test_commands import carbon
from tests.conftest import Repository


@pytest.fixture
def history(sample: Repository) -> Repository:
    """Twelve commits: core.py changes in most, a test and a new file in others."""
    for number in range(6):
        with (sample.path / "sample" / "core.py").open("a") as file:
            file.write(f"\n\ndef step_{number}(engine: Engine) -> Engine:\n    return engine\n")
        sample.commit(f"core {number}")
    sample.write("tests/test_core.py", "def test_nothing() -> None: ...\n")
    sample.commit("only a test")
    sample.write("sample/new.py", "from sample.core import Engine\n\n\ndef fresh(engine: Engine) -> None: ...\n")
    sample.commit("only a new file")
    sample.write("README.md", "# changed\n")
    sample.commit("only words")
    sample.write(
        "sample/cli.py", "from sample.core import build_engine\n\n\ndef main() -> None:\n    build_engine('z')\n"
    )
    sample.write(
        "sample/core.py", "class Engine: ...\n\n\ndef build_engine(name: str) -> Engine:\n    return Engine()\n"
    )
    sample.commit("two files")
    return sample


def test_only_files_of_its_own_code_that_were_there_count(history: Repository) -> None:
    report = measure(history.path, load(None, {}), commits=50)
    assert [sample.changed for sample in report.samples] == [
        ("sample/cli.py", "sample/core.py"),
        *[("sample/core.py",)] * 6,
    ]
    assert report.commits == 7
    first = report.samples[0].hits[DIGEST]
    assert (first.covered, first.component) == (2, 2), "both files are critical in a project of four"
    assert {line.name for line in report.lines} == {DIGEST, FREQUENT, RANDOM}
    digest, frequent, _ = report.lines
    assert digest.covered.mean == 1.0
    assert digest.ahead is None
    assert frequent.covered.mean < 1, "the oldest commit has nothing before it but the first"
    assert frequent.ahead is not None
    assert frequent.ahead.mean == pytest.approx(digest.covered.mean - frequent.covered.mean)
    for sample in report.samples:
        tokens = {name: hit.tokens for name, hit in sample.hits.items()}
        assert max(tokens.values()) == tokens[DIGEST], "nobody gets more tokens than the digest"


def test_the_repository_is_only_read(history: Repository) -> None:
    before = history.git("status", "--porcelain", "--ignored"), history.git("rev-parse", "HEAD")
    measure(history.path, load(None, {}), commits=2)
    assert (history.git("status", "--porcelain", "--ignored"), history.git("rev-parse", "HEAD")) == before
    assert not (history.path / ".carbon").exists()


def test_the_same_seed_gives_the_same_figures(history: Repository) -> None:
    first, again = (measure(history.path, load(None, {}), commits=5, seed=3) for _ in range(2))
    assert first == again


def test_a_peer_is_any_command(history: Repository) -> None:
    report = measure(history.path, load(None, {}), commits=3, peers={"all": "git ls-files", "none": "true"})
    lines = {line.name: line for line in report.lines}
    assert lines["all"].covered.mean == 1.0
    assert lines["none"].covered.mean == 0.0
    with pytest.raises(UsageProblem, match="failed"):
        measure(history.path, load(None, {}), commits=3, peers={"bad": "false"})
    with pytest.raises(UsageProblem, match="cannot be run"):
        measure(history.path, load(None, {}), commits=3, peers={"bad": "/no/such/tool"})


def test_a_history_without_anything_to_count(repository: Repository, tmp_path: Path) -> None:
    repository.write("README.md", "x\n")
    repository.commit()
    with pytest.raises(RepositoryProblem, match="no commit"):
        measure(repository.path, load(None, {}), commits=5)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.py").write_text("x = 1\n")
    with pytest.raises(RepositoryProblem):
        measure(plain, load(None, {}), commits=5)


def test_a_path_is_named_as_a_whole_word() -> None:
    paths = frozenset(("a/b.py", "b.py", "c.py", "d/e.c"))
    assert named("see `a/b.py:12`, (c.py) and x/d/e.c", paths) == {"a/b.py", "c.py"}
    assert named("d/e.c:\n", paths) == {"d/e.c"}


def test_the_bootstrap_holds_the_mean() -> None:
    share = bootstrapped([0.0, 1.0] * 20, 1)
    assert share.mean == 0.5
    assert 0.3 < share.low < 0.5 < share.high < 0.7
    assert bootstrapped([1.0], 1) == bootstrapped([1.0], 2)


def test_the_command_prints_a_table_and_json(history: Repository) -> None:
    shown = carbon("bench", "mind", "--commits", "4", "--peer", "all=git ls-files", cwd=history.path)
    assert shown.returncode == 0, shown.stderr
    assert "4 commits, mean" in shown.stdout
    assert "carbon bench mind" in shown.stdout or "bench mind" in shown.stdout
    assert str(history.path) not in shown.stdout
    raw = json.loads(carbon("bench", "mind", "--commits", "4", "--json", cwd=history.path).stdout)
    assert len(raw["samples"]) == raw["commits"] == 4
    assert raw["machine"]
    wrong = carbon("bench", "mind", "--peer", "nothing", cwd=history.path)
    assert wrong.returncode == 2
    assert "commands" in raw


def test_commands_exist_and_start_where_they_do(history: Repository) -> None:
    history.write("Makefile", "test:\n\ttrue\nlint:\n\tno-such-program-at-all\nserve:\n\tsleep 60\n")
    history.commit("make")
    commands = (
        Command("test", "make test", "Makefile:1"),
        Command("lint", "no-such-program-at-all --fix", "Makefile:99"),
        Command("run", "FAST=1 sleep 60", "Makefile"),
        Command("build", "cd sample && ./build.sh", "gone.toml:1"),
    )
    before = history.git("status", "--porcelain")
    looked = check(history.path, commands, run=False)
    assert [(item.program, item.shown, item.found) for item in looked] == [
        ("make", True, True),
        ("no-such-program-at-all", False, False),
        ("sleep", True, True),
        ("./build.sh", False, False),
    ]
    assert not any(item.started for item in looked)
    told: list[str] = []
    ran = check(history.path, commands, run=True, seconds=2, before=told.append)
    assert [item.status for item in ran] == [0, 127, None, 127]
    assert [item.started for item in ran] == [True, False, True, False]
    assert told == [command.command for command in commands]
    assert history.git("status", "--porcelain") == before
