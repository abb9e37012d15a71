"""The list of files and their identities, against real repositories and real trouble."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from carbon_mind.errors import EmptyRepository, NotARepository
from carbon_mind.repo.scan import MAX_BYTES, Scan, git_blob_id, scan
from carbon_mind.safety import block
from carbon_mind.values import Skipped
from tests.conftest import Repository
from tests.repo.unprivileged import run_unprivileged

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file systems")
LONG_AGO = 1_600_000_000


def paths(found: Scan) -> list[str]:
    return [file.path for file in found.files]


def blobs(found: Scan) -> dict[str, str]:
    return {file.path: file.blob for file in found.files}


def reasons(found: Scan) -> dict[str, str]:
    assert len({item.path for item in found.skipped}) == len(found.skipped), "something is reported twice"
    return {item.path: item.reason for item in found.skipped}


def plain_hash(data: bytes) -> str:
    """What git_blob_id promises, written down a second time."""
    return hashlib.sha1(b"blob " + str(len(data)).encode() + b"\0" + data, usedforsecurity=False).hexdigest()


def inherited(repository: Repository, name: str) -> str:
    return repository.git("rev-parse", f"HEAD:{name}").strip()


# --- what is listed --------------------------------------------------------------------------------------------


def test_tracked_untracked_ignored_modified_deleted_renamed(sample: Repository) -> None:
    sample.write(".gitignore", "ignored.py\nbuild/\n")
    sample.write("ignored.py", "x")
    sample.write("build/out.py", "x")
    sample.write("new.py", "new = 1\n")
    sample.write("sample/core.py", "changed = 1\n")
    (sample.path / "sample/server.py").unlink()
    sample.git("mv", "sample/cli.py", "sample/console.py")
    sample.write("staged.py", "staged = 1\n")
    sample.git("add", "staged.py")
    sample.write("intended.py", "intended = 1\n")
    sample.git("add", "--intent-to-add", "intended.py")
    sample.write("kept.py", "kept = 1\n")
    sample.git("add", "kept.py")
    sample.write("kept.py", "kept = 2\n")
    sample.git("rm", "--quiet", "--cached", "tests/test_core.py")  # leaves the index, not the folder

    found = scan(sample.path)
    assert found.kind == "git"
    assert found.notices == ()
    assert found.owned
    assert paths(found) == sorted(
        [".gitignore", "README.md", "intended.py", "kept.py", "new.py", "pyproject.toml", "sample/__init__.py"]
        + ["sample/console.py", "sample/core.py", "staged.py", "tests/test_core.py"]
    )
    for file in found.files:
        data = (sample.path / file.path).read_bytes()
        assert (file.blob, file.size) == (plain_hash(data), len(data)), file.path
    assert found.skipped == ()


def test_conflict(sample: Repository) -> None:
    sample.git("checkout", "--quiet", "-b", "other")
    sample.write("sample/core.py", "other = 1\n")
    sample.git("rm", "--quiet", "sample/cli.py")
    sample.commit("other")
    sample.git("checkout", "--quiet", "main")
    sample.write("sample/core.py", "main = 1\n")
    sample.write("sample/cli.py", "main = 2\n")
    sample.commit("main")
    merge = subprocess.run(["git", "merge", "other"], cwd=sample.path, capture_output=True, check=False)
    assert merge.returncode == 1

    found = scan(sample.path)
    assert paths(found).count("sample/core.py") == 1
    assert blobs(found)["sample/core.py"] == plain_hash((sample.path / "sample/core.py").read_bytes())
    assert "sample/cli.py" in paths(found)
    (sample.path / "sample/cli.py").unlink()
    assert reasons(scan(sample.path)) == {"sample/cli.py": "not in the working tree"}


def test_submodule_and_nested_repository(sample: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.write("inner.py", "x = 1\n")
    inner.commit()
    sample.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "module")
    nested = Repository(sample.path / "nested")
    nested.write("nested.py", "x = 1\n")
    nested.commit()
    found = scan(sample.path)
    assert reasons(found) == {"module": "submodule", "nested/": "nested repository"}
    assert ".gitmodules" in paths(found)
    # A submodule is a repository of its own when it is what was asked for.
    assert scan(sample.path / "module").root == (sample.path / "module").resolve()
    assert paths(scan(sample.path / "module")) == ["inner.py"]


@posix
def test_links_are_named_and_not_followed(sample: Repository, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("outside = 1\n")
    (sample.path / "tracked.py").symlink_to("sample/core.py")
    sample.commit()
    (sample.path / "file.py").symlink_to(secret)
    (sample.path / "folder").symlink_to(tmp_path)
    (sample.path / "up").symlink_to("..")
    (sample.path / "broken").symlink_to("nowhere")
    names = ("tracked.py", "file.py", "folder", "up", "broken")
    assert reasons(scan(sample.path)) == dict.fromkeys(names, "link")
    assert not set(names) & set(paths(scan(sample.path)))

    # What the index calls a link may be a file by now, and the other way round.
    (sample.path / "tracked.py").unlink()
    sample.write("tracked.py", "file = 1\n")
    (sample.path / "sample/core.py").unlink()
    (sample.path / "sample/core.py").symlink_to("cli.py")
    found = scan(sample.path)
    assert blobs(found)["tracked.py"] == plain_hash(b"file = 1\n")
    assert reasons(found)["sample/core.py"] == "link"
    (sample.path / "tracked.py").unlink()
    assert "tracked.py" not in reasons(scan(sample.path)), "a deleted link is not there to be skipped"

    # A folder that became a link to a folder with the same files.
    (sample.path / "sample").rename(sample.path / "moved")
    (sample.path / "sample").symlink_to("moved")
    found = scan(sample.path)
    assert "sample/cli.py" not in paths(found)
    assert reasons(found)["sample"] == "link"


@posix
def test_fifo(sample: Repository) -> None:
    os.mkfifo(sample.path / "pipe.py")
    found = scan(sample.path)
    assert "pipe.py" not in paths(found)  # git does not list it at all
    (sample.path / "sample/core.py").unlink()
    os.mkfifo(sample.path / "sample/core.py")
    assert "sample/core.py" not in paths(scan(sample.path))


ODD = [
    b"new\nline.py",
    b"sp ace.py",
    b'quo"te.py',
    b"tick`.py",
    b"inv\xff.py",
    "schön.py".encode(),
    b" lead.py",
    b"tab\t.py",
]
ODD += [b"-dash.py", b"[x]*.py", b"\\back.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
@pytest.mark.parametrize("where", ["tracked", "untracked", "plain"])
def test_odd_names(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    if where != "plain":
        Repository(folder)
    for i, name in enumerate(ODD):
        (folder / os.fsdecode(name)).write_bytes(b"%d" % i)
    if where == "tracked":
        subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    found = scan(folder)
    assert [os.fsencode(path) for path in paths(found)] == sorted(ODD)
    assert blobs(found) == {os.fsdecode(name): plain_hash(b"%d" % i) for i, name in enumerate(ODD)}


def test_empty_large_and_sensitive_files(sample: Repository) -> None:
    sample.write("empty.py", "")
    sample.write("limit.py", b"x" * MAX_BYTES)
    sample.write("large.py", b"x" * (MAX_BYTES + 1))
    sample.write(".env", "TOKEN=1\n")
    found = blobs(scan(sample.path))
    assert found["empty.py"] == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert found["limit.py"] == plain_hash(b"x" * MAX_BYTES)
    assert found["large.py"] == f"unread-{MAX_BYTES + 1}"
    assert found[".env"] == "unread-8"


# --- what is opened --------------------------------------------------------------------------------------------

_SCAN = """
import json, sys
from pathlib import Path
from carbon_mind.repo.scan import scan
found = scan(Path(sys.argv[1]))
print(json.dumps([found.kind, [[f.path, f.blob] for f in found.files], [[s.path, s.reason] for s in found.skipped], found.notices]))
"""


@posix
def test_clean_and_sensitive_files_are_never_opened(sample: Repository) -> None:
    for name in ("sample/core.py", "sample/cli.py"):
        os.utime(sample.path / name, (LONG_AGO, LONG_AGO))
    sample.git("update-index", "--refresh")
    expected = blobs(scan(sample.path))
    sample.git("config", "core.trustctime", "false")  # else chmod alone makes git look inside
    sample.write("id_rsa", "key").chmod(0)
    (sample.path / "sample/core.py").chmod(0)
    kind, files, skipped, _ = json.loads(run_unprivileged(_SCAN, sample.path))
    assert kind == "git"
    assert dict(files) == {**expected, "id_rsa": "unread-3"}
    assert skipped == []


@posix
def test_unreadable_files_and_folders_are_named(sample: Repository, tmp_path: Path) -> None:
    sample.write("sample/core.py", "changed = 1\n").chmod(0)
    sample.write("new.py", "x").chmod(0)
    sample.write("closed/new.py", "x")
    sample.write("shut/tracked.py", "x")
    sample.git("add", "shut")
    closed = [sample.path / "closed", sample.path / "shut"]
    for folder in closed:
        folder.chmod(0)
    try:
        _, files, skipped, _ = json.loads(run_unprivileged(_SCAN, sample.path))
        plain = tmp_path / "plain"
        for name in ("a/x.py", "b/x.py"):
            (plain / name).parent.mkdir(parents=True)
            (plain / name).write_text("x")
        (plain / "a").chmod(0)
        closed.append(plain / "a")
        (plain / "b/.gitignore").write_text("x.py\n")
        (plain / "b/.gitignore").chmod(0)
        _, plain_files, plain_skipped, _ = json.loads(run_unprivileged(_SCAN, plain))
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert {path for path, _ in files} == {
        *(
            "README.md",
            "pyproject.toml",
            "sample/__init__.py",
            "sample/cli.py",
            "sample/server.py",
            "tests/test_core.py",
        )
    }
    assert dict(skipped) == {
        "closed": "unreadable directory",
        "new.py": "unreadable",
        "sample/core.py": "unreadable",
        "shut": "unreadable directory",
        "shut/tracked.py": "unreadable",
    }
    assert [path for path, _ in plain_files] == ["b/x.py"]
    assert plain_skipped == [["a", "unreadable directory"], ["b/.gitignore", "unreadable"]]


def test_touch_changes_nothing(sample: Repository) -> None:
    before = scan(sample.path)
    for name in paths(before):
        os.utime(sample.path / name, (LONG_AGO, LONG_AGO))
    assert scan(sample.path) == before


def test_line_ends_that_git_converts(sample: Repository) -> None:
    """A clean file has the index's identity; a changed one that of its own bytes."""
    sample.git("config", "core.autocrlf", "true")
    sample.write("crlf.py", "a = 1\r\nb = 2\r\n")
    assert blobs(scan(sample.path))["crlf.py"] == plain_hash(b"a = 1\r\nb = 2\r\n")
    sample.commit()
    assert blobs(scan(sample.path))["crlf.py"] == plain_hash(b"a = 1\nb = 2\n") == inherited(sample, "crlf.py")


# --- where -----------------------------------------------------------------------------------------------------


def test_the_root_is_found_from_below(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scan(sample.path / "sample") == scan(sample.path)
    monkeypatch.chdir(sample.path / "tests")
    assert scan(Path()) == scan(Path("..")) == scan(sample.path)


def test_worktree(sample: Repository, tmp_path: Path) -> None:
    sample.git("worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "side")
    (tmp_path / "tree/side.py").write_text("x = 1\n")
    found = scan(tmp_path / "tree")
    assert found.kind == "git"
    assert found.root == (tmp_path / "tree").resolve()
    assert set(paths(found)) == {*paths(scan(sample.path)), "side.py"}


def test_unborn_head(repository: Repository) -> None:
    with pytest.raises(EmptyRepository):
        scan(repository.path)
    repository.write("a.py", "a = 1\n")
    assert blobs(scan(repository.path)) == {"a.py": plain_hash(b"a = 1\n")}
    repository.git("add", "a.py")
    assert blobs(scan(repository.path)) == {"a.py": plain_hash(b"a = 1\n")}


def test_sha256_repository(tmp_path: Path) -> None:
    path = tmp_path / "sha256"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(path)], check=True)
    repository = Repository(path)
    repository.write("a.py", "a = 1\n")
    expected = hashlib.sha256(b"blob 6\0a = 1\n").hexdigest()
    assert blobs(scan(path)) == {"a.py": expected}, "untracked, in an empty index"
    repository.git("add", "a.py")
    assert blobs(scan(path)) == {"a.py": expected}
    repository.write("b.py", "a = 1\n")
    assert blobs(scan(path)) == {"a.py": expected, "b.py": expected}


def test_not_a_repository(sample: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(sample.path), str(bare)], check=True)
    with pytest.raises(NotARepository, match="bare"):
        scan(bare)
    with pytest.raises(NotARepository, match="does not exist"):
        scan(tmp_path / "missing")
    with pytest.raises(NotARepository, match="not a directory"):
        scan(sample.path / "README.md")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyRepository):
        scan(tmp_path / "empty")


def test_without_git(sample: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_git = scan(sample.path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = scan(sample.path)
    assert found.kind == "plain"
    assert len(found.notices) == 1
    assert "git is not installed" in found.notices[0]
    assert found.files == with_git.files


def test_a_repository_of_somebody_else(sample: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    with_git = scan(sample.path)
    if os.name == "posix" and os.geteuid() == 0:
        for path in (sample.path, sample.path / ".git"):
            os.chown(path, 12345, 12345)
    else:
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    found = scan(sample.path)
    assert found.kind == "plain"
    assert "owned by somebody else" in found.notices[0]
    assert found.files == with_git.files


def test_a_damaged_index_is_a_notice(sample: Repository) -> None:
    with_git = scan(sample.path)
    sample.write(".git/index", b"DIRC????")
    found = scan(sample.path)
    assert found.kind == "plain"
    assert "read as a plain directory" in found.notices[0]
    assert found.files == with_git.files


def test_plain_directory(tmp_path: Path) -> None:
    def write(path: str, text: str = "x") -> None:
        file = tmp_path / "plain" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    write(".gitignore", "*.log\n/top.py\nbuild/\n!important.log\n# note\n")
    for path in ("a.log", "important.log", "top.py", "a/top.py", "build/x.py", "a/build/x.py", "a/keep.log", "a/x.log"):
        write(path)
    write("a/.gitignore", "!keep.log\nlocal.py\n/deep/only.py\n")
    for path in ("a/local.py", "local.py", "a/deep/only.py", "a/deep/deeper/only.py", "a/deep/local.py", "ab/local.py"):
        write(path)
    for folder in (".git", ".hg", ".carbon", "node_modules", "__pycache__", ".venv", "a/.git"):
        write(f"{folder}/x.py")
    if os.name == "posix":
        os.mkfifo(tmp_path / "plain/pipe.py")
        (tmp_path / "plain/link.py").symlink_to("local.py")
        (tmp_path / "plain/loop").symlink_to(".")
    found = scan(tmp_path / "plain")
    assert found.kind == "plain"
    assert found.notices == ("not a git repository: read as a plain directory",)
    if os.name == "posix":
        assert reasons(found) == {"pipe.py": "not a regular file", "link.py": "link", "loop": "link"}

    # git itself says the same of the same folder, once its own folders are out of the way.
    for name in (".git", "a/.git"):
        (tmp_path / "plain" / name / "x.py").unlink()
        (tmp_path / "plain" / name).rmdir()
    Repository(tmp_path / "plain")
    by_git = [path for path in paths(scan(tmp_path / "plain")) if "x.py" not in path]
    assert paths(found) == by_git
    assert {"a/keep.log", "important.log", "a/top.py", "a/deep/deeper/only.py", "ab/local.py"} <= set(by_git)
    assert not {"a/local.py", "a/deep/local.py", "a/deep/only.py", "top.py", "a.log"} & set(by_git)


# --- our own files ---------------------------------------------------------------------------------------------


def test_our_folder(sample: Repository) -> None:
    before = scan(sample.path)
    sample.write(".carbon/mind/mind.md", "mine")
    sample.write(".carbon/.gitignore", "*\n")
    assert scan(sample.path) == before
    (sample.path / ".carbon/.gitignore").unlink()
    assert scan(sample.path) == before
    sample.git("add", "--force", ".carbon")
    found = scan(sample.path)
    assert not found.owned
    assert found.files == before.files


def test_a_tracked_folder_that_is_ours_but_for_its_case(sample: Repository) -> None:
    sample.write(".CARBON/mind/mind.md", "theirs")
    sample.git("add", "--force", ".CARBON")
    assert not scan(sample.path).owned


@pytest.mark.parametrize(
    "text", [b"# Rules\n", b"# Rules", b"# Rules\r\n\r\n- x\r\n", b"\xef\xbb\xbfRules\n\n\n", b"caf\xe9\n"]
)
def test_the_block_in_agents_is_no_part_of_the_identity(sample: Repository, text: bytes) -> None:
    sample.write("AGENTS.md", text)
    before = scan(sample.path)
    assert "AGENTS.md" in paths(before)
    for content in (b"one", b"two\n\nlines\n"):
        sample.write("AGENTS.md", block.put((sample.path / "AGENTS.md").read_bytes(), content))
        assert scan(sample.path) == before
        sample.commit()
        assert scan(sample.path) == before
    sample.write("AGENTS.md", (sample.path / "AGENTS.md").read_bytes() + b"more\n")
    assert blobs(scan(sample.path))["AGENTS.md"] != blobs(before)["AGENTS.md"]


def test_agents_with_only_the_block_is_as_if_absent(sample: Repository) -> None:
    before = scan(sample.path)
    sample.write("AGENTS.md", block.put(b"", b"digest"))
    assert scan(sample.path) == before
    sample.commit()
    assert scan(sample.path) == before


def test_agents_over_the_limit_is_named_and_not_read(sample: Repository) -> None:
    sample.write("AGENTS.md", b"x" * (MAX_BYTES + 1))
    assert blobs(scan(sample.path))["AGENTS.md"] == f"unread-{MAX_BYTES + 1}"


# --- identities ------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
@settings(max_examples=50, deadline=None)
def test_blob_id(data: bytes) -> None:
    assert git_blob_id(data) == plain_hash(data)
    assert git_blob_id(data, "sha256") == hashlib.sha256(b"blob %d\0" % len(data) + data).hexdigest()


def test_blob_id_is_gits(sample: Repository) -> None:
    for data in (b"", b"a", b"\0\xff\r\n", b"x" * 100_000):
        file = sample.write("data", data)
        assert sample.git("hash-object", "--no-filters", str(file)).strip() == git_blob_id(data)


NAMES = ["a.py", "b.py", "d/c.py", "d/e/f.py", "g h.py"]
step = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.binary(max_size=3)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(b"")),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from([name.encode() for name in NAMES])),
    st.tuples(
        st.sampled_from(["stage", "commit", "switch", "stash", "pop", "reset", "ignore"]),
        st.sampled_from(NAMES),
        st.just(b""),
    ),
)


def _attempt(repository: Repository, *args: str) -> None:
    """A git command that may refuse (nothing to commit, changes in the way): then nothing has happened, which is fine."""
    subprocess.run(["git", *args], cwd=repository.path, capture_output=True, check=False)


def _do(repository: Repository, action: str, name: str, data: bytes) -> None:
    file = repository.path / name
    if action == "write":
        repository.write(name, data)
    elif action == "delete":
        file.unlink(missing_ok=True)
    elif action == "move":
        target = repository.path / data.decode()
        if file.exists() and file != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
    elif action == "ignore":
        repository.write(".gitignore", f"/{name}\n")
    else:
        commands: dict[str, list[list[str]]] = {
            "stage": [["add", "--all", "--", name]],
            "commit": [["add", "--all"], ["commit", "--quiet", "--message", "x"]],
            "switch": [["checkout", "--quiet", "side"], ["branch", "side"], ["branch", "--force", "other"]],
            "stash": [["stash", "--quiet", "--include-untracked"]],
            "pop": [["stash", "pop", "--quiet"], ["checkout", "--quiet", "main"]],
            "reset": [["reset", "--quiet"]],
        }
        for command in commands[action]:
            _attempt(repository, *command)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Repository]:
    made: list[Repository] = []

    def make() -> Repository:
        made.append(Repository(tmp_path / f"r{len(made)}"))
        return made[-1]

    return make


@pytest.mark.slow
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=st.lists(step, min_size=4, max_size=12))
def test_after_any_history_the_scan_is_a_plain_hash_of_the_files(
    fresh: Callable[[], Repository], steps: list[tuple[str, str, bytes]]
) -> None:
    repository = fresh()
    repository.write("root.py", "")
    repository.commit()
    for action, name, data in steps:
        _do(repository, action, name, data)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=repository.path,
            capture_output=True,
            check=True,
        ).stdout
        expected = {
            path.decode(): plain_hash((repository.path / path.decode()).read_bytes())
            for path in set(listed.split(b"\0")) - {b""}
            if (repository.path / path.decode()).is_file()
        }
        try:
            found = scan(repository.path)
        except EmptyRepository:
            assert expected == {}
        else:
            assert blobs(found) == expected
            assert paths(found) == sorted(expected, key=os.fsencode)
            assert all(item == Skipped(item.path, "not in the working tree") for item in found.skipped)
