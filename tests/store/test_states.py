"""The folder of snapshots: found by content, refused when in doubt, bounded, private, and able to say why not."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.store.format import Header
from carbon_mind.store.states import REJECTED, Store, identity_differences, key
from carbon_mind.values import Identity

IDENTITY = Identity("fake 1", "0" * 64, "1" * 64, (("n_ctx", "8192"), ("type_k", "f16")))
TOKENS = tuple(range(100))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 20)


def put(
    store: Store, tokens: tuple[int, ...] = TOKENS, identity: Identity = IDENTITY, payload: bytes = b"state"
) -> str:
    return store.put(Header(identity, tokens, 0, len(tokens) - 1), payload)[0]


def test_a_snapshot_is_found_by_identity_and_tokens_only(store: Store) -> None:
    name = put(store)
    found = store.find(IDENTITY, TOKENS)
    assert found is not None
    assert (found.name, bytes(found.payload)) == (name, b"state")
    assert store.find(IDENTITY, TOKENS[:-1]) is None
    assert store.find(replace(IDENTITY, model="2" * 64), TOKENS) is None
    assert store.find(replace(IDENTITY, environment=(("GGML_X", "1"),)), TOKENS) is None


def test_folder_and_files_are_private(store: Store) -> None:
    name = put(store)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.folder / name).stat().st_mode) == 0o600


def test_a_damaged_snapshot_is_set_aside_once_and_named(store: Store) -> None:
    name = put(store)
    path = store.folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotRejected, match="set aside"):
        store.find(IDENTITY, TOKENS)
    assert store.find(IDENTITY, TOKENS) is None
    assert (store.folder / (name + REJECTED)).exists()


def test_a_snapshot_under_a_wrong_name_is_never_used(store: Store) -> None:
    other = put(store, tokens=TOKENS[:50])
    (store.folder / other).rename(store.folder / (key(IDENTITY, TOKENS) + ".kv"))
    with pytest.raises(SnapshotRejected, match="belongs to another"):
        store.find(IDENTITY, TOKENS)


def test_room_is_made_from_the_least_recently_used_and_never_from_the_new_one(tmp_path: Path) -> None:
    size = Store(tmp_path / "probe", 1 << 20).put(Header(IDENTITY, TOKENS, 0, 99), bytes(1000))[1]
    store = Store(tmp_path / "store", size * 2 + size // 2)
    names = [put(store, tokens=(*TOKENS[:-1], 1000 + i), payload=bytes(1000)) for i in range(2)]
    for age, name in ((50, names[0]), (90, names[1])):
        os.utime(store.folder / name, ns=(0, (10**9 - age) * 10**9))
    third = put(store, tokens=(*TOKENS[:-1], 2000), payload=bytes(1000))
    left = [entry.name for entry in store.entries()]
    assert left == [names[0], third]
    with pytest.raises(StorageProblem, match="budget"):
        put(store, payload=bytes(1 << 20))
    assert [entry.name for entry in store.entries()] == left, "nothing is evicted for what cannot fit"


def test_a_write_that_fails_leaves_what_was_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store)
    before = store.find(IDENTITY, TOKENS)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageProblem, match="No space left"):
        put(store, payload=b"newer")
    monkeypatch.undo()
    assert store.find(IDENTITY, TOKENS) == before
    assert [item.name for item in store.folder.iterdir()] == [before.name if before else ""]


def test_every_miss_has_a_reason(store: Store) -> None:
    assert store.explain(IDENTITY, TOKENS) == "nothing has been stored for this model yet"
    put(store)
    changed = (*TOKENS[:60], 999, *TOKENS[61:])
    assert store.explain(IDENTITY, changed) == "the closest stored prefix differs from token 60 of 100 on"
    other = replace(IDENTITY, context=(("n_ctx", "4096"), ("type_k", "f16")))
    assert store.explain(other, TOKENS) == "the stored state is of another setup: n_ctx (8192 -> 4096)"
    assert "nothing" in store.explain(replace(IDENTITY, model="9" * 64), TOKENS)


def test_differences_are_named_field_by_field() -> None:
    other = replace(IDENTITY, engine="fake 2", environment=(("GGML_X", "1"),))
    assert identity_differences(IDENTITY, other) == ["engine (fake 1 -> fake 2)", "GGML_X (unset -> 1)"]
    assert identity_differences(IDENTITY, IDENTITY) == []


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageProblem):
        Store(tmp_path / "store", 1 << 20)
