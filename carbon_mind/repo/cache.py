"""Tags by content: a file that was parsed once is not parsed again, on whatever branch and under whatever name it returns.

The key is (blob id, language, version of grammar and query), so an entry never goes stale; it is only forgotten when the cache
grows past its bound. The file is disposable: anything wrong with it makes it start empty. Values are JSON, decoded into typed
values at the door. Each row carries a MAC (`safety/seal`), because the file lies in the repository and may have come with it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from carbon_mind.safety.seal import Seal
from carbon_mind.values import Tags

SCHEMA = 2
MAX_ENTRIES = 50_000
BUSY_TRIES = 10
BUSY_PAUSE_S = 0.02

_decoder = msgspec.json.Decoder(Tags)

Key = str


def key(blob: str, version: str) -> Key:
    """Cache key of one file's tags: its content and everything that decides what is extracted from it."""
    return f"{blob} {version}"


class TagCache:
    """A SQLite file of tags. Use as a context manager; safe for two processes at once (WAL, short transactions)."""

    def __init__(self, path: Path, seal: Seal | None) -> None:
        """Without a seal nothing is kept. Raises nothing: a file that cannot be used means an empty cache."""
        self._path = path
        self._seal = seal
        self._db = None if seal is None else self._open()

    def _open(self) -> sqlite3.Connection | None:
        """The database; one that is damaged, or of another schema, is removed and made anew. None when there can be none."""
        made_anew = False
        for attempt in range(BUSY_TRIES):
            if not _plain_file_or_nothing(self._path):
                return None
            db: sqlite3.Connection | None = None
            try:
                db = sqlite3.connect(self._path, timeout=5.0)
                db.execute("PRAGMA journal_mode=WAL")
                # A power cut may lose or damage it: that costs a parse, never a fact, because each row carries its MAC.
                db.execute("PRAGMA synchronous=OFF")
                self._prepare(db)
            except sqlite3.Error as problem:
                if db is not None:
                    db.close()
                if isinstance(problem, sqlite3.OperationalError):
                    # Locked, full, read-only: nothing is wrong with the file, and another process may be using it. Its last
                    # moments with the write-ahead log are not waited for by SQLite itself.
                    if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == BUSY_TRIES - 1:
                        return None
                    time.sleep(BUSY_PAUSE_S)
                elif made_anew:
                    return None
                else:
                    self._remove()
                    made_anew = True
            else:
                return db
        return None

    @staticmethod
    def _prepare(db: sqlite3.Connection) -> None:
        with db:
            db.execute("BEGIN IMMEDIATE")  # two processes that start together make the table once
            known = db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA
            columns = [row[1] for row in db.execute("PRAGMA table_info(tags)")]
            if not known or columns != ["key", "tags", "mac", "seq"]:
                db.execute("DROP TABLE IF EXISTS tags")
                db.execute(
                    "CREATE TABLE tags (key TEXT PRIMARY KEY, tags BLOB NOT NULL, mac BLOB NOT NULL, seq INTEGER NOT NULL) "
                    "WITHOUT ROWID"
                )
                db.execute(f"PRAGMA user_version={SCHEMA}")

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()

    def _failed(self, problem: sqlite3.Error) -> None:
        """Start anew when the file itself turns out to be damaged; otherwise only this use of it is lost."""
        if self._db is not None and not isinstance(problem, sqlite3.OperationalError):
            self._db.close()
            self._remove()
            self._db = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()

    def get(self, keys: Iterable[Key]) -> dict[Key, Tags]:
        """The tags known for `keys`; an entry that is not ours, or cannot be decoded, is as good as absent."""
        found: dict[Key, Tags] = {}
        if self._db is None or self._seal is None:
            return found
        wanted = sorted(set(keys))
        try:
            for start in range(0, len(wanted), 500):  # SQLite's oldest limit on variables is 999
                part = wanted[start : start + 500]
                query = f"SELECT key, tags, mac FROM tags WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - only "?"
                for name, blob, mac in self._db.execute(query, part):
                    with contextlib.suppress(msgspec.MsgspecError, TypeError):  # TypeError: not even bytes
                        if self._seal.fits(mac, "tags", name.encode(), blob):
                            found[name] = _decoder.decode(blob)
        except sqlite3.Error as problem:
            self._failed(problem)
            return {}
        return found

    def put(self, entries: Mapping[Key, Tags]) -> None:
        """Remember `entries`; forget the oldest above MAX_ENTRIES. A failure loses the cache's use, never a result."""
        if self._db is None or self._seal is None or not entries:
            return
        encoded = [(name, msgspec.json.encode(entries[name])) for name in sorted(entries)]
        rows = [(name, tags, self._seal.mac("tags", name.encode(), tags)) for name, tags in encoded]
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                last = self._db.execute("SELECT coalesce(max(seq), 0) FROM tags").fetchone()[0]
                self._db.executemany(f"INSERT OR REPLACE INTO tags VALUES (?, ?, ?, {int(last) + 1})", rows)  # noqa: S608 - a number
                (count,) = self._db.execute("SELECT count(*) FROM tags").fetchone()
                if count > MAX_ENTRIES:
                    self._db.execute(
                        "DELETE FROM tags WHERE key IN (SELECT key FROM tags ORDER BY seq, key LIMIT ?)",
                        (count - MAX_ENTRIES,),
                    )
        except sqlite3.Error as problem:
            self._failed(problem)


def _plain_file_or_nothing(path: Path) -> bool:
    """SQLite follows links; a `cache.db` that a stranger made one would have us write into another program's database."""
    try:
        return all(
            stat.S_ISREG(path.with_name(path.name + suffix).lstat().st_mode)
            for suffix in ("", "-wal", "-shm")
            if os.path.lexists(path.with_name(path.name + suffix))
        )
    except OSError:
        return False
