"""The folder of snapshots: found by content, refused when in doubt, bounded, private, and able to say why not."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.store import states
from carbon_mind.store.format import Header
from carbon_mind.store.states import HITS, REJECTED, Store, describe, identity_changes, name_of, names
from carbon_mind.values import Identity, Prefix, Span

IDENTITY = Identity("fake 1", "0" * 64, "1" * 64, (("n_ctx", "8192"), ("type_k", "f16")))
TOKENS = tuple(range(100))
LAYERS = (Span("base", 40), Span("digest", 100))
PREFIX = Prefix(TOKENS, LAYERS)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 20)


def header(
    tokens: tuple[int, ...] = TOKENS, identity: Identity = IDENTITY, ends: Iterable[int] = (), model: str = "m.gguf"
) -> Header:
    layers = tuple(Span(f"layer{i}", end) for i, end in enumerate(ends)) or (Span("base", len(tokens)),)
    return Header(
        identity=identity,
        tokens=tokens,
        pos_min=0,
        pos_max=len(tokens) - 1,
        layers=layers,
        labels=(("model", model),),
    )


def put(
    store: Store,
    tokens: tuple[int, ...] = TOKENS,
    identity: Identity = IDENTITY,
    payload: bytes = b"state",
    ends: Iterable[int] = (),
) -> str:
    return store.put(header(tokens, identity, ends), payload)[0]


def put_layers(store: Store, prefix: Prefix = PREFIX, identity: Identity = IDENTITY) -> tuple[str, ...]:
    """A snapshot for each layer of the prefix."""
    ends = [layer.end for layer in prefix.layers]
    return tuple(put(store, prefix.tokens[:end], identity, b"x" * end, ends[: i + 1]) for i, end in enumerate(ends))


def single(tokens: tuple[int, ...]) -> Prefix:
    return Prefix(tokens, (Span("base", len(tokens)),))


def plan(store: Store, prefix: Prefix, identity: Identity = IDENTITY, *, rollback: bool = True) -> states.Plan:
    return store.plan(identity, prefix, rollback=rollback)[0]


# --- finding -----------------------------------------------------------------------------------------------------


def test_a_snapshot_is_found_by_identity_and_tokens_only(store: Store) -> None:
    name = put(store)
    assert plan(store, single(TOKENS)) == states.Plan((name,), 100)
    found = store.read(name, IDENTITY, TOKENS)
    assert (found.name, bytes(found.payload)) == (name, b"state")
    for other in (replace(IDENTITY, model="2" * 64), replace(IDENTITY, environment=(("GGML_X", "1"),))):
        assert plan(store, single(TOKENS), other) == states.Plan()
    assert plan(store, single((7, *TOKENS))) == states.Plan()


def test_every_part_of_the_key_changes_the_name() -> None:
    base = header(ends=(40, 100))
    others = [
        header(ends=(41, 100)),
        header((*TOKENS[:-1], 5), ends=(40, 100)),
        header(TOKENS[:99], ends=(40, 99)),
        *(
            header(identity=replace(IDENTITY, **{name: value}), ends=(40, 100))  # type: ignore[arg-type]
            for name, value in (
                ("engine", "fake 2"),
                ("build", "2" * 64),
                ("model", "2" * 64),
                ("context", (("n_ctx", "4096"),)),
                ("environment", (("GGML_X", "1"),)),
                ("prompt", (("template", "3" * 64),)),
            )
        ),
    ]
    assert len({name_of(item) for item in [base, *others]}) == 10


def test_layers_are_separate_files_and_each_is_found_by_the_one_before(store: Store) -> None:
    base, digest = put_layers(store)
    assert (base, digest) == names(IDENTITY, TOKENS, LAYERS)
    assert plan(store, PREFIX) == states.Plan((base, digest), 100)
    changed = Prefix((*TOKENS[:40], *range(500, 560)), LAYERS)
    assert plan(store, changed, rollback=False) == states.Plan((base,), 40), "the base serves another digest"
    assert plan(store, changed) == states.Plan((base,), 40)


def test_a_dense_state_is_reused_up_to_the_first_changed_token_and_no_other_is(store: Store) -> None:
    base, digest = put_layers(store)
    changed = Prefix((*TOKENS[:80], *range(500, 520)), LAYERS)
    assert plan(store, changed) == states.Plan((base, digest), 80)
    assert plan(store, changed, rollback=False) == states.Plan((base,), 40)
    shorter = single(TOKENS[:90])
    assert plan(store, shorter) == states.Plan((base, digest), 90)
    assert plan(store, shorter, rollback=False) == states.Plan((base,), 40)


def test_a_layer_whose_base_is_gone_is_of_no_use(store: Store) -> None:
    base, _ = put_layers(store)
    (store.folder / base).unlink()
    assert plan(store, PREFIX) == states.Plan()


def test_megabytes_are_not_read_to_save_a_token(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    base, digest = put_layers(store)
    one_more = Prefix((*TOKENS[:41], *range(500, 559)), LAYERS)
    assert plan(store, one_more) == states.Plan((base, digest), 41)
    monkeypatch.setattr(states, "TOKEN_WORTH", 50)  # bytes
    assert plan(store, one_more) == states.Plan((base,), 40)


def test_a_snapshot_under_a_wrong_name_is_never_used(store: Store) -> None:
    other = put(store, tokens=TOKENS[:50])
    wrong = names(IDENTITY, TOKENS, (Span("base", 100),))[0]
    (store.folder / other).rename(store.folder / wrong)
    with pytest.raises(SnapshotRejected, match="belongs to another"):
        store.read(wrong, IDENTITY, TOKENS)
    assert not store.has(wrong)


def test_a_damaged_snapshot_is_set_aside_once_and_named(store: Store) -> None:
    name = put(store)
    path = store.folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotRejected, match=f"{name[:12]} was set aside: lengths do not add up"):
        store.read(name, IDENTITY, TOKENS)
    assert not store.has(name)
    assert store.rejected() == [name + REJECTED]


@pytest.mark.parametrize(
    "name", ["../x.kv", "x.kv", "", "a" * 64, "/etc/passwd", "a" * 64 + ".kv.rejected", "A" * 64 + ".kv"]
)
def test_no_name_leads_out_of_the_folder(store: Store, name: str) -> None:
    for use in (store.path, store.has, store.header, store.remove, store.reject, store.used, store.verify):
        with pytest.raises(SnapshotRejected, match="not the name"):
            use(name)


# --- explaining --------------------------------------------------------------------------------------------------


def test_the_closest_state_says_what_is_missing(store: Store) -> None:
    assert store.plan(IDENTITY, PREFIX, rollback=True)[1] is None
    put_layers(store)
    changed = Prefix((*TOKENS[:60], 999, *TOKENS[61:]), LAYERS)
    closest = store.plan(IDENTITY, changed, rollback=True)[1]
    assert closest is not None
    assert (closest.changes, closest.shared, len(closest.header.tokens)) == ((), 60, 100)
    other = replace(IDENTITY, context=(("n_ctx", "4096"), ("type_k", "f16")))
    closest = store.plan(other, PREFIX, rollback=True)[1]
    assert closest is not None
    assert list(map(describe, closest.changes)) == ["n_ctx (8192 -> 4096)"]
    assert store.plan(IDENTITY, PREFIX, rollback=True)[1] is None, "all of it is there"


def test_differences_are_named_field_by_field() -> None:
    other = replace(IDENTITY, engine="fake 2", model="2" * 64, environment=(("GGML_X", "1"),))
    assert list(map(describe, identity_changes(IDENTITY, other))) == [
        "engine (fake 1 -> fake 2)",
        f"model ({'1' * 12} -> {'2' * 12})",
        "GGML_X (unset -> 1)",
    ]
    assert identity_changes(IDENTITY, IDENTITY) == ()


# --- life --------------------------------------------------------------------------------------------------------


def test_folder_and_files_are_private(store: Store) -> None:
    name = put(store)
    store.used(name)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()} == {0o600}


def test_a_restore_is_counted_and_a_second_writer_writes_nothing(store: Store) -> None:
    name = put(store)
    assert store.put(header(), b"state") == (name, 0)
    assert store.put(header(), b"other", replace=True)[1] > 0
    assert bytes(store.read(name, IDENTITY, TOKENS).payload) == b"other"
    for _ in range(3):
        store.used(name)
    assert [entry.hits for entry in store.entries()] == [3]


def test_a_fifo_in_place_of_the_hits_is_not_waited_for(store: Store) -> None:
    name = put(store)
    os.mkfifo(store.folder / (name + HITS))
    store.used(name)


def test_a_folder_that_was_set_aside_stays_and_keeps_nothing_else_from_being_set_aside(store: Store) -> None:
    path = store.folder / names(IDENTITY, TOKENS, (Span("base", 100),))[0]
    path.mkdir()
    (path / "theirs").write_bytes(b"x")
    for _ in range(2):
        with pytest.raises(SnapshotRejected, match="set aside"):
            store.read(path.name, IDENTITY, TOKENS)
        assert not store.has(path.name)
        put(store)
        path.write_bytes(path.read_bytes()[:-1])
    store.collect()
    assert [found.name for found in store.folder.rglob("theirs")] == ["theirs"]


def test_a_damaged_header_does_not_keep_a_writer_from_writing(store: Store) -> None:
    name = put(store)
    (store.folder / name).write_bytes(b"noise")
    assert store.put(header(), b"state")[1] > 0
    assert store.verify(name) == header()


def budget_for(tmp_path: Path, count: float, payload: bytes = bytes(1000)) -> Store:
    probe = Store(tmp_path / "probe", 1 << 20)
    size = probe.put(header(), payload)[1]
    return Store(tmp_path / "store", int(size * count))


def age(store: Store, name: str, days: float) -> None:
    moment = time.time_ns() - int(days * 86400e9)
    os.utime(store.folder / name, ns=(moment, moment))


def test_what_was_restored_least_goes_first_then_the_oldest_and_never_the_new_one(tmp_path: Path) -> None:
    store = budget_for(tmp_path, 4.5)
    used, old, newer = (put(store, (*TOKENS[:-1], 1000 + i), payload=bytes(1000)) for i in range(3))
    store.used(used)
    for name, days in ((used, 5), (old, 4), (newer, 1)):
        age(store, name, days)
    fourth = put(store, (*TOKENS[:-1], 2000), payload=bytes(1000))
    assert {entry.name for entry in store.entries()} == {used, old, newer, fourth}
    fifth = put(store, (*TOKENS[:-1], 2001), payload=bytes(1000))
    assert {entry.name for entry in store.entries()} == {used, newer, fourth, fifth}
    age(store, used, 50)  # seven weeks without a hit
    age(store, fourth, 2)
    put(store, (*TOKENS[:-1], 2002), payload=bytes(1000))
    assert used not in {entry.name for entry in store.entries() if entry.hits == 0}
    assert newer not in {entry.name for entry in store.entries()} or fourth not in {e.name for e in store.entries()}


def test_of_two_the_one_that_saves_fewer_tokens_per_byte_goes(tmp_path: Path) -> None:
    store = budget_for(tmp_path, 3.2)
    many = put(store, tuple(range(300)), payload=bytes(1000))
    few = put(store, (9, 9, 9), payload=bytes(1000))
    age(store, many, 3)
    put(store, (*TOKENS[:-1], 1000), payload=bytes(1000))
    left = {entry.name for entry in store.entries()}
    assert many in left
    assert few not in left


def test_a_base_goes_after_its_layers_and_after_all_others(tmp_path: Path) -> None:
    store = budget_for(tmp_path, 2.2, bytes(100))
    base, digest = put_layers(store)
    for _ in range(3):
        store.used(digest)
    age(store, base, 30)
    changed = Prefix((*TOKENS[:40], *range(500, 560)), LAYERS)
    new = names(IDENTITY, changed.tokens, LAYERS)[1]
    put(store, changed.tokens, payload=bytes(100), ends=(40, 100))
    assert {entry.name for entry in store.entries()} == {base, new}, "the base is what the new layer stands on"


def test_what_was_set_aside_goes_before_anything_else(tmp_path: Path) -> None:
    store = budget_for(tmp_path, 2.5)
    kept = put(store, (*TOKENS[:-1], 1000), payload=bytes(1000))
    bad = put(store, (*TOKENS[:-1], 1001), payload=bytes(1000))
    store.reject(bad)
    third = put(store, (*TOKENS[:-1], 1002), payload=bytes(1000))
    assert {entry.name for entry in store.entries()} == {kept, third}
    assert store.rejected() == []
    assert store.size() <= store.budget


def test_nothing_is_evicted_for_what_cannot_fit(tmp_path: Path) -> None:
    store = budget_for(tmp_path, 2.5)
    name = put(store, payload=bytes(1000))
    with pytest.raises(StorageProblem, match="budget"):
        put(store, TOKENS[:50], payload=bytes(1 << 20))
    assert [entry.name for entry in store.entries()] == [name]


def test_a_disk_that_is_nearly_full_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage(store.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=states.SPARE))
    with pytest.raises(StorageProblem, match="Not enough space"):
        put(store)
    assert store.entries() == []


def test_a_write_that_fails_leaves_what_was_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    name = put(store)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageProblem, match="No space left"):
        store.put(header(), b"newer", replace=True)
    monkeypatch.undo()
    assert bytes(store.read(name, IDENTITY, TOKENS).payload) == b"state"
    assert [item.name for item in store.folder.iterdir()] == [name]


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageProblem):
        Store(tmp_path / "store", 1 << 20)


# --- keeping house -----------------------------------------------------------------------------------------------


def test_verify_derives_everything_anew(store: Store) -> None:
    base, digest = put_layers(store)
    assert store.verify(digest).tokens == TOKENS
    wrong = header(ends=(40, 100))
    name = store.put(msgspec.structs.replace(wrong, pos_max=98), b"x", replace=True)[0]
    with pytest.raises(SnapshotRejected, match="positions"):
        store.verify(name)
    (store.folder / base).unlink()
    put(store, ends=(40, 100))
    store.put(wrong, b"x", replace=True)
    with pytest.raises(SnapshotRejected, match="layer before it"):
        store.verify(digest)
    other = put(store, TOKENS[:7])
    (store.folder / other).rename(store.folder / base)
    with pytest.raises(SnapshotRejected, match="not the hash of its content"):
        store.verify(base)


def test_collect_removes_what_nobody_can_use_and_nothing_else(store: Store) -> None:
    base, digest = put_layers(store)
    lost = put(store, (*TOKENS[:-1], 1), ends=(50, 60, 100))
    old = "5" * 64 + ".kv"
    (store.folder / old).write_bytes((Path(__file__).parent / "version1.kv").read_bytes())
    bad = put(store, TOKENS[:9])
    store.used(bad)
    store.reject(bad)
    (store.folder / f"{'6' * 60}.tmp-{'0' * 16}").write_bytes(b"half")
    assert store.unfinished()
    folders = [store.folder / ("7" * 63 + i + ".kv") for i in "12"]
    for folder in folders:
        folder.mkdir()
        store.reject(folder.name)
    (store.folder / (folders[1].name + REJECTED) / "somebody's").touch()
    removed = store.collect()
    assert set(removed) == {lost, old, bad + REJECTED, bad + HITS}
    assert {entry.name for entry in store.entries()} == {base, digest}
    assert store.unfinished() == []
    assert store.rejected() == [folders[1].name + REJECTED], "what is not empty is not ours to remove"
    assert store.collect() == {}


def test_purge_takes_the_chosen_and_what_stands_on_them(store: Store) -> None:
    base, digest = put_layers(store)
    other = put(store, TOKENS[:9])
    removed = store.purge(lambda entry: entry.name == base)
    assert set(removed) == {base, digest}
    assert [entry.name for entry in store.entries()] == [other]
    assert set(store.purge()) == {other}
    assert store.entries() == []


def test_a_budget_that_shrank_is_enforced_by_collect(store: Store) -> None:
    for i in range(4):
        put(store, (*TOKENS[:-1], i), payload=bytes(1000))
    smaller = Store(store.folder, store.size() // 2)
    assert len(smaller.collect()) == 2
    assert smaller.size() <= smaller.budget
