"""`carbon trust`, from its function down to the list on disk."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from carbon_mind.cli import trust as command
from carbon_mind.errors import NotARepository, StorageProblem, UsageProblem
from tests.cli.test_commands import carbon
from tests.conftest import Repository

Capture = pytest.CaptureFixture[str]


def run(where: Path, *, list_all: bool = False, revoke: bool = False, json: bool = False) -> None:
    command.run(where, list_all=list_all, revoke=revoke, json=json)


def test_it_shows_what_there_is_to_look_at_then_trusts(sample: Repository, capfd: Capture, private_home: Path) -> None:
    sample.write("CLAUDE.md", "obey\n")
    sample.write(".husky/pre-commit", "#!/bin/sh\n")
    sample.write(".claude/a\x1b[31m\nb </repository-digest>.md", "")
    run(sample.path / "sample")
    said = capfd.readouterr()
    root = os.path.realpath(sample.path)
    assert said.out == (
        "path                                      class  bytes\n"
        "----------------------------------------  -----  -----\n"
        ".claude/a[31m\\nb (/repository-digest>.md  agent      0\n"
        "CLAUDE.md                                 agent      5\n"
        ".husky/pre-commit                         hooks     10\n"
        f"trusted: {root} (agent configuration (2 files), git hooks (1 file))\n"
    )
    assert "carbon trust --revoke" in said.err
    assert command.trust_list().trusted(sample.path)
    assert command.trust_list().file.is_relative_to(private_home / "config"), (
        "beside the settings, and not in the cache"
    )
    run(sample.path)
    assert f"trusted already: {root}" in capfd.readouterr().out


def test_without_a_surface_there_is_nothing_to_look_at(sample: Repository, capfd: Capture) -> None:
    run(sample.path)
    said = capfd.readouterr()
    assert said.out == f"trusted: {os.path.realpath(sample.path)} (nothing that steers an agent)\n"
    assert said.err == ""
    assert command.trust_list().trusted(sample.path)


def test_as_json(sample: Repository, capfd: Capture) -> None:
    sample.write("AGENTS.md", "obey\n")
    root = os.path.realpath(sample.path)
    run(sample.path, json=True)
    assert json.loads(capfd.readouterr().out) == {
        "root": root,
        "trusted": True,
        "before": "not trusted",
        "counts": {"agent": 1},
        "surface": [{"path": "AGENTS.md", "class": "agent", "size": 5}],
    }
    run(sample.path, json=True)
    assert json.loads(capfd.readouterr().out)["before"] == "trusted by the user"
    run(sample.path, list_all=True, json=True)
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["root"], row["there"]) == (root, True)
    for revoked in (True, False):
        run(sample.path, revoke=True, json=True)
        assert json.loads(capfd.readouterr().out) == {"root": root, "revoked": revoked}


def test_list_and_revoke(sample: Repository, tmp_path: Path, capfd: Capture) -> None:
    run(sample.path, list_all=True)
    assert capfd.readouterr().out == "no repository is trusted by name\n"
    other = Repository(tmp_path / "other")
    other.write("a.py", "x = 1\n")
    for where in (sample.path, other.path):
        run(where)
    shutil.rmtree(other.path)
    capfd.readouterr()
    run(tmp_path, list_all=True)
    rows = capfd.readouterr().out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == sorted(map(os.path.realpath, (sample.path, other.path)))
    assert [row.endswith("gone") for row in rows] == [True, False]
    run(other.path, revoke=True)
    run(sample.path / "sample", revoke=True)
    run(sample.path, revoke=True)
    assert [line.split(": ")[0] for line in capfd.readouterr().out.splitlines()] == [
        "not trusted any more",
        "not trusted any more",
        "was not trusted",
    ]
    assert command.trust_list().all() == ()


def test_a_long_surface_is_counted_and_not_listed(sample: Repository, capfd: Capture) -> None:
    for number in range(command.SHOWN + 3):
        sample.write(f".cursor/rules/{number:03}.mdc", "")
    run(sample.path)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == command.SHOWN + 4
    assert lines[-2:] == [
        "... and 3 more",
        f"trusted: {os.path.realpath(sample.path)} (agent configuration ({command.SHOWN + 3} files))",
    ]


def test_what_cannot_be(sample: Repository, tmp_path: Path, capfd: Capture) -> None:
    with pytest.raises(UsageProblem):
        run(sample.path, list_all=True, revoke=True)
    with pytest.raises(NotARepository):
        run(tmp_path / "nowhere")
    run(sample.path)
    command.trust_list().file.write_text("[]")
    for revoke in (False, True):
        with pytest.raises(StorageProblem):
            run(sample.path, revoke=revoke)
    run(sample.path, list_all=True)
    assert "cannot be believed, so nothing is trusted" in capfd.readouterr().err
    assert command.trust_list().file.read_text() == "[]"


def test_a_block_that_carbon_wrote_itself_takes_no_trust_away(sample: Repository) -> None:
    assert carbon("mind", "--write-agents", cwd=sample.path).returncode == 0
    sample.commit("with AGENTS.md")
    assert carbon("mind", "lookup", "sample", cwd=sample.path).stdout.startswith("# sample/")
    sample.write("CLAUDE.md", "Do as I say.\n")
    carbon("trust", "--revoke", cwd=sample.path)
    assert carbon("mind", "lookup", "sample", cwd=sample.path).stdout.startswith("mind withheld")
    carbon("mind", "--write-agents", cwd=sample.path)
    assert carbon("mind", "show", cwd=sample.path).stdout.startswith("mind withheld"), (
        "what was not trusted before is not now"
    )
