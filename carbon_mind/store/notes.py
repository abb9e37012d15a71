"""What the store remembers about warm starts, apart from the states: that one is complete, and how the last one went.

A ticket says which snapshots a request ended with, so that the same request is answered without loading the model. A request is
all that decides the prefix and its state, hashed; the snapshots it names are verified each time. The journal has the last warm start
of each repository, for `carbon why`. Both are small JSON files, rewritten as a whole; one that is lost costs a look, never a state.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.safety.files import atomic_write, private_dir, read_regular
from carbon_mind.store.states import Store, names
from carbon_mind.values import Layer, RepoPath, WarmResult

MANY = 256
"""Tickets from which on a new one makes the store look for old ones."""
_MAX_BYTES = 4 << 20
_Note = TypeVar("_Note")


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layers that a warm start ended with, each with its snapshot."""

    layers: tuple[Layer, ...]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One warm start. Its texts come from a repository and a model: data, shown cleaned."""

    when: int  # seconds since the epoch
    command: str
    repository: str
    model: str  # file name
    result: WarmResult
    tokens_per_s: float = 0.0  # prefill, the last time any was needed here; 0: unknown


def _path(store: Store, folder: str, key: str) -> Path:
    return private_dir(store.folder / folder) / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def write_ticket(store: Store, request: str, ticket: Ticket) -> None:
    """Remember; a store that cannot be written forgets."""
    with contextlib.suppress(StorageProblem):
        path = _path(store, "tickets", request)
        atomic_write(path, msgspec.json.encode(ticket), mode=0o600)
        if sum(1 for _ in path.parent.iterdir()) > MANY:
            tidy(store)


def redeem(store: Store, request: str) -> Ticket | None:
    """The ticket for this request if every snapshot it names is there and whole, every byte verified; else None."""
    try:
        path = _path(store, "tickets", request)
        ticket = _read(path, Ticket)
        if ticket is None:
            return None
        snapshots = tuple(layer.snapshot for layer in ticket.layers)
        headers = [store.verify(name) for name in snapshots]
        if not headers or names(headers[-1].identity, headers[-1].tokens, headers[-1].layers) != snapshots:
            return None
    except (OSError, SnapshotRejected, StorageProblem):
        return None
    return ticket


def write_record(store: Store, record: Record) -> None:
    """Keep the last warm start of a repository; a store that cannot be written forgets."""
    with contextlib.suppress(StorageProblem):
        atomic_write(_path(store, "last", record.repository), msgspec.json.encode(record), mode=0o600)


def read_record(store: Store, repository: str) -> Record | None:
    """The last warm start of the repository, None when there is none (or it is damaged)."""
    try:
        return _read(_path(store, "last", repository), Record)
    except StorageProblem:
        return None


def records(store: Store) -> list[Record]:
    """The last warm starts of all repositories, the latest first."""
    found: list[Record | None] = []
    with contextlib.suppress(OSError, StorageProblem):
        found += [_read(path, Record) for path in sorted(private_dir(store.folder / "last").glob("*.json"))]
    return sorted(filter(None, found), key=lambda record: -record.when)


def _read(path: Path, kind: type[_Note]) -> _Note | None:
    """The note in this file; None for whatever is none. A link is not followed, and a FIFO not waited for."""
    try:
        return msgspec.json.decode(read_regular(path.parent, RepoPath(path.name), _MAX_BYTES), type=kind)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def tidy(store: Store) -> None:
    """Remove tickets that name snapshots which are gone."""
    with contextlib.suppress(OSError, StorageProblem):
        for path in private_dir(store.folder / "tickets").glob("*.json"):
            ticket = _read(path, Ticket)
            try:
                kept = ticket is not None and all(store.has(layer.snapshot) for layer in ticket.layers)
            except SnapshotRejected:
                kept = False
            if not kept:
                with contextlib.suppress(OSError):  # a folder: the others are looked at all the same
                    path.unlink()


def clear(store: Store) -> None:
    """Forget the last warm starts, too: their texts are a repository's."""
    tidy(store)
    with contextlib.suppress(OSError, StorageProblem):
        for path in private_dir(store.folder / "last").glob("*.json"):
            with contextlib.suppress(OSError):
                path.unlink()
