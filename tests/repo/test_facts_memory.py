"""Facts are found once, and again only when something that they were found in has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from carbon_mind.repo.facts.project import project_facts
from carbon_mind.repo.facts_memory import FILE, remembered
from carbon_mind.safety.seal import Seal
from carbon_mind.values import ProjectFacts, RepoPath

SEAL = Seal(b"k" * 32)
FILES = {
    RepoPath("Makefile"): "test:\n\tpytest -q\n",
    RepoPath("src/a.py"): "def a(): ...\n",
    RepoPath("Cargo.toml"): '[package]\nname = "a"\n',
}


class Repo:
    """Files in memory, and how often their facts were looked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = dict(FILES)
        self.found = 0
        self.unsteady = False

    def facts(self, seal: Seal | None = SEAL, program: str = "1") -> ProjectFacts:
        def find(read):  # type: ignore[no-untyped-def]
            self.found += 1
            return project_facts(list(self.files), read)

        blobs = {path: str(hash(text)) for path, text in self.files.items()}
        return remembered(self.folder, seal, program, blobs, self.files.get, find, lambda asked: self.unsteady)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def test_an_edit_elsewhere_costs_nothing(repo: Repo) -> None:
    first = repo.facts()
    assert [command.command for command in first.commands if command.kind == "test"] == ["make test", "cargo test"]
    repo.files[RepoPath("src/a.py")] = "def b(): ...\n"
    assert repo.facts() == first
    assert repo.found == 1


def test_what_was_read_or_is_new_or_gone_is_looked_at_again(repo: Repo) -> None:
    repo.facts()
    repo.files[RepoPath("Makefile")] = "test:\n\ttox\n\nlint:\n\truff check\n"
    assert any(command.command == "make lint" for command in repo.facts().commands)
    repo.files[RepoPath("package.json")] = '{"scripts": {"build": "vite build"}}'
    assert any("run build" in command.command for command in repo.facts().commands)
    del repo.files[RepoPath("Cargo.toml")]
    assert not any("cargo" in command.command for command in repo.facts().commands)
    assert repo.found == 4
    repo.facts(program="2")
    assert repo.found == 5


def test_only_our_own_memory_is_believed(repo: Repo) -> None:
    first = repo.facts()
    path = repo.folder / FILE
    path.write_bytes(path.read_bytes().replace(b"make test", b"make evil"))
    assert repo.facts() == first
    assert repo.facts(Seal(b"o" * 32)) == first
    for damaged in (b"", b"{}", b"not json", b"[1]"):
        path.write_bytes(damaged)
        assert repo.facts() == first
    assert repo.found == 7
    path.unlink()
    assert repo.facts(None) == first
    assert not path.exists(), "without a key nothing is kept"


def test_what_changed_while_it_was_read_is_not_remembered(repo: Repo) -> None:
    repo.unsteady = True
    repo.facts()
    assert not (repo.folder / FILE).exists()


def test_no_credential_is_written(repo: Repo) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    repo.files[RepoPath("package.json")] = f'{{"scripts": {{"test": "TOKEN={token} jest"}}}}'
    repo.files[RepoPath("Makefile")] = f"run:\n\tcurl -H 'Authorization: Bearer {token}' x\n"
    facts = repo.facts()
    assert token not in repr(facts)
    assert token.encode() not in (repo.folder / FILE).read_bytes()
