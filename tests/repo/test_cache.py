"""The tag cache: what was put comes back, and nothing that happens to its file hurts."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from carbon_mind.repo import cache
from carbon_mind.repo.cache import TagCache, key
from carbon_mind.safety.seal import Seal
from carbon_mind.values import Definition, Marker, Tags
from tests.repo.unprivileged import run_unprivileged

ONE = Tags(
    "python",
    definitions=(Definition("f", "function", 1, "def f(x: 'schön') -> int"),),
    references=(("g", 2),),
    imports=("os",),
    bases=(("Base", 1),),
    markers=(Marker("FIXME", 3, "later"),),
)
TWO = Tags("c", degraded="too deep")
SEAL = Seal(b"k" * 32)


def put(path: Path, entries: dict[str, Tags]) -> None:
    with TagCache(path, SEAL) as tags:
        tags.put(entries)


def get(path: Path, *keys: str) -> dict[str, Tags]:
    with TagCache(path, SEAL) as tags:
        return tags.get(keys)


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    put(path, {"a": ONE, "b": TWO})
    assert get(path, "a", "b", "b", "missing") == {"a": ONE, "b": TWO}
    put(path, {"a": TWO})
    assert get(path, "a", "b") == {"a": TWO, "b": TWO}
    assert get(path) == {}


def test_keys_tell_contents_and_versions_apart() -> None:
    assert len({key(blob, version) for blob in ("a1", "a2") for version in ("python 1", "python 2")}) == 4


def test_more_keys_than_one_statement_takes(tmp_path: Path) -> None:
    many = {f"{i:05}": TWO for i in range(2500)}
    put(tmp_path / "cache.db", many)
    assert get(tmp_path / "cache.db", *many) == many


def test_without_a_seal_nothing_is_kept(tmp_path: Path) -> None:
    with TagCache(tmp_path / "cache.db", None) as tags:
        tags.put({"a": ONE})
        assert tags.get(["a"]) == {}
    assert list(tmp_path.glob("cache*")) == []


def test_a_row_that_a_stranger_wrote_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with TagCache(path, Seal(b"s" * 32)) as theirs:
        theirs.put({"a": TWO, "b": TWO})
    assert get(path, "a", "b") == {}
    put(path, {"a": ONE, "c": ONE})
    assert get(path, "a", "b", "c") == {"a": ONE, "c": ONE}
    with closing(sqlite3.connect(path)) as db, db:
        # Neither the tags of another key nor changed tags under their own MAC pass.
        db.execute("UPDATE tags SET tags = (SELECT tags FROM tags WHERE key = 'b') WHERE key = 'a'")
        db.execute("INSERT INTO tags SELECT 'd', tags, mac, seq FROM tags WHERE key = 'c'")
    assert get(path, "a", "c", "d") == {"c": ONE}


@pytest.mark.parametrize("damage", ["text", "empty", "head", "middle", "all", "wal"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "cache.db"
    put(path, {f"{i:05}": ONE for i in range(500)})
    data = path.read_bytes()
    if damage == "wal":
        path.with_name("cache.db-wal").write_bytes(b"x" * 5000)
    else:
        path.write_bytes(
            {
                "text": b"no database at all\n" * 100,
                "empty": b"",
                "head": b"\xff" * 100 + data[100:],
                "middle": data[:4096] + b"\xff" * 8192 + data[12288:],
                "all": data[:100] + b"\xff" * (len(data) - 100),
            }[damage]
        )
    for _ in range(2):  # damage may show only when the page is read; the run after has a cache again
        with TagCache(path, SEAL) as tags:
            tags.get([f"{i:05}" for i in range(500)])
            tags.put({"a": ONE})
    assert get(path, "a") == {"a": ONE}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "script",
    [
        "PRAGMA user_version=99",
        "DROP TABLE tags",
        "DROP TABLE tags; CREATE TABLE tags (key TEXT, other TEXT)",
        "DROP TABLE tags; CREATE VIEW tags AS SELECT 1 AS key, 2 AS tags, 4 AS mac, 3 AS seq; PRAGMA user_version=99",
    ],
)
def test_another_schema_is_dropped(tmp_path: Path, script: str) -> None:
    path = tmp_path / "cache.db"
    put(path, {"a": ONE})
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    if "VIEW" in script:
        assert get(path, "a") == {}  # not ours to repair; it works without a cache
        return
    assert get(path, "a") == {}
    put(path, {"b": ONE})
    assert get(path, "a", "b") == {"b": ONE}


@pytest.mark.parametrize("value", [b"{}", b"not json", b'{"language": 3}', b"\xff", 7, "text", 1.5])
def test_wrong_bytes_of_one_entry_are_ignored(tmp_path: Path, value: object) -> None:
    path = tmp_path / "cache.db"
    put(path, {"a": ONE, "b": TWO})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE tags SET tags = ? WHERE key = 'a'", (value,))
    assert get(path, "a", "b") == {"b": TWO}
    put(path, {"a": ONE})
    assert get(path, "a", "b") == {"a": ONE, "b": TWO}


def test_the_oldest_are_forgotten_above_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 5)
    path = tmp_path / "cache.db"
    put(path, dict.fromkeys("abc", ONE))
    put(path, dict.fromkeys("def", ONE))
    assert sorted(get(path, *"abcdef")) == list("bcdef")
    put(path, {"b": TWO})  # used again: the youngest now
    put(path, {"g": ONE})
    assert sorted(get(path, *"abcdefg")) == list("bdefg")


def test_two_processes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    code = """
import sys
from pathlib import Path
from carbon_mind.repo.cache import TagCache
from carbon_mind.safety.seal import Seal
from carbon_mind.values import Tags
for i in range(40):
    with TagCache(Path(sys.argv[1]), Seal(b"k" * 32)) as tags:
        tags.put({f"{sys.argv[2]}{i}": Tags("c")})
        assert tags.get([f"{sys.argv[2]}{i}"]), i
"""
    root = Path(__file__).parents[2]
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=root) for name in "xyz"]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(get(path, *(f"{name}{i}" for name in "xyz" for i in range(40)))) == 120


def test_a_locked_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else is writing: no cache this time, and never a file removed under another process."""
    path = tmp_path / "cache.db"
    put(path, {"a": ONE})
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **_: connect(name, timeout=0.0))
    inode = path.stat().st_ino
    with closing(connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        put(path, {"b": ONE})
        assert path.stat().st_ino == inode
        other.rollback()
    assert get(path, "a", "b") == {"a": ONE}


@pytest.mark.skipif(os.name != "posix", reason="needs links and FIFOs")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_link_is_not_followed(tmp_path: Path, suffix: str) -> None:
    """A repository could ship `.carbon/cache.db` as a link to another program's database."""
    theirs = tmp_path / "theirs.db"
    with closing(sqlite3.connect(theirs)) as db:
        db.executescript("CREATE TABLE tags (precious TEXT); INSERT INTO tags VALUES ('x')")
    before = theirs.read_bytes()
    path = tmp_path / "cache.db"
    Path(f"{path}{suffix}").symlink_to(theirs)
    put(path, {"a": ONE})
    assert get(path, "a") == {}
    assert theirs.read_bytes() == before
    Path(f"{path}{suffix}").unlink()
    os.mkfifo(f"{path}{suffix}")
    assert get(path, "a") == {}


def test_a_folder_that_cannot_be_written_works_without_a_cache(tmp_path: Path) -> None:
    put(tmp_path / "missing/cache.db", {"a": ONE})
    assert get(tmp_path / "missing/cache.db", "a") == {}
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code = """
import sys
from pathlib import Path
from carbon_mind.repo.cache import TagCache
from carbon_mind.safety.seal import Seal
from carbon_mind.values import Tags
with TagCache(Path(sys.argv[1]), Seal(b"k" * 32)) as tags:
    tags.put({"a": Tags("c")})
    print(tags.get(["a"]))
"""
    assert run_unprivileged(code, closed / "cache.db") == "{}\n"
