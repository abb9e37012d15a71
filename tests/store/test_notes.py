"""What the store remembers of warm starts: a ticket is worth what its snapshots are, and a broken note is no note."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from carbon_mind.store import notes
from carbon_mind.store.notes import Record, Ticket, redeem, write_ticket
from carbon_mind.store.states import Store
from carbon_mind.values import Clocks, Difference, Layer, Miss, WarmResult
from tests.store.test_states import put_layers

RESULT = WarmResult(
    state="extended",
    tokens=100,
    evaluated=60,
    restored=40,
    layers=(Layer("base", 40, 40, "a", 10, 0), Layer("digest", 60, 0, "b", 0, 20)),
    clocks=Clocks(0.1, 0.2, 0.3, 0.4),
    miss=Miss("the prefix differs", difference=Difference(40, "digest", "old", "new"), rejected=("x",)),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 20)


def ticket_for(store: Store) -> Ticket:
    base, digest = put_layers(store)
    return Ticket((Layer("base", 40, 0, base, 0, 40), Layer("digest", 60, 0, digest, 0, 60)))


def test_a_ticket_holds_while_its_snapshots_are_whole(store: Store) -> None:
    assert redeem(store, "request") is None
    ticket = ticket_for(store)
    write_ticket(store, "request", ticket)
    assert redeem(store, "request") == ticket
    assert redeem(store, "another request") is None
    path = store.folder / ticket.layers[0].snapshot
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:-30] + b"\1" + whole[-29:], b""):
        path.write_bytes(damaged)
        assert redeem(store, "request") is None
    path.write_bytes(whole)
    assert redeem(store, "request") == ticket
    path.unlink()
    assert redeem(store, "request") is None


def test_a_ticket_for_layers_that_do_not_belong_together_is_refused(store: Store) -> None:
    ticket = ticket_for(store)
    for layers in ((), ticket.layers[1:], ticket.layers[::-1], (ticket.layers[0], ticket.layers[0])):
        write_ticket(store, "request", Ticket(layers))
        assert redeem(store, "request") is None
    outside = replace(ticket.layers[0], snapshot="../../etc/passwd")
    write_ticket(store, "request", Ticket((outside,)))
    assert redeem(store, "request") is None


def test_old_tickets_go_when_their_snapshots_have(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MANY", 3)
    ticket = ticket_for(store)
    gone = Ticket((replace(ticket.layers[0], snapshot="0" * 64 + ".kv"),))
    for i in range(3):
        write_ticket(store, f"old {i}", gone)
    (store.folder / "tickets" / "noise.json").write_bytes(b"{")
    write_ticket(store, "request", ticket)
    assert len(list((store.folder / "tickets").iterdir())) == 1
    assert redeem(store, "request") == ticket


def record(repository: str = "/r", when: int = 1) -> Record:
    return Record(when=when, command="warm", repository=repository, model="m.gguf", result=RESULT, tokens_per_s=400.0)


def test_the_last_warm_start_of_each_repository_is_kept(store: Store) -> None:
    assert notes.read_record(store, "/r") is None
    for when in (1, 2):
        notes.write_record(store, record(when=when))
    notes.write_record(store, record("/other", 5))
    assert notes.read_record(store, "/r") == record(when=2)
    assert [found.repository for found in notes.records(store)] == ["/other", "/r"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in store.folder.rglob("*.json")}
    assert modes == {0o600}
    notes.clear(store)
    assert notes.records(store) == []


NESTED = b"[" * 100_000 + b"]" * 100_000


def holding(noise: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(noise)


def linked(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    "make",
    [
        holding(b""),
        holding(b"{"),
        holding(b"[]"),
        holding(b"\xff\xfe"),
        holding(b'{"layers": 7}'),
        holding(b'{"layers": [[]]}'),
        holding(b"[" * 100_000),
        holding(b'{"layers": [{"more": ' + NESTED + b"}]}"),
        holding(b'{"when": 1, "command": "", "repository": "", "model": "", "result": {"more": ' + NESTED + b"}}"),
        os.mkfifo,
        linked,
    ],
)
def test_a_broken_note_is_no_note(store: Store, make: Callable[[Path], object]) -> None:
    write_ticket(store, "request", ticket_for(store))
    notes.write_record(store, record())
    for path in list(store.folder.rglob("*.json")):
        path.unlink()
        make(path)
    assert redeem(store, "request") is None
    assert notes.read_record(store, "/r") is None
    assert notes.records(store) == []
    notes.tidy(store)
    assert list((store.folder / "tickets").iterdir()) == []


def test_a_folder_among_the_notes_keeps_no_other_from_being_tidied(store: Store) -> None:
    write_ticket(store, "request", ticket_for(store))
    for i in range(8):  # in whatever order the system lists them
        (store.folder / "tickets" / f"{i}.json").mkdir()
        (store.folder / "tickets" / f"noise{i}.json").write_bytes(b"{")
    notes.tidy(store)
    assert [path.is_dir() for path in sorted((store.folder / "tickets").iterdir())].count(False) == 1
    assert redeem(store, "request") is not None


def test_a_link_in_place_of_a_note_folder_is_not_followed(store: Store, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("tickets", "last"):
        (store.folder / name).symlink_to(elsewhere)
    write_ticket(store, "request", ticket_for(store))
    notes.write_record(store, record())
    assert list(elsewhere.iterdir()) == []
    assert redeem(store, "request") is None
    assert notes.records(store) == []


def test_a_note_says_everything_that_the_result_does() -> None:
    assert msgspec.json.decode(msgspec.json.encode(record()), type=Record) == record()
