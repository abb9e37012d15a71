"""Case 10: submodules, nested and bare repositories, no git, a refusal of git; and nothing of the repository is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Repository
from tests.hostile.conftest import Heard, carbon, digest_of, distil, skipped


def test_submodule_and_nested_repository_are_named(sample: Repository, tmp_path: Path) -> None:
    before = distil(sample.path, tmp_path / "cache")
    inner = Repository(tmp_path / "inner")
    inner.write("inner.py", "def inner() -> None:\n    # FIXME: inner\n    pass\n")
    inner.commit()
    sample.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "module")
    Repository(sample.path / "nested").write("nested.py", "def nested() -> None: ...\n")
    mind = distil(sample.path, tmp_path / "cache")
    assert skipped(mind) == {"nested repository": 1, "submodule": 1}
    assert digest_of(mind).critical_files == digest_of(before).critical_files
    assert "inner" not in mind.markdown
    own = distil(sample.path / "module", tmp_path / "cache")
    assert (digest_of(own).coverage.parsed, own.root) == (1, (sample.path / "module").resolve())


def test_a_worktree_has_a_mind_of_its_own(sample: Repository, tmp_path: Path) -> None:
    sample.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side/sample/core.py").write_text("def different() -> None: ...\n")
    main, side = distil(sample.path, tmp_path / "cache"), distil(tmp_path / "side", tmp_path / "cache")
    assert main.json != side.json
    assert main.folder.path != side.folder.path
    assert not distil(sample.path, tmp_path / "cache").built


def test_bare_unborn_empty_and_missing(repository: Repository, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    (tmp_path / "file").write_text("x")
    (tmp_path / "nothing").mkdir()
    for where, words in (
        (tmp_path / "bare", "bare"),
        (repository.path, "no files"),
        (tmp_path / "nothing", "no files"),
        (tmp_path / "file", "not a directory"),
        (tmp_path / "missing", "does not exist"),
    ):
        found = carbon("mind", where)
        assert found.returncode != 0, where
        assert words in found.stderr, found.stderr
        assert not (where / ".carbon").exists() if where.is_dir() else True
    repository.write("a.py", "def f() -> None: ...\n")  # unborn HEAD, nothing in the index
    assert digest_of(distil(repository.path, tmp_path / "cache")).coverage.parsed == 1
    repository.git("add", "--all")
    assert not distil(repository.path, tmp_path / "cache").built


def test_no_git_at_all(sample: Repository, tmp_path: Path) -> None:
    """Neither a git folder nor the program; what differs is said, not hidden."""
    expected = distil(sample.path, tmp_path / "cache")
    plain = tmp_path / "plain"
    shutil.copytree(sample.path, plain, ignore=shutil.ignore_patterns(".git", ".carbon"))
    heard = Heard()
    found = distil(plain, tmp_path / "cache-plain", report=heard)
    assert found.markdown == expected.markdown
    assert heard.notices == ["not a git repository: read as a plain directory"]
    (tmp_path / "bin").mkdir()
    without = carbon("mind", "--print", sample.path, env={"PATH": str(tmp_path / "bin")})
    assert without.returncode == 0, without.stderr
    assert without.stdout == carbon("mind", "--print", sample.path).stdout
    assert "git is not installed" in without.stderr


@pytest.mark.skipif(
    os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away"
)
def test_git_refuses_a_stranger_s_folder(sample: Repository, tmp_path: Path) -> None:
    for path in (sample.path, *sample.path.rglob("*")):
        os.chown(path, 12345, 12345)
    heard = Heard()
    mind = distil(sample.path, tmp_path / "cache", report=heard)
    assert digest_of(mind).coverage.parsed == 5
    assert any("refuses" in notice for notice in heard.notices)


def test_a_damaged_git_folder(sample: Repository, tmp_path: Path) -> None:
    expected = distil(sample.path, tmp_path / "cache").markdown
    (sample.path / ".git/index").write_bytes(b"DIRC" + b"\xff" * 60)
    heard = Heard()
    assert distil(sample.path, tmp_path / "cache-1", report=heard).markdown == expected
    assert len(heard.notices) == 1
    (sample.path / ".git/HEAD").write_text("nonsense\n")
    assert distil(sample.path, tmp_path / "cache-2").markdown == expected
    shutil.rmtree(sample.path / ".git")
    (sample.path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert distil(sample.path, tmp_path / "cache-3").markdown == expected


@pytest.mark.skipif(os.name != "posix", reason="the traps are shell scripts")
def test_nothing_of_the_repository_runs(sample: Repository, tmp_path: Path) -> None:
    """Hooks, fsmonitor, filters, textconv, pager, editor, aliases, credential helpers, ssh and external diffs: all are traps."""
    trap = tmp_path / "trap"
    sprung = tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{sprung}'\ncat\n")
    trap.chmod(0o755)
    hooks = sample.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in (
        "post-index-change",
        "pre-commit",
        "fsmonitor-watchman",
        "post-checkout",
        "reference-transaction",
        "sendemail-validate",
    ):
        shutil.copy(trap, hooks / hook)
    for name, value in {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(hooks),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "core.sshCommand": str(trap),
        "core.askPass": str(trap),
        "core.alternateRefsCommand": str(trap),
        "credential.helper": str(trap),
        "diff.external": str(trap),
        "diff.x.textconv": str(trap),
        "diff.x.command": str(trap),
        "merge.x.driver": str(trap),
        "filter.x.clean": str(trap),
        "filter.x.smudge": str(trap),
        "filter.x.process": str(trap),
        "filter.x.required": "true",
        "filter.a=b.clean": str(trap),
        "gpg.program": str(trap),
        "gpg.ssh.program": str(trap),
        "pager.status": "true",
        "alias.status": f"!{trap}",
        "alias.ls-files": f"!{trap}",
        "alias.rev-parse": f"!{trap}",
        "remote.origin.url": f"ext::{trap}",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "remote.origin.uploadpack": str(trap),
        "protocol.ext.allow": "always",
        "status.submoduleSummary": "true",
        "submodule.recurse": "true",
        "trace2.eventTarget": str(tmp_path / "trace"),
        "include.path": str(tmp_path / "included"),
    }.items():
        sample.git("config", name, value)
    sample.write(".gitattributes", "*.py filter=x diff=x merge=x\n*.md filter=a=b\n")
    for file in sample.path.rglob("*.py"):
        os.utime(file, (10**9, 10**9))  # git must look again, and would filter
    sample.write("sample/new.py", "x = 1\n")
    sample.write("sample/core.py", "def changed() -> None: ...\n")
    for script in (
        "setup.py",
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "carbon_mind.py",
        "json.py",
        "typing.py",
    ):
        sample.write(script, f"open({str(sprung)!r}, 'a').write(__file__)\n")
    sprung.unlink(missing_ok=True)
    here = carbon("mind", "--full", cwd=sample.path, env={"PYTHONSAFEPATH": "1"})
    assert here.returncode == 0, here.stderr
    assert not sprung.exists(), sprung.read_text()
    assert digest_of(distil(sample.path, tmp_path / "cache", full=True)).coverage.parsed >= 6
    assert not sprung.exists(), sprung.read_text()


def test_a_surrounding_git_hook_does_not_choose_the_repository(
    sample: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = distil(sample.path, tmp_path / "cache").json
    other = Repository(tmp_path / "other")
    other.write("other.py", "def other() -> None: ...\n")
    other.commit()
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    assert distil(sample.path, tmp_path / "cold", full=True).json == expected


def test_a_configuration_cannot_choose_another_folder(sample: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.py").write_text("def private_thing() -> None: ...\n")
    sample.git("config", "core.worktree", str(outside))
    mind = distil(sample.path, tmp_path / "cache")
    assert "private" not in mind.markdown
    assert digest_of(mind).coverage.parsed == 5
    assert not (outside / ".carbon").exists()


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_bits_that_make_git_look_away(sample: Repository, tmp_path: Path, bit: str) -> None:
    """git calls such a file unchanged whatever is in it. Its tags must not be kept under the id of other bytes."""
    original = (sample.path / "sample/core.py").read_bytes()
    sample.git("update-index", bit, "sample/core.py")
    distil(sample.path, tmp_path / "first")
    shutil.rmtree(sample.path / ".carbon")
    sample.write("sample/core.py", "def other_content() -> None: ...\n")
    distil(sample.path, tmp_path / "cache")  # whatever it says of this state
    sample.git("update-index", bit.replace("--", "--no-"), "sample/core.py")
    sample.write("sample/core.py", original)
    again = distil(sample.path, tmp_path / "cache")
    cold = distil(sample.path, tmp_path / "cache", full=True)
    assert (again.json, again.markdown) == (cold.json, cold.markdown)
