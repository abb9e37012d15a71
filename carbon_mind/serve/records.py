"""Small records that outlive a gateway: what its sessions were given, and the heads that it has seen.

One private JSON file each, named after a hash of its key, written atomically, so that no index can disagree and a crash loses at most the
record that was being written. They hold text of repositories, as snapshots do: `carbon store purge` removes them, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write, private_dir, read_regular
from carbon_mind.values import RepoPath

_MAX_BYTES = 16 << 20
_T = TypeVar("_T")


def forget_all(folder: Path) -> int:
    """Remove all records of a gateway whose folder this is; returns how many there were."""
    count = 0
    for kind in ("sessions", "heads", "tokens"):
        with contextlib.suppress(StorageProblem):
            if (folder / kind).is_dir():
                count += Records(folder / kind, object, most=0, age_s=0).clear()
    return count


class Records(Generic[_T]):
    """The records of one kind in one folder. A folder that cannot be written forgets; nothing is raised but by the constructor."""

    def __init__(self, folder: Path, kind: type[_T], *, most: int, age_s: float) -> None:
        """At most `most` records are kept, none that was not written for `age_s` seconds. Raises StorageProblem."""
        self.folder = private_dir(folder)
        self._kind = kind
        self._most = most
        self._age_s = age_s

    def _name(self, key: str) -> str:
        return f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def read(self, key: str) -> _T | None:
        """The record; None where there is none (or it is damaged)."""
        return self._read(self._name(key))

    def _read(self, name: str) -> _T | None:
        try:
            return msgspec.json.decode(read_regular(self.folder, RepoPath(name), _MAX_BYTES), type=self._kind)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None

    def write(self, key: str, record: _T) -> None:
        """Keep it in the place of an older one, and forget what is too old or too much."""
        with contextlib.suppress(StorageProblem):
            atomic_write(self.folder / self._name(key), msgspec.json.encode(record), mode=0o600)
            self._forget()

    def all(self) -> Iterator[_T]:
        """Every record, the one written last first."""
        for _, name in self._files():
            found = self._read(name)
            if found is not None:
                yield found

    def clear(self) -> int:
        """Forget everything; returns how many there were."""
        names = [name for _, name in self._files()]
        for name in names:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        return len(names)

    def _files(self) -> list[tuple[float, str]]:
        found = []
        with contextlib.suppress(OSError):
            for item in os.scandir(self.folder):
                with contextlib.suppress(OSError):
                    if item.name.endswith(".json") and item.is_file(follow_symlinks=False):
                        found.append((item.stat(follow_symlinks=False).st_mtime, item.name))
        return sorted(found, reverse=True)

    def _forget(self) -> None:
        oldest = time.time() - self._age_s
        for place, (when, name) in enumerate(self._files()):
            if place >= self._most or when < oldest:
                with contextlib.suppress(OSError):
                    (self.folder / name).unlink()
