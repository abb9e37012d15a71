"""Hooks in real repositories, fired by real git commands: they refresh, they stay out of the way, and they come out again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind import hooks
from carbon_mind.errors import HooksElsewhere, NotARepository, StorageProblem
from tests.conftest import Repository

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the hooks under test are shell scripts and links")

ROOT = Path(__file__).parents[1]


@pytest.fixture
def recorder(tmp_path: Path) -> list[str]:
    """A stand-in for carbon that writes down how it was started, so that a test sees every start."""
    program = tmp_path / "bin dir" / "carbon"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$* in $PWD" >> "{tmp_path}/started"\n')
    program.chmod(0o755)
    return [str(program)]


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something that happens in the background."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def started(tmp_path: Path) -> list[str]:
    log = tmp_path / "started"
    return log.read_text().splitlines() if log.exists() else []


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: content, mode, where links lead."""
    return {
        str(path.relative_to(folder)): (
            path.is_symlink() and str(path.readlink()),
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }


def executable(repository: Repository, path: str, text: str) -> Path:
    file = repository.write(path, text)
    file.chmod(0o755)
    return file


# --- all of it -------------------------------------------------------------------------------------------------


def test_every_git_command_that_changes_files_fires(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    report = hooks.install(sample.path, recorder)
    assert [(hook.name, hook.state, hook.action) for hook in report.hooks] == [
        (name, "installed", "installed") for name in hooks.HOOKS
    ]
    assert report.folder == sample.path / ".git/hooks"

    def fires(expected: str, *args: str) -> None:
        before = len(started(tmp_path))
        sample.git(*args)
        line = f"hook run {expected} in {sample.path}"
        until(lambda: line in started(tmp_path)[before:])

    sample.write("a.py", "a = 1\n")
    sample.git("add", "a.py")
    fires("post-commit", "commit", "--quiet", "-m", "a")
    fires("post-checkout", "checkout", "--quiet", "-b", "side")
    sample.write("b.py", "b = 1\n")
    sample.git("add", "b.py")
    fires("post-commit", "commit", "--quiet", "-m", "b")
    fires("post-rewrite", "commit", "--quiet", "--amend", "-m", "b again")
    fires("post-checkout", "checkout", "--quiet", "main")
    fires("post-merge", "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    fires("post-checkout", "checkout", "--quiet", "HEAD~1", "--", "a.py")


def test_installing_twice_changes_nothing_and_removing_restores(sample: Repository, recorder: list[str]) -> None:
    before = tree(sample.path / ".git/hooks")
    hooks.install(sample.path, recorder)
    after = tree(sample.path / ".git/hooks")
    again = hooks.install(sample.path, recorder)
    assert {hook.action for hook in again.hooks} == {"unchanged"}
    assert tree(sample.path / ".git/hooks") == after
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"installed"}
    assert {hook.action for hook in hooks.remove(sample.path).hooks} == {"removed"}
    assert tree(sample.path / ".git/hooks") == before
    assert {hook.action for hook in hooks.remove(sample.path).hooks} == {"unchanged"}
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"absent"}


def test_a_moved_carbon_is_outdated_silent_and_updated(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    hooks.install(sample.path, [str(tmp_path / "gone" / "carbon")])
    sample.write("a.py", "a = 1\n")
    sample.git("add", "--all")
    done = subprocess.run(
        ["git", "commit", "--quiet", "-m", "a"], cwd=sample.path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"outdated"}
    assert {hook.action for hook in hooks.install(sample.path, recorder).hooks} == {"updated"}
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"installed"}


@pytest.mark.parametrize("program", ["exec sleep 60", "exit 3", "echo noise; echo noise >&2; cat", "kill -9 $$"])
def test_git_waits_for_nothing_and_never_fails(sample: Repository, tmp_path: Path, program: str) -> None:
    """Whatever carbon does: also whoever reads git's output until its end gets that end."""
    slow = tmp_path / "carbon"
    slow.write_text(f"#!/bin/sh\necho $$ >> '{tmp_path}/pids'\n{program}\n")
    slow.chmod(0o755)
    hooks.install(sample.path, [str(slow)])
    sample.write("a.py", "a = 1\n")
    sample.git("add", "--all")
    try:
        for args in (["commit", "--quiet", "-m", "a"], ["checkout", "--quiet", "-b", "side"]):
            done = subprocess.run(
                ["git", *args], cwd=sample.path, capture_output=True, text=True, check=True, timeout=30
            )
            assert (done.stdout, done.stderr) == ("", "")
        until(lambda: (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().split()) == 2)
    finally:
        if "sleep" in program:
            for pid in (tmp_path / "pids").read_text().split():
                os.kill(int(pid), 9)


# --- hooks that are there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho theirs >> ran\n",
        "#!/bin/sh\necho theirs >> ran\nexit 0\n",
        "#!/bin/sh\necho theirs >> ran",
        "#!/usr/bin/env bash\nset -euo pipefail\nexec sh -c 'echo theirs >> ran'\n",
        "#!/bin/sh -e\n# \xe9\xff no UTF-8\necho theirs >> ran\nfalse\n",
        "#! /bin/sh\necho theirs >> ran\n",
    ],
)
def test_into_a_shell_script(sample: Repository, tmp_path: Path, recorder: list[str], text: str) -> None:
    file = sample.path / ".git/hooks/post-commit"
    file.write_bytes(text.encode("latin-1"))
    file.chmod(0o750)
    before = tree(sample.path / ".git/hooks")
    hooks.install(sample.path, recorder)
    assert file.stat().st_mode & 0o777 == 0o750
    assert not (file.parent / "post-commit.local").exists()
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: started(tmp_path) == [f"hook run post-commit in {sample.path}"])
    assert (sample.path / "ran").read_text() == "theirs\n"
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before


def test_a_checkouts_exit_status_stays_that_of_the_hook(sample: Repository, recorder: list[str]) -> None:
    for text in ("#!/bin/sh\nexit 7\n", f"#!{sys.executable}\nraise SystemExit(7)\n"):
        executable(sample, ".git/hooks/post-checkout", text)
        hooks.install(sample.path, recorder)
        done = subprocess.run(["git", "checkout", "--quiet", "HEAD"], cwd=sample.path, check=False)
        assert done.returncode == 1, "git says that the hook failed"
        hooks.remove(sample.path)
        assert (sample.path / ".git/hooks/post-checkout").read_text() == text


def test_a_hook_in_another_language_runs_after_ours_by_its_own_name(
    sample: Repository, tmp_path: Path, recorder: list[str]
) -> None:
    program = (
        f"#!{sys.executable}\nimport os, sys\n"
        "open('ran', 'a').write(f'{os.path.basename(sys.argv[0])} {sys.argv[1:]} {sys.stdin.read().split()[:1]}\\n')\n"
    )
    executable(sample, ".git/hooks/post-rewrite", program)
    before = tree(sample.path / ".git/hooks")
    old = sample.git("rev-parse", "HEAD").strip()
    (hook,) = (hook for hook in hooks.install(sample.path, recorder).hooks if hook.name == "post-rewrite")
    assert "post-rewrite.local" in hook.note
    sample.git("commit", "--quiet", "--amend", "-m", "x")
    assert (sample.path / "ran").read_text() == f"post-rewrite ['amend'] ['{old}']\n", (
        "name, arguments and input are git's"
    )
    until(lambda: f"hook run post-rewrite in {sample.path}" in started(tmp_path))
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before


def test_a_link_to_a_dispatcher(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    """overcommit and the like: one program under the names of all hooks, which asks how it was called."""
    dispatcher = executable(sample, "tools/dispatch", '#!/bin/sh\necho "${0##*/} $1" >> ran\n')
    for name in ("post-commit", "post-merge"):
        (sample.path / ".git/hooks" / name).symlink_to("../../tools/dispatch")
    before, text = tree(sample.path / ".git/hooks"), dispatcher.read_bytes()
    hooks.install(sample.path, recorder)
    assert dispatcher.read_bytes() == text, "what a link leads to is not ours to change"
    sample.commit()
    assert (sample.path / "ran").read_text() == "post-commit \n"
    until(lambda: f"hook run post-commit in {sample.path}" in started(tmp_path))
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before


def test_a_hook_that_is_switched_off_stays_off(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    (sample.path / ".git/hooks/post-commit").write_text("#!/bin/sh\necho theirs >> ran\n")
    before = tree(sample.path / ".git/hooks")
    hooks.install(sample.path, recorder)
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: started(tmp_path))
    assert not (sample.path / "ran").exists()
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before


def test_lines_that_were_added_to_our_file_stay(sample: Repository, recorder: list[str]) -> None:
    hooks.install(sample.path, recorder)
    file = sample.path / ".git/hooks/post-merge"
    file.write_text(file.read_text() + "echo mine\n")
    hooks.remove(sample.path)
    assert file.read_text() == "#!/bin/sh\necho mine\n"


def test_a_name_that_is_taken_is_refused_before_anything_is_written(sample: Repository, recorder: list[str]) -> None:
    executable(sample, ".git/hooks/post-merge", f"#!{sys.executable}\n")
    sample.write(".git/hooks/post-merge.local", "taken")
    before = tree(sample.path / ".git/hooks")
    with pytest.raises(StorageProblem, match=r"post-merge\.local"):
        hooks.install(sample.path, recorder)
    assert tree(sample.path / ".git/hooks") == before


# --- tools that generate hooks -----------------------------------------------------------------------------------

PRE_COMMIT = """#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
# ID: 138fd403232d2ddd5efb44317e38bf03

# start templated
INSTALL_PYTHON=/usr/bin/python3
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=post-commit)
# end templated

HERE="$(cd "$(dirname "$0")" && pwd)"
ARGS+=(--hook-dir "$HERE" -- "$@")
if [ -x "$HERE/post-commit.legacy" ]; then "$HERE/post-commit.legacy" "$@"; fi
echo checked >> ran
"""


def test_pre_commit_runs_ours_as_its_legacy_hook(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    """It writes its own file anew at every `pre-commit install`, and leaves `.legacy` alone."""
    file = executable(sample, ".git/hooks/post-commit", PRE_COMMIT)
    before = tree(sample.path / ".git/hooks")
    hooks.install(sample.path, recorder)
    assert file.read_text() == PRE_COMMIT
    file.write_text(PRE_COMMIT)
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: len(started(tmp_path)) == 1)
    assert (sample.path / "ran").read_text() == "checked\n"
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"installed"}
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before
    executable(sample, ".git/hooks/post-commit.legacy", "#!/bin/sh\necho older >> ran\n")
    before = tree(sample.path / ".git/hooks")
    hooks.install(sample.path, recorder)
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    assert (sample.path / "ran").read_text() == "checked\nolder\nchecked\n"
    hooks.remove(sample.path)
    assert tree(sample.path / ".git/hooks") == before


def test_lefthook_is_told_about(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    text = '#!/bin/sh\n\nif [ "$LEFTHOOK" = "0" ]; then\n  exit 0\nfi\n'
    text += 'call_lefthook() { echo "$@" >> ran; }\n\ncall_lefthook run "post-commit" "$@"\n'
    executable(sample, ".git/hooks/post-commit", text)
    (hook,) = (hook for hook in hooks.install(sample.path, recorder).hooks if hook.name == "post-commit")
    assert "lefthook writes it anew" in hook.note
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: len(started(tmp_path)) == 1)
    assert (sample.path / "ran").read_text() == "run post-commit\n"
    executable(sample, ".git/hooks/post-commit", text)
    states = {hook.name: hook.state for hook in hooks.status(sample.path, recorder).hooks}
    assert states["post-commit"] == "absent"
    assert states["post-merge"] == "installed"
    assert {hook.action for hook in hooks.install(sample.path, recorder).hooks} == {"installed", "unchanged"}


def husky(sample: Repository) -> None:
    """What husky 9 leaves: its own files ignored, the user's scripts tracked."""
    sample.git("config", "core.hooksPath", ".husky/_")
    sample.write(".husky/_/.gitignore", "*")
    executable(
        sample,
        ".husky/_/h",
        '#!/usr/bin/env sh\nn=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n\n[ ! -f "$s" ] && exit 0\n\n'
        'sh -e "$s" "$@"\nc=$?\n[ $c != 0 ] && echo "husky - $n script failed (code $c)"\nexit $c\n',
    )
    for name in hooks.HOOKS:
        executable(sample, f".husky/_/{name}", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    sample.write(".husky/post-commit", "echo tracked >> ran\n")
    sample.git("add", ".husky/post-commit")
    sample.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "husky")


def test_husky_gets_the_block_where_git_does_not_look(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    husky(sample)
    sample.write(".git/info/exclude", "ran\n")
    before = tree(sample.path / ".husky")
    report = hooks.install(sample.path, recorder)
    assert any("husky writes it anew" in hook.note for hook in report.hooks)
    assert sample.git("status", "--porcelain") == ""
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: started(tmp_path) == [f"hook run post-commit in {sample.path}"])
    assert (sample.path / "ran").read_text() == "tracked\n"
    hooks.remove(sample.path)
    assert tree(sample.path / ".husky") == before

    report = hooks.install(sample.path, recorder, tracked=True)
    assert {hook.file.parent for hook in report.hooks} == {sample.path / ".husky"}
    assert "echo tracked" in (sample.path / ".husky/post-commit").read_text()
    sample.git("commit", "--quiet", "--allow-empty", "-m", "y")
    until(lambda: len(started(tmp_path)) == 2)
    assert (sample.path / "ran").read_text() == "tracked\n" * 2
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"installed"}
    hooks.remove(sample.path)
    assert tree(sample.path / ".husky") == before


# --- core.hooksPath ----------------------------------------------------------------------------------------------


def test_tracked_hooks_are_changed_only_when_asked(sample: Repository, tmp_path: Path, recorder: list[str]) -> None:
    executable(sample, ".githooks/post-commit", "#!/bin/sh\necho theirs >> ../ran\n")
    sample.commit()
    sample.git("config", "core.hooksPath", ".githooks")
    before = tree(sample.path)
    with pytest.raises(HooksElsewhere, match="post-commit") as caught:
        hooks.install(sample.path, recorder)
    assert "--tracked" in caught.value.hint
    assert tree(sample.path) == before
    hooks.install(sample.path, recorder, tracked=True)
    assert "post-commit" in sample.git("status", "--porcelain")
    hooks.remove(sample.path)
    assert sample.git("status", "--porcelain") == ""


def test_new_hooks_in_the_working_tree_are_hidden_by_this_clones_own_excludes(
    sample: Repository, tmp_path: Path, recorder: list[str]
) -> None:
    executable(sample, "my hooks/pre-commit", "#!/bin/sh\ntrue\n")
    sample.commit()
    sample.git("config", "core.hooksPath", "my hooks")
    exclude = sample.write(".git/info/exclude", "local.txt")
    before = tree(sample.path / "my hooks")
    report = hooks.install(sample.path, recorder)
    assert any("my hooks" in notice for notice in report.notices)
    assert sample.git("status", "--porcelain") == ""
    hooks.install(sample.path, recorder)
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: started(tmp_path))
    assert hooks.remove(sample.path).folder == sample.path / "my hooks"
    assert exclude.read_text() == "local.txt"
    assert tree(sample.path / "my hooks") == before


def test_a_folder_for_all_repositories_is_refused_unless_told(
    sample: Repository, tmp_path: Path, recorder: list[str]
) -> None:
    outside = tmp_path / "all hooks"
    outside.mkdir()
    sample.git("config", "--global", "core.hooksPath", str(outside))
    with pytest.raises(HooksElsewhere, match="outside of this repository") as caught:
        hooks.install(sample.path, recorder)
    assert "--outside" in caught.value.hint
    assert list(outside.iterdir()) == []
    hooks.install(sample.path, recorder, outside=True)
    sample.git("commit", "--quiet", "--allow-empty", "-m", "x")
    until(lambda: started(tmp_path))
    hooks.remove(sample.path)
    assert list(outside.iterdir()) == []
    sample.git("config", "--global", "core.hooksPath", os.devnull)
    with pytest.raises(HooksElsewhere, match="no hooks"):
        hooks.install(sample.path, recorder, outside=True)


def test_a_worktree_shares_the_hooks_and_refreshes_itself(
    sample: Repository, tmp_path: Path, recorder: list[str]
) -> None:
    side = tmp_path / "side"
    sample.git("worktree", "add", "--quiet", str(side), "-b", "side")
    assert hooks.install(side, recorder).folder == sample.path / ".git/hooks"
    assert {hook.state for hook in hooks.status(sample.path, recorder).hooks} == {"installed"}
    subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=side, check=True)
    until(lambda: f"hook run post-commit in {side}" in started(tmp_path))
    subprocess.run(["git", "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=sample.path, check=True)
    until(lambda: f"hook run post-commit in {sample.path}" in started(tmp_path))


def test_without_git_there_are_no_hooks(tmp_path: Path, recorder: list[str]) -> None:
    with pytest.raises(NotARepository, match="no git hooks"):
        hooks.install(tmp_path, recorder)


# --- with the real carbon ----------------------------------------------------------------------------------------


def carbon(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "carbon_mind", *args], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_commit_refreshes_the_mind(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # `-P` keeps the working tree out of the path
    done = carbon("hook", "install", cwd=sample.path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("installed") == 4
    sample.write("carbon_mind.py", "raise SystemExit('a repository must not be imported from')\n")
    sample.commit("one")
    log = sample.path / ".carbon/refresh.log"
    until(lambda: log.exists() and "the prefix is new" in log.read_text())
    assert carbon("mind", "--check", cwd=sample.path).returncode == 0
    sample.write("Makefile", "test:\n\tpytest\n")
    sample.commit("two")
    until(lambda: "the prefix changed" in log.read_text())
    assert " post-commit: mind: built (" in log.read_text()
    assert carbon("mind", "--check", cwd=sample.path).returncode == 0
    sample.git("checkout", "--quiet", "HEAD~1")
    until(lambda: " post-checkout: mind: built (" in log.read_text())
    status = carbon("hook", "status", cwd=sample.path)
    assert "last refresh: " in status.stdout
    assert sample.git("status", "--porcelain") == ""
    assert carbon("hook", "remove", cwd=sample.path).stdout.count("removed") == 4


def test_commands_report_errors_and_json(sample: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = json.loads(carbon("hook", "install", "--json", cwd=sample.path).stdout)
    assert [hook["state"] for hook in found["hooks"]] == ["installed"] * 4
    found = json.loads(carbon("hook", "status", "--json", cwd=sample.path).stdout)
    assert found["last"] == ""
    sample.git("config", "core.hooksPath", str(tmp_path))
    done = carbon("hook", "install", cwd=sample.path)
    assert done.returncode == 2
    assert "hint: `carbon hook install --outside`" in done.stderr
    assert carbon("hook", "status", cwd=tmp_path).returncode == 3
