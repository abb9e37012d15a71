"""The folder of snapshots. A snapshot is found by what it is, never by a name somebody gave it.

The file name is a hash over identity, tokens and the ends of the layers, so equal states share one file, and a name cannot lead out
of the folder. The header's full identity and tokens are compared again on every read: a hash alone never decides. A damaged file is
set aside (`*.rejected`), reported once and never read again.

Each layer of a prefix is a file with that layer's positions alone. What is written is written under a lock, into a file that is
renamed into place; what is read needs no lock. A restore leaves one byte behind in `<name>.hits`: appending is atomic, so that two
processes cannot lose each other's count, and no index can disagree with the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.safety.files import atomic_write, is_unfinished, private_dir, remove_orphans, require_space
from carbon_mind.safety.lock import locked
from carbon_mind.store import format as layout
from carbon_mind.store.format import Header
from carbon_mind.values import Change, Identity, Prefix, Span, beginning_before, shared_length

SUFFIX = ".kv"
REJECTED = ".rejected"
HITS = ".hits"
LOCK = "lock"
LOCK_TIMEOUT_S = 60.0
SPARE = 256 << 20
"""Bytes of the disk that are left to everybody else."""
HALF_LIFE_S = 7 * 86400.0
TOKEN_WORTH = 1 << 20
"""Bytes that may be read to save one token: at memory speed half a millisecond, and no model here evaluates a token sooner."""
_NAME = re.compile(r"[0-9a-f]{64}\.kv")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A verified snapshot: in memory, or as a file that holds the payload and nothing else."""

    name: str
    header: Header
    payload: memoryview  # empty where it is in a file
    size: int  # bytes of the payload
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A snapshot file as the folder shows it."""

    name: str
    size: int  # bytes
    used_ns: int  # time of the last use, ns since the epoch
    hits: int  # restores so far


@dataclass(frozen=True, slots=True)
class Plan:
    """What can be had from the store for a prefix: these files, of which the first `tokens` tokens are usable."""

    names: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Closest:
    """The stored state that is nearest to one that is missing, and what keeps it from being used."""

    header: Header
    changes: tuple[Change, ...]  # empty: the identity is the same, the tokens are not
    shared: int  # tokens from the start that are the same


def names(identity: Identity, tokens: tuple[int, ...], layers: Iterable[Span]) -> tuple[str, ...]:
    """File names of the layers of a prefix: hex SHA-256 over all that must match, up to each layer's end."""
    digest = hashlib.sha256(f"{layout.VERSION}\n".encode() + msgspec.json.encode(identity, order="deterministic"))
    found, start = [], 0
    for layer in layers:
        digest.update(b"".join(token.to_bytes(8, "little", signed=True) for token in tokens[start : layer.end]))
        digest.update(b"|")  # the same tokens cut elsewhere are other files
        found.append(digest.hexdigest() + SUFFIX)
        start = layer.end
    return tuple(found)


def _chain(header: Header) -> tuple[str, ...]:
    """Names of the files of all layers up to this one, which is the last."""
    return names(header.identity, header.tokens, header.layers)


def name_of(header: Header) -> str:
    """The name that a snapshot with this header must have."""
    return _chain(header)[-1]


class Store:
    """Snapshots in one private folder, at most `budget` bytes of them."""

    def __init__(self, folder: Path, budget: int) -> None:
        """Opens, and makes if needed, the folder (mode 0700). Raises StorageProblem."""
        self.folder = private_dir(folder)
        self.budget = budget

    def path(self, name: str) -> Path:
        """Where the snapshot of this name is. Raises SnapshotRejected for what is no name of a snapshot."""
        if not _NAME.fullmatch(name):
            raise SnapshotRejected(f"{name!r} is not the name of a snapshot")
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether there is a file of that name; what it holds shows when it is read."""
        return os.path.lexists(self.path(name))

    # --- finding ---

    def plan(
        self, identity: Identity, prefix: Prefix, *, rollback: bool, without: Container[str] = ()
    ) -> tuple[Plan, Closest | None]:
        """The most that can be restored of `prefix`, and if that is not all, the closest state there is.

        With `rollback` (dense attention) a state may be restored and cut, so its tokens need only begin like the prefix; without,
        it must be a prefix of it as a whole. Snapshots named in `without` are as good as missing.
        """

        wanted = names(identity, prefix.tokens, prefix.layers)
        if all(name not in without and self.has(name) for name in wanted):
            return Plan(wanted, len(prefix.tokens)), None
        entries = self.entries()
        sizes = {entry.name: entry.size for entry in entries}

        def there(chain: Iterable[str]) -> bool:
            return all(name not in without and name in sizes for name in chain)

        best, best_gain, closest = Plan(), 0.0, None
        for entry in reversed(entries):  # of equal ones, the one used last
            header = self.header(entry.name)
            if header is None:
                continue
            changes = identity_changes(header.identity, identity)
            shared = shared_length(header.tokens, prefix.tokens)
            if closest is None or (-len(changes), shared) > (-len(closest.changes), closest.shared):
                closest = Closest(header, changes, shared)
            if changes:
                continue
            if shared < len(header.tokens) and not rollback:
                continue
            chain = names(identity, header.tokens, beginning_before(header.layers, shared))
            if shared > 0 and there(chain):
                gain = shared - sum(sizes[name] for name in chain) / TOKEN_WORTH
                if gain > best_gain:
                    best, best_gain = Plan(chain, shared), gain
        return best, closest

    def read(self, name: str, identity: Identity, tokens: tuple[int, ...], *, into: Path | None = None) -> Snapshot:
        """The snapshot of that name, verified, which must be of this identity and agree with these tokens as far as both go.

        Its payload comes in memory, or in the new file `into` (mode 0600), which is the caller's then and is not there where this
        raises. Raises SnapshotRejected; a snapshot that is damaged or something else has then been set aside.
        """

        def accept(header: Header, length: int) -> None:
            fits = shared_length(header.tokens, tokens) == min(len(header.tokens), len(tokens))
            if name_of(header) != name or header.identity != identity or not fits:
                raise SnapshotRejected("it belongs to another prefix or engine")
            if length > self.budget:
                raise SnapshotRejected(f"its payload of {length:,} bytes is larger than the store may be")

        try:
            if into is not None:
                header, size = _poured(self.path(name), accept, into)
                return Snapshot(name, header, memoryview(b""), size, into)
            header, payload = layout.read(self.path(name), accept)
        except SnapshotRejected as damaged:
            self.reject(name)
            raise SnapshotRejected(f"snapshot {name[:12]} was set aside: {damaged.message}") from damaged
        except (OSError, MemoryError) as unreadable:
            reason = unreadable.strerror if isinstance(unreadable, OSError) else "out of memory"
            raise SnapshotRejected(f"snapshot {name[:12]} cannot be read: {reason}") from unreadable
        return Snapshot(name, header, payload, len(payload))

    def header(self, name: str) -> Header | None:
        """The verified header of a snapshot; None when it cannot be read or is damaged."""
        path = self.path(name)
        try:
            with layout.open_regular(path) as file:
                return layout.read_header(file)[0]
        except (OSError, SnapshotRejected):
            return None

    def used(self, name: str) -> None:
        """Count a restore. A store that cannot be written is still a store."""
        with contextlib.suppress(OSError):
            os.utime(self.path(name))
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            flags |= getattr(os, "O_NONBLOCK", 0)  # a FIFO of that name has no reader, and would be waited for
            descriptor = os.open(self.folder / (name + HITS), flags, 0o600)
            try:
                os.write(descriptor, b"+")
            finally:
                os.close(descriptor)

    def reject(self, name: str) -> None:
        """Set a snapshot aside under a name that is never looked up; an earlier one of that name is replaced.

        A folder that was set aside before is somebody's, and stays: then this one gets another name.
        """
        path = self.path(name)
        try:
            path.replace(self.folder / (name + REJECTED))
        except OSError:
            with contextlib.suppress(OSError):
                path.replace(self.folder / f"{name}.{os.urandom(8).hex()}{REJECTED}")

    def entries(self) -> list[Entry]:
        """All snapshots, least recently used first."""
        found, hits = [], {}
        for item in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):  # another process is cleaning up
                if _NAME.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                    info = item.stat(follow_symlinks=False)
                    found.append((item.name, info.st_size, info.st_mtime_ns))
                elif item.name.endswith(HITS):
                    hits[item.name.removesuffix(HITS)] = item.stat(follow_symlinks=False).st_size
        entries = [Entry(name, size, used, hits.get(name, 0)) for name, size, used in found]
        return sorted(entries, key=lambda entry: (entry.used_ns, entry.name))

    def size(self) -> int:
        """Bytes on disk, rejected and unfinished files included."""
        return sum(size for _, size in self._files())

    def _files(self) -> Iterator[tuple[str, int]]:
        for item in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):
                if not item.is_dir(follow_symlinks=False):
                    yield item.name, item.stat(follow_symlinks=False).st_size

    # --- writing ---

    def put(self, header: Header, payload: bytes | bytearray | memoryview, *, replace: bool = False) -> tuple[str, int]:
        """Write a snapshot; returns its name and the bytes written: 0 when it is there already and `replace` is not asked for.

        Room is made before writing. Raises StorageProblem: over budget, disk full or read-only, or the store is held too long.
        """
        name = name_of(header)
        parts = list(layout.chunks(header, payload))
        size = sum(len(part) for part in parts)
        if size > self.budget:
            raise StorageProblem(
                f"a snapshot of {size:,} bytes is larger than the store's budget of {self.budget:,}",
                hint="raise store_budget_mib in the settings",
            )
        with self._alone():
            if not replace and self.header(name) is not None:  # another process was first
                return name, 0
            self._make_room(size, {*_chain(header)})
            require_space(self.folder, size + SPARE)
            atomic_write(self.path(name), parts, mode=0o600)
        return name, size

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """The lock of all who write or remove; what a killed one left behind is removed first."""
        try:
            with locked(self.folder / LOCK, timeout_s=LOCK_TIMEOUT_S):
                remove_orphans(self.folder, age_s=0)
                yield
        except OSError as refused:
            raise StorageProblem(
                f"the store in {self.folder} cannot be written: {refused.strerror}",
                hint="check the folder and its disk, or set cache_dir",
            ) from refused

    def remove(self, name: str) -> int:
        """Remove a snapshot and its count of hits; returns the bytes freed. What is gone already is no error."""
        freed = 0
        for path in (self.path(name), self.folder / (name + HITS)):
            with contextlib.suppress(FileNotFoundError):
                size = path.lstat().st_size
                path.unlink()
                freed += size
        return freed

    def _make_room(self, size: int, keep: set[str]) -> list[str]:
        """Evict until `size` more bytes are within the budget; returns what was evicted."""
        total = sum(found for _, found in self._files()) + size
        evicted = []
        for name, bytes_there in self._useless():
            if total <= self.budget:
                break
            (self.folder / name).unlink(missing_ok=True)
            total -= bytes_there
        left = [_Held(entry, self.header(entry.name)) for entry in self.entries()] if total > self.budget else []
        while total > self.budget and (victim := _least_worth(left, keep)) is not None:
            total -= self.remove(victim.entry.name)
            evicted.append(victim.entry.name)
            left.remove(victim)
        return evicted

    def _useless(self) -> Iterator[tuple[str, int]]:
        """Files that nobody will read: set aside, or counting the hits of a snapshot that is gone."""
        for name, size in list(self._files()):
            orphan = name.endswith(HITS) and not os.path.lexists(self.folder / name.removesuffix(HITS))
            if name.endswith(REJECTED) or orphan:
                yield name, size

    # --- keeping house ---

    def verify(self, name: str) -> Header:
        """Re-derive everything about one snapshot: checksums, lengths, name, layers before it. Raises SnapshotRejected, OSError."""
        header, _ = layout.verify(self.path(name))
        *parents, own = _chain(header)
        if own != name:
            raise SnapshotRejected("its name is not the hash of its content")
        if header.pos_max != len(header.tokens) - 1 or not 0 <= header.pos_min <= header.pos_max:
            raise SnapshotRejected(f"positions {header.pos_min} to {header.pos_max} do not fit its tokens")
        for parent in parents:
            if self.header(parent) is None:
                raise SnapshotRejected(f"the layer before it ({parent[:12]}) is missing")
        return header

    def collect(self) -> dict[str, int]:
        """Remove what is of no use, then what is over budget: file name -> bytes. Raises StorageProblem."""
        removed: dict[str, int] = {}
        with self._alone():
            for name, size in list(self._useless()):
                (self.folder / name).unlink(missing_ok=True)
                removed[name] = size
            for name in self.rejected():
                with contextlib.suppress(OSError):  # a folder in a snapshot's place, and something in it: somebody's
                    (self.folder / name).rmdir()
            while useless := [entry.name for entry in self.entries() if not self._usable(entry.name)]:
                removed |= {name: self.remove(name) for name in useless}  # one that others build upon: theirs are next
            sizes = {entry.name: entry.size for entry in self.entries()}
            removed |= {name: sizes.get(name, 0) for name in self._make_room(0, set())}
        return removed

    def _usable(self, name: str) -> bool:
        header = self.header(name)
        if header is None:
            return False
        *parents, own = _chain(header)
        return own == name and all(self.header(parent) is not None for parent in parents)

    def purge(self, chosen: Callable[[Entry], bool] = lambda _entry: True) -> dict[str, int]:
        """Remove the chosen snapshots and those that build upon them, and all that was set aside. Raises StorageProblem."""
        with self._alone():
            removed = {entry.name: self.remove(entry.name) for entry in self.entries() if chosen(entry)}
        return removed | self.collect()

    def unfinished(self) -> list[str]:
        """Names of files that a killed process did not finish."""
        return sorted(name for name, _ in self._files() if is_unfinished(name))

    def rejected(self) -> list[str]:
        """Names of what was set aside."""
        return sorted(item.name for item in os.scandir(self.folder) if item.name.endswith(REJECTED))


class _Held:
    """A snapshot that may have to go: its names are hashed once, however many go before it."""

    def __init__(self, entry: Entry, header: Header | None) -> None:
        self.entry = entry
        self.header = header
        self.parents = _chain(header)[:-1] if header is not None else ()


def _least_worth(held: list[_Held], keep: set[str]) -> _Held | None:
    """The snapshot whose loss costs least: never one of `keep`, nor one that others build upon; system layers last.

    Order: hits (halved for every week since the last one), tokens saved per byte, age.
    """
    parents = {parent for item in held for parent in item.parents}
    now = time.time_ns()

    def worth(item: _Held) -> tuple[float, ...]:
        entry, header = item.entry, item.header
        if header is None:
            return (-1.0,)
        age_s = max(now - entry.used_ns, 0) / 1e9
        hits = entry.hits * 0.5 ** int(age_s / HALF_LIFE_S)
        return (float(header.start == 0), hits, (len(header.tokens) - header.start) / entry.size, -age_s)

    candidates = [item for item in held if item.entry.name not in keep and item.entry.name not in parents]
    return min(candidates, key=worth, default=None)


def _poured(path: Path, accept: Callable[[Header, int], None], into: Path) -> tuple[Header, int]:
    """The payload in a file of its own; nothing is synchronised, as nobody needs it after a crash."""

    def create(target: str, flags: int) -> int:
        return os.open(target, flags, 0o600)

    try:
        with open(into, "xb", buffering=0, opener=create) as file:

            def take(part: memoryview) -> None:
                while part:
                    part = part[file.write(part) :]

            header, length = layout.pour(path, accept, take)
    except BaseException:
        into.unlink(missing_ok=True)
        raise
    return header, length


def identity_changes(old: Identity, new: Identity) -> tuple[Change, ...]:
    """Fields that differ, by name; a parameter that is in one of them only is `unset` in the other."""
    found = [
        Change(name, getattr(old, name), getattr(new, name))
        for name in ("engine", "build", "model")
        if getattr(old, name) != getattr(new, name)
    ]
    for name in ("context", "environment", "prompt"):
        before, after = dict(getattr(old, name)), dict(getattr(new, name))
        found += [
            Change(field, before.get(field, "unset"), after.get(field, "unset"))
            for field in sorted(before.keys() | after.keys())
            if before.get(field) != after.get(field)
        ]
    return tuple(found)


def describe(change: Change) -> str:
    """`field (old -> new)`; hashes are shortened."""
    return f"{change.field} ({_short(change.old)} -> {_short(change.new)})"


def _short(value: str) -> str:
    return value[:12] if len(value) == 64 else value
