"""git is asked, and nothing of the repository runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.repo import git
from carbon_mind.repo.scan import scan
from tests.conftest import Repository


def _trap(repository: Repository, name: str) -> tuple[str, Path]:
    """A program that leaves a file behind when it is started, and that file."""
    fired = repository.path.parent / f"{name}-ran"
    program = repository.path.parent / name
    program.write_text(f"#!/bin/sh\necho > '{fired}'\ncat\n")
    program.chmod(0o755)
    return str(program), fired


def _old(path: Path) -> None:
    os.utime(path, (1_600_000_000, 1_600_000_000))


@pytest.mark.skipif(sys.platform == "win32", reason="the traps are shell scripts")
def test_no_program_of_the_repository_runs(sample: Repository) -> None:
    """Hooks, fsmonitor, clean and process filters, also with names that an option could not carry."""
    fsmonitor, fsmonitor_ran = _trap(sample, "fsmonitor")
    hook, hook_ran = _trap(sample, "hook")
    clean, clean_ran = _trap(sample, "clean")
    process, process_ran = _trap(sample, "process")
    sample.git("config", "core.fsmonitor", fsmonitor)
    sample.write(".git/hooks/post-index-change", Path(hook).read_text()).chmod(0o755)
    sample.write(".git/hooks/fsmonitor-watchman", Path(hook).read_text()).chmod(0o755)
    sample.git("config", "filter.one=a.b.clean", clean)
    sample.git("config", "filter.one=a.b.required", "true")
    sample.git("config", "filter.two.process", process)
    sample.git("config", "filter.two.clean", clean)
    sample.git("config", "filter.two.required", "true")
    sample.write(".git/info/attributes", "sample/core.py filter=one=a.b\nsample/cli.py filter=two\n")
    for path in ("sample/core.py", "sample/cli.py"):
        _old(sample.path / path)  # the content is the same, so git must look inside to know
    with (sample.path / "sample/server.py").open("a") as file:
        file.write("# changed\n")

    found = scan(sample.path)
    assert found.kind == "git"
    assert [fired for fired in (fsmonitor_ran, hook_ran, clean_ran, process_ran) if fired.exists()] == []
    blobs = {str(file.path): file.blob for file in found.files}
    assert blobs["sample/core.py"] == sample.git("rev-parse", "HEAD:sample/core.py").strip()
    assert blobs["sample/server.py"] != sample.git("rev-parse", "HEAD:sample/server.py").strip()

    # The traps do work: plain `git status` springs them.
    subprocess.run(["git", "status"], cwd=sample.path, capture_output=True, check=False)
    assert process_ran.exists()
    sample.write(".git/info/attributes", "sample/core.py filter=one=a.b\n")
    subprocess.run(["git", "status"], cwd=sample.path, capture_output=True, check=False)
    assert clean_ran.exists()
    assert fsmonitor_ran.exists()


def test_the_variables_of_a_surrounding_hook_are_ignored(
    sample: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.write("other.py", "x = 1\n")
    other.commit()
    before = scan(sample.path)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    monkeypatch.setenv("GIT_PREFIX", "sample/")
    assert scan(sample.path) == before


def test_settings_of_the_environment_stay(sample: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ours are added to those that the user passes in the same way."""
    ignore = tmp_path / "ignore"
    ignore.write_text("local.py\n")
    sample.write("local.py", "x = 1\n")
    sample.git("config", "filter.x.clean", "false")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.excludesFile")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(ignore))
    assert git.status(sample.path).untracked == ()
    monkeypatch.delenv("GIT_CONFIG_COUNT")
    assert git.status(sample.path).untracked == ("local.py",)


def test_the_index_is_not_written(sample: Repository) -> None:
    index = sample.path / ".git/index"
    _old(sample.path / "sample/core.py")
    before = index.read_bytes()
    git.status(sample.path)
    assert index.read_bytes() == before


def test_a_reason_is_gits_own_first_line(tmp_path: Path) -> None:
    with pytest.raises(git.GitFailed) as caught:
        git.run(tmp_path, "rev-parse", "--show-toplevel")
    assert caught.value.reason.startswith("not a git repository")
    assert str(caught.value) == caught.value.reason
    assert not caught.value.bare


def test_status_and_index_as_values(sample: Repository) -> None:
    sample.write("sample/core.py", "changed = 1\n")
    (sample.path / "sample/cli.py").unlink()
    sample.write("new one.py", "")
    sample.git("mv", "README.md", "READ ME.md")
    found = git.status(sample.path)
    assert found.changed == {"sample/core.py"}
    assert found.deleted == {"sample/cli.py"}
    assert found.untracked == ("new one.py",)
    assert [entry.path for entry in git.index(sample.path)][:2] == ["READ ME.md", "pyproject.toml"]
    assert {(entry.mode, entry.stage, len(entry.blob)) for entry in git.index(sample.path)} == {("100644", 0, 40)}


@pytest.mark.parametrize("place", ["elsewhere", "parent"])
def test_a_working_tree_that_the_configuration_moves_is_refused(sample: Repository, tmp_path: Path, place: str) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "private.py").write_text("x = 1\n")
    sample.git("config", "core.worktree", str(target if place == "elsewhere" else tmp_path))
    with pytest.raises(git.GitFailed, match="elsewhere"):
        git.toplevel(sample.path)
    found = scan(sample.path)
    assert found.kind == "plain"
    assert found.root == sample.path.resolve()
    assert not any("private" in file.path for file in found.files)
