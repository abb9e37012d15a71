"""Tags by content: a file that was parsed once is not parsed again, on whatever branch and under whatever name it returns.

The key is (blob id, language, version of grammar and query), so an entry never goes stale; it is only forgotten when the cache
grows past its bound. The file is disposable: anything wrong with it makes it start empty. Values are JSON, decoded into typed
values at the door.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from carbon_mind.values import Tags

SCHEMA = 1
MAX_ENTRIES = 50_000

_decoder = msgspec.json.Decoder(Tags)

Key = str


def key(blob: str, version: str) -> Key:
    """Cache key of one file's tags: its content and everything that decides what is extracted from it."""
    return f"{blob} {version}"


class TagCache:
    """A SQLite file of tags. Use as a context manager; safe for two processes at once (WAL, short transactions)."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps nothing. Raises nothing: a file that cannot be used means an empty cache."""
        self._db = self._open(path) if path is not None else None

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection | None:
        for attempt in (1, 2):
            db: sqlite3.Connection | None = None
            try:
                db = sqlite3.connect(path, timeout=5.0)
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=NORMAL")  # a lost tail costs a parse, not a fact
                if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                    db.execute("DROP TABLE IF EXISTS tags")
                    db.execute(
                        "CREATE TABLE tags (key TEXT PRIMARY KEY, tags BLOB NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID"
                    )
                    db.execute(f"PRAGMA user_version={SCHEMA}")
                    db.commit()
                return db
            except sqlite3.Error:
                if db is not None:
                    db.close()
                if attempt == 2:
                    return None
                for suffix in ("", "-wal", "-shm"):
                    with contextlib.suppress(OSError):
                        path.with_name(path.name + suffix).unlink()
        return None

    def __enter__(self) -> TagCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            self._db.close()

    def get(self, keys: Iterable[Key]) -> dict[Key, Tags]:
        """The tags known for `keys`; an entry that cannot be decoded is as good as absent."""
        found: dict[Key, Tags] = {}
        if self._db is None:
            return found
        wanted = sorted(set(keys))
        try:
            for start in range(0, len(wanted), 500):  # SQLite's oldest limit on variables is 999
                part = wanted[start : start + 500]
                query = f"SELECT key, tags FROM tags WHERE key IN ({','.join('?' * len(part))})"
                for name, blob in self._db.execute(query, part):
                    with contextlib.suppress(msgspec.MsgspecError):
                        found[name] = _decoder.decode(blob)
        except sqlite3.Error:
            return {}
        return found

    def put(self, entries: Mapping[Key, Tags]) -> None:
        """Remember `entries`; forget the oldest above MAX_ENTRIES. A failure loses the cache's use, never a result."""
        if self._db is None or not entries:
            return
        with contextlib.suppress(sqlite3.Error), self._db:
            last = self._db.execute("SELECT coalesce(max(seq), 0) FROM tags").fetchone()[0]
            rows = [(name, msgspec.json.encode(entries[name]), last + 1) for name in sorted(entries)]
            self._db.executemany("INSERT OR REPLACE INTO tags VALUES (?, ?, ?)", rows)
            (count,) = self._db.execute("SELECT count(*) FROM tags").fetchone()
            if count > MAX_ENTRIES:
                self._db.execute(
                    "DELETE FROM tags WHERE key IN (SELECT key FROM tags ORDER BY seq, key LIMIT ?)",
                    (count - MAX_ENTRIES,),
                )
