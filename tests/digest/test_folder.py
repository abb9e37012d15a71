"""The folder of a mind: whole or absent, never a stranger's, and somewhere else when the checkout is read-only."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from carbon_mind.digest import folder as mind_folder
from carbon_mind.digest.folder import Folder, Stored, open_folder, read, write
from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write
from tests.conftest import Repository
from tests.repo.unprivileged import run_unprivileged

ONE = Stored(b'{"version": 1}\n', "# one: schön\n")
TWO = Stored(b'{"version": 1, "x": 2}\n', "# two\n")
posix = pytest.mark.skipif(os.name != "posix", reason="needs links")


@pytest.fixture
def folder(repository: Repository, tmp_path: Path) -> Folder:
    return open_folder(repository.path, tmp_path / "user-cache", owned=True)


def test_in_the_checkout_and_invisible_to_git(repository: Repository, folder: Folder, tmp_path: Path) -> None:
    assert folder == Folder(repository.path / ".carbon")
    assert (folder.path / ".gitignore").read_bytes() == b"*\n"
    write(folder, "inputs", ONE)
    folder.tag_cache.write_bytes(b"x")
    assert repository.git("status", "--porcelain", "--untracked-files=all") == ""
    assert sorted(path.name for path in folder.mind.iterdir()) == ["index.json", "mind.json", "mind.md"]
    assert not (tmp_path / "user-cache").exists()
    assert open_folder(repository.path, tmp_path / "user-cache", owned=True) == folder


def test_a_gitignore_of_the_user_stays(repository: Repository, folder: Folder, tmp_path: Path) -> None:
    (folder.path / ".gitignore").write_bytes(b"cache.db\n")
    open_folder(repository.path, tmp_path / "user-cache", owned=True)
    assert (folder.path / ".gitignore").read_bytes() == b"cache.db\n"


def test_written_and_read(folder: Folder) -> None:
    assert read(folder, "inputs") is None
    write(folder, "inputs", ONE)
    assert read(folder, "inputs") == ONE
    assert read(folder, "other inputs") is None
    write(folder, "other inputs", TWO)
    assert read(folder, "other inputs") == TWO
    assert read(folder, "inputs") is None


@pytest.mark.parametrize("name", ["mind.md", "mind.json", "index.json"])
@pytest.mark.parametrize("how", ["changed", "shorter", "empty", "gone", "folder", "large"])
def test_tampered_is_as_good_as_absent(folder: Folder, name: str, how: str) -> None:
    write(folder, "inputs", ONE)
    file = folder.mind / name
    data = file.read_bytes()
    file.unlink()
    if how == "folder":
        file.mkdir()
    elif how != "gone":
        flipped = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
        changed = {"changed": flipped, "shorter": data[:-2], "empty": b"", "large": b" " * (mind_folder.MAX_BYTES + 1)}
        file.write_bytes(changed[how])
    assert read(folder, "inputs") is None


@posix
@pytest.mark.parametrize("name", ["mind.md", "mind.json", "index.json"])
def test_a_link_is_not_read(folder: Folder, tmp_path: Path, name: str) -> None:
    write(folder, "inputs", ONE)
    (folder.mind / name).rename(tmp_path / name)
    (folder.mind / name).symlink_to(tmp_path / name)
    assert read(folder, "inputs") is None
    with pytest.raises(StorageProblem):
        write(folder, "inputs", TWO)
    assert (folder.mind / name).is_symlink()


@pytest.mark.parametrize("change", [{"version": 2}, {"more": 1}, {"inputs": 3}, {"json_sha256": None}])
def test_an_index_of_another_form_is_refused(folder: Folder, change: dict[str, object]) -> None:
    write(folder, "inputs", ONE)
    index = folder.mind / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    assert read(folder, "inputs") is None


def test_bytes_that_are_no_text_are_refused(folder: Folder) -> None:
    write(folder, "inputs", ONE)
    (folder.mind / "mind.md").write_bytes(b"\xff")
    index = folder.mind / "index.json"
    content = json.loads(index.read_text()) | {"markdown_sha256": hashlib.sha256(b"\xff").hexdigest()}
    index.write_text(json.dumps(content))
    assert read(folder, "inputs") is None


@pytest.mark.parametrize("survive", [0, 1, 2])
def test_a_crash_between_the_writes_leaves_no_mixture(
    folder: Folder, survive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "old", ONE)
    done: list[Path] = []

    def dying(path: Path, data: bytes) -> None:
        if len(done) == survive:
            raise KeyboardInterrupt
        done.append(path)
        atomic_write(path, data)

    monkeypatch.setattr(mind_folder, "atomic_write", dying)
    with pytest.raises(KeyboardInterrupt):
        write(folder, "new", TWO)
    assert read(folder, "new") is None
    assert read(folder, "old") == (ONE if survive == 0 else None)
    monkeypatch.undo()
    write(folder, "new", TWO)
    assert read(folder, "new") == TWO


# --- elsewhere -------------------------------------------------------------------------------------------------

_OPEN = """
import sys
from pathlib import Path
from carbon_mind.digest.folder import Stored, open_folder, read, write
folder = open_folder(Path(sys.argv[1]), Path(sys.argv[2]), owned=True)
write(folder, "inputs", Stored(b"{}", "x"))
assert read(folder, "inputs") == Stored(b"{}", "x")
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
