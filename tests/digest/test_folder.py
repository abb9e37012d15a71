"""The folder of a mind: whole or absent, never a stranger's, and somewhere else when the checkout is read-only."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from carbon_mind.digest import folder as mind_folder
from carbon_mind.digest.folder import (
    Changes,
    Folder,
    Inputs,
    Stored,
    changes,
    find_folder,
    open_folder,
    read_index,
    read_names,
    write,
)
from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write
from tests.conftest import Repository
from tests.repo.unprivileged import run_unprivileged

ONE = Stored(b'{"version": 1}\n', "# one: schön\n")
TWO = Stored(b'{"version": 1, "x": 2}\n', "# two\n")
OLD = Inputs(
    "program 1", "budget 1500", {"a.py": "a" * 40, "b/c.py": "b" * 40, "odd\udcff\n.py": "c" * 64, "link": "!link"}
)
NEW = Inputs("program 1", "budget 1500", OLD.names | {"a.py": "d" * 40})
posix = pytest.mark.skipif(os.name != "posix", reason="needs links")


def read(folder: Folder, inputs: Inputs) -> Stored | None:
    """The mind, if it was made from exactly `inputs` and is whole and ours."""
    index = read_index(folder)
    return mind_folder.read(folder, index) if index is not None and index.inputs == inputs.sha256 else None


@pytest.fixture
def folder(repository: Repository, tmp_path: Path) -> Folder:
    return open_folder(repository.path, tmp_path / "user-cache", owned=True)


def test_in_the_checkout_and_invisible_to_git(repository: Repository, folder: Folder, tmp_path: Path) -> None:
    assert folder == Folder(repository.path / ".carbon")
    assert (folder.path / ".gitignore").read_bytes() == b"*\n"
    write(folder, OLD, ONE)
    folder.tag_cache.write_bytes(b"x")
    assert repository.git("status", "--porcelain", "--untracked-files=all") == ""
    assert sorted(path.name for path in folder.mind.iterdir()) == [
        *("files", "index.json", "mind.json", "mind.md", "overview.md")
    ]
    assert [path.name for path in (tmp_path / "user-cache").iterdir()] == ["seal.key"]
    assert open_folder(repository.path, tmp_path / "user-cache", owned=True) == folder


def test_a_gitignore_of_the_user_stays(repository: Repository, folder: Folder, tmp_path: Path) -> None:
    (folder.path / ".gitignore").write_bytes(b"cache.db\n")
    open_folder(repository.path, tmp_path / "user-cache", owned=True)
    assert (folder.path / ".gitignore").read_bytes() == b"cache.db\n"


def test_written_and_read(folder: Folder) -> None:
    assert read(folder, OLD) is None
    write(folder, OLD, ONE)
    assert read(folder, OLD) == ONE
    assert read(folder, NEW) is None
    write(folder, NEW, TWO)
    assert read(folder, NEW) == TWO
    assert read(folder, OLD) is None


@pytest.mark.parametrize("name", ["mind.md", "mind.json", "index.json"])
@pytest.mark.parametrize("how", ["changed", "shorter", "empty", "gone", "folder", "large"])
def test_tampered_is_as_good_as_absent(folder: Folder, name: str, how: str) -> None:
    write(folder, OLD, ONE)
    file = folder.mind / name
    data = file.read_bytes()
    file.unlink()
    if how == "folder":
        file.mkdir()
    elif how != "gone":
        flipped = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
        changed = {"changed": flipped, "shorter": data[:-2], "empty": b"", "large": b" " * (mind_folder.MAX_BYTES + 1)}
        file.write_bytes(changed[how])
    assert read(folder, OLD) is None


@posix
@pytest.mark.parametrize("name", ["mind.md", "mind.json", "index.json"])
def test_a_link_is_not_read(folder: Folder, tmp_path: Path, name: str) -> None:
    write(folder, OLD, ONE)
    (folder.mind / name).rename(tmp_path / name)
    (folder.mind / name).symlink_to(tmp_path / name)
    assert read(folder, OLD) is None
    with pytest.raises(StorageProblem):
        write(folder, OLD, TWO)
    assert (folder.mind / name).is_symlink()


@pytest.mark.parametrize("change", [{"version": 1}, {"more": 1}, {"inputs": 3}, {"json_sha256": None}])
def test_an_index_of_another_form_is_refused(folder: Folder, change: dict[str, object]) -> None:
    write(folder, OLD, ONE)
    index = folder.mind / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    assert read(folder, OLD) is None


def test_bytes_that_are_no_text_are_refused(folder: Folder) -> None:
    write(folder, OLD, ONE)
    (folder.mind / "mind.md").write_bytes(b"\xff")
    index = folder.mind / "index.json"
    content = json.loads(index.read_text()) | {"markdown_sha256": hashlib.sha256(b"\xff").hexdigest()}
    sealed = mind_folder.Index(**content)
    assert folder.seal is not None
    content["mac"] = folder.seal.mac("mind", mind_folder._sealed(sealed)).hex()
    index.write_text(json.dumps(content))
    assert read_index(folder) is not None, "the index itself is ours"
    assert read(folder, OLD) is None


# --- whose it is -----------------------------------------------------------------------------------------------


def test_a_forged_mind_with_matching_checksums_is_not_believed(
    repository: Repository, folder: Folder, tmp_path: Path
) -> None:
    """An archive may ship `.carbon/mind`, whole and made from exactly its files, by another carbon with another key."""
    stranger = open_folder(repository.path, tmp_path / "strangers-cache", owned=True)
    write(stranger, OLD, ONE)
    assert read(stranger, OLD) == ONE
    assert read(folder, OLD) is None
    assert read_index(folder) is None
    write(folder, OLD, TWO)
    assert read(folder, OLD) == TWO
    assert read(stranger, OLD) is None


@pytest.mark.parametrize("mac", ["", "00", "zz", "0" * 64])
def test_a_wrong_mac_is_refused(folder: Folder, mac: str) -> None:
    write(folder, OLD, ONE)
    index = folder.mind / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"mac": mac}))
    assert read(folder, OLD) is None


def test_without_a_key_everything_works_and_nothing_is_believed(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder can be here")
    folder = open_folder(repository.path, tmp_path / "file", owned=True)
    assert folder.seal is None
    write(folder, OLD, ONE)
    assert (folder.mind / "mind.md").read_text() == ONE.markdown
    assert read(folder, OLD) is None
    assert find_folder(repository.path, tmp_path / "file", owned=True).seal is None


# --- what changed ----------------------------------------------------------------------------------------------


def test_names_come_back_whatever_they_hold(folder: Folder) -> None:
    write(folder, OLD, ONE)
    index = read_index(folder)
    assert read_names(folder, index) == {path: identity[:20] for path, identity in OLD.names.items()}
    (folder.mind / "files").write_bytes((folder.mind / "files").read_bytes()[:-3])
    assert read_names(folder, index) is None
    assert read(folder, OLD) == ONE, "the names serve only for telling"


def test_changes_are_named(folder: Folder) -> None:
    write(folder, OLD, ONE)
    index, names = read_index(folder), OLD.names
    known = read_names(folder, index)
    assert index is not None
    assert known is not None
    assert changes(index, known, OLD) == Changes()
    moved = {"new place.py" if path == "b/c.py" else path: identity for path, identity in names.items()}
    moved |= {"a.py": "e" * 40, "more.py": "f" * 40, "link2": "!link"}
    del moved["link"]
    found = changes(index, known, Inputs("program 2", "budget 900", moved))
    assert found == Changes(True, True, ("link2", "more.py"), ("a.py",), ("link",), (("b/c.py", "new place.py"),)), (
        "two links have no content that could have moved"
    )
    assert found.files == 5
    twins = Inputs("program 1", "budget 1500", {"x.py": "a" * 40, "y.py": "a" * 40})
    found = changes(index, known, twins)
    assert (found.renamed, found.added) == ((("a.py", "x.py"),), ("y.py",)), "one file moves to one place"


def test_what_holds_the_same_bytes_is_not_written_again(folder: Folder) -> None:
    write(folder, OLD, ONE)
    before = {name: (folder.mind / name).stat() for name in ("mind.md", "mind.json", "index.json", "files")}
    write(folder, NEW, ONE)
    after = {name: (folder.mind / name).stat() for name in before}
    same = {name for name in before if before[name].st_ino == after[name].st_ino}
    assert same == {"mind.md", "mind.json"}
    assert read(folder, NEW) == ONE


def test_an_unsettled_mind_matches_nothing(folder: Folder) -> None:
    write(folder, OLD, ONE, settled=False)
    assert read(folder, OLD) is None
    assert mind_folder.read(folder, read_index(folder)) == ONE, "but it is there, and whole"


def test_finding_makes_nothing(repository: Repository, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert find_folder(repository.path, tmp_path / "user-cache", owned=True).fallback
    assert sorted(tmp_path.rglob("*")) == before
    made = open_folder(repository.path, tmp_path / "user-cache", owned=True)
    assert find_folder(repository.path, tmp_path / "user-cache", owned=True) == made
    assert find_folder(repository.path, tmp_path / "user-cache", owned=False) == open_folder(
        repository.path, tmp_path / "user-cache", owned=False
    )


@pytest.mark.parametrize("survive", [0, 1, 2, 3])
def test_a_crash_between_the_writes_leaves_no_mixture(
    folder: Folder, survive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, OLD, ONE)
    done: list[Path] = []

    def dying(path: Path, data: bytes) -> None:
        if len(done) == survive:
            raise KeyboardInterrupt
        done.append(path)
        atomic_write(path, data)

    monkeypatch.setattr(mind_folder, "atomic_write", dying)
    with pytest.raises(KeyboardInterrupt):
        write(folder, NEW, TWO)
    assert read(folder, NEW) is None
    assert read(folder, OLD) == (ONE if survive <= 1 else None)
    monkeypatch.undo()
    write(folder, NEW, TWO)
    assert read(folder, NEW) == TWO


# --- elsewhere -------------------------------------------------------------------------------------------------

_OPEN = """
import sys
from pathlib import Path
from carbon_mind.digest.folder import Inputs, Stored, open_folder, read, read_index, write
folder = open_folder(Path(sys.argv[1]), Path(sys.argv[2]), owned=True)
write(folder, Inputs("p", "s", {"a": "b"}), Stored(b"{}", "x"))
assert read(folder, read_index(folder)) == Stored(b"{}", "x")
print(folder.fallback, folder.path)
"""


@posix
@pytest.mark.parametrize("closed", [".", ".carbon/mind"])
def test_a_read_only_checkout_uses_the_users_cache(repository: Repository, tmp_path: Path, closed: str) -> None:
    cache = tmp_path / "user-cache"
    if closed != ".":
        open_folder(repository.path, cache, owned=True)
    before = sorted(str(path) for path in repository.path.rglob("*") if ".git/" not in str(path))
    (repository.path / closed).chmod(0o555)
    try:
        outputs = {run_unprivileged(_OPEN, repository.path, cache) for _ in range(2)}
    finally:
        (repository.path / closed).chmod(0o755)
    assert sorted(str(path) for path in repository.path.rglob("*") if ".git/" not in str(path)) == before
    (output,) = outputs
    fallback, path = output.split()
    assert fallback == "True"
    assert Path(path).parent == cache / "minds"
    assert Path(path).stat().st_mode & 0o777 == 0o700
    assert str(repository.path.name) not in Path(path).name


def test_each_checkout_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first = open_folder(tmp_path / "a", tmp_path / "user-cache", owned=False)
    second = open_folder(tmp_path / "b", tmp_path / "user-cache", owned=False)
    assert first.fallback
    assert second.fallback
    assert first.path != second.path
    assert open_folder(tmp_path / "a", tmp_path / "user-cache", owned=False) == first


def test_a_folder_that_the_repository_ships_is_not_used(repository: Repository, tmp_path: Path) -> None:
    theirs = repository.write(".carbon/mind/index.json", "theirs")
    found = open_folder(repository.path, tmp_path / "user-cache", owned=False)
    assert found.fallback
    assert found.path.is_relative_to(tmp_path / "user-cache")
    assert theirs.read_text() == "theirs"
    assert not (repository.path / ".carbon/.gitignore").exists()


@posix
@pytest.mark.parametrize("link", [".carbon", ".carbon/mind", ".carbon/.gitignore"])
def test_a_link_in_the_way_is_not_followed(repository: Repository, tmp_path: Path, link: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (repository.path / link).parent.mkdir(exist_ok=True)
    (repository.path / link).symlink_to(target if "gitignore" not in link else tmp_path / "missing")
    found = open_folder(repository.path, tmp_path / "user-cache", owned=True)
    assert found.fallback
    assert list(target.iterdir()) == []
    assert not (tmp_path / "missing").exists()


@posix
@pytest.mark.parametrize("place", [".carbon", ".carbon/mind"])
def test_a_file_in_the_way(repository: Repository, tmp_path: Path, place: str) -> None:
    repository.write(place, "a file")
    assert open_folder(repository.path, tmp_path / "user-cache", owned=True).fallback
    assert (repository.path / place).read_text() == "a file"


def test_nowhere_to_write_is_an_error_with_a_hint(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageProblem) as caught:
        open_folder(repository.path, tmp_path / "file", owned=False)
    assert caught.value.hint
