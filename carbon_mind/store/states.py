"""The folder of snapshots. A snapshot is found by what it is, never by a name somebody gave it.

The file name is a hash over identity and tokens, so equal states share one file; the header's full identity and tokens are compared
again on every read, so a hash alone never decides. A damaged file is set aside (`*.rejected`), reported once and never read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.safety.files import atomic_write, private_dir, remove_orphans
from carbon_mind.store import format as layout
from carbon_mind.store.format import Header
from carbon_mind.values import Identity, shared_length

SUFFIX = ".kv"
REJECTED = ".rejected"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A verified snapshot in memory."""

    name: str
    header: Header
    payload: bytearray


@dataclass(frozen=True, slots=True)
class Entry:
    """A snapshot as `ls` sees it."""

    name: str
    size: int  # bytes
    used_ns: int  # time of last use, ns since the epoch


def key(identity: Identity, tokens: Iterable[int]) -> str:
    """Hex SHA-256 over everything that must match: the identity's canonical JSON and the exact tokens."""
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic"))
    for token in tokens:
        digest.update(token.to_bytes(8, "little", signed=True))
    return digest.hexdigest()


class Store:
    """Snapshots in one private folder, at most `budget` bytes of them."""

    def __init__(self, folder: Path, budget: int) -> None:
        """Opens, and makes if needed, the folder (mode 0700). Raises StorageProblem."""
        self.folder = private_dir(folder)
        self.budget = budget

    def _path(self, name: str) -> Path:
        return self.folder / name

    def find(self, identity: Identity, tokens: tuple[int, ...]) -> Snapshot | None:
        """The snapshot for exactly this identity and these tokens, verified; None when there is none.

        Raises SnapshotRejected when there is one and it is damaged; it has then been set aside.
        """
        name = key(identity, tokens) + SUFFIX
        try:
            header, payload = layout.read(self._path(name))
        except FileNotFoundError:
            return None
        except SnapshotRejected as damaged:
            self.reject(name)
            raise SnapshotRejected(f"snapshot {name[:12]} was set aside: {damaged.message}") from damaged
        except OSError as unreadable:
            raise SnapshotRejected(f"snapshot {name[:12]} cannot be read: {unreadable.strerror}") from unreadable
        if header.identity != identity or header.tokens != tokens:
            self.reject(name)
            raise SnapshotRejected(f"snapshot {name[:12]} was set aside: it belongs to another prefix or engine")
        with contextlib.suppress(OSError):
            os.utime(self._path(name))
        return Snapshot(name, header, payload)

    def reject(self, name: str) -> None:
        """Set a snapshot aside under a name that is never looked up; an earlier one of that name is replaced."""
        with contextlib.suppress(OSError):
            self._path(name).replace(self._path(name + REJECTED))

    def put(self, header: Header, payload: bytes | bytearray | memoryview) -> tuple[str, int]:
        """Write a snapshot; returns its name and the bytes written. Room is made before writing. Raises StorageProblem."""
        name = key(header.identity, header.tokens) + SUFFIX
        parts = list(layout.chunks(header, payload))
        size = sum(len(part) for part in parts)
        if size > self.budget:
            raise StorageProblem(
                f"a snapshot of {size:,} bytes is larger than the store's budget of {self.budget:,}",
                hint="raise store_budget_mib in the settings",
            )
        self._make_room(size, name)
        atomic_write(self._path(name), parts, mode=0o600)
        return name, size

    def entries(self) -> list[Entry]:
        """All snapshots, least recently used first."""
        found = []
        for item in os.scandir(self.folder):
            if item.name.endswith(SUFFIX) and item.is_file(follow_symlinks=False):
                info = item.stat(follow_symlinks=False)
                found.append(Entry(item.name, info.st_size, info.st_mtime_ns))
        return sorted(found, key=lambda entry: (entry.used_ns, entry.name))

    def size(self) -> int:
        """Bytes on disk, rejected and unfinished files included."""
        return sum(item.stat(follow_symlinks=False).st_size for item in os.scandir(self.folder))

    def _make_room(self, size: int, keep: str) -> None:
        remove_orphans(self.folder)
        entries = self.entries()
        total = sum(entry.size for entry in entries) + size
        for entry in entries:
            if total <= self.budget:
                break
            if entry.name != keep:
                with contextlib.suppress(OSError):
                    self._path(entry.name).unlink()
                total -= entry.size

    def explain(self, identity: Identity, tokens: tuple[int, ...]) -> str:
        """Why there is no snapshot for this: the closest one and its first difference, in one line."""
        closest: tuple[int, int, str] = (-1, 0, "nothing has been stored for this model yet")
        for entry in reversed(self.entries()):
            try:
                with layout.open_regular(self._path(entry.name)) as file:
                    header, _ = layout.read_header(file)
            except (OSError, SnapshotRejected):
                continue
            if header.identity.model != identity.model:
                continue
            differences = identity_differences(header.identity, identity)
            if differences:
                candidate = (
                    0,
                    -len(differences),
                    "the stored state is of another setup: " + "; ".join(differences[:3]),
                )
            else:
                shared = shared_length(header.tokens, tokens)
                candidate = (1, shared, f"the closest stored prefix differs from token {shared} of {len(tokens)} on")
            if candidate[:2] > closest[:2]:
                closest = candidate
        return closest[2]


def identity_differences(old: Identity, new: Identity) -> list[str]:
    """Fields that differ, each as `name (old -> new)`; hashes are shortened."""
    found = [
        f"{name} ({_short(getattr(old, name))} -> {_short(getattr(new, name))})"
        for name in ("engine", "build", "model")
        if getattr(old, name) != getattr(new, name)
    ]
    for name in ("context", "environment"):
        before, after = dict(getattr(old, name)), dict(getattr(new, name))
        found += [
            f"{field} ({before.get(field, 'unset')} -> {after.get(field, 'unset')})"
            for field in sorted(before.keys() | after.keys())
            if before.get(field) != after.get(field)
        ]
    return found


def _short(value: str) -> str:
    return value[:12] if len(value) == 64 else value
