"""The damage suite: whatever happens to a snapshot file, the next warm start does not crash, gives no wrong state, names what is
wrong, sets the file aside, and stores it anew. With the real llama.cpp, which itself accepts damaged states and aborts on cut ones."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.engine.base import Engine, EngineOptions
from carbon_mind.errors import SnapshotRejected
from carbon_mind.store import format as layout
from carbon_mind.store.format import Header
from carbon_mind.store.states import REJECTED, Store
from carbon_mind.values import Identity, Prefix
from carbon_mind.warm import warm
from tests.store.test_format import HEADER, PAYLOAD, whole
from tests.test_warm import HEAD, prefix_of

POINTS = 64


@dataclass
class Bench:
    """One engine and one warmed store, whose files each case damages and then gets back."""

    engine: Engine
    store: Store
    identity: Identity
    prefix: Prefix
    names: tuple[str, ...]
    files: dict[str, bytes]
    scores: Sequence[float]  # of a token behind the prefix, never saved

    def restart(self) -> None:
        """The store as it was."""
        for path in self.store.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        for name, data in self.files.items():
            (self.store.folder / name).write_bytes(data)

    def behind(self) -> Sequence[float]:
        """Scores of that token now."""
        self.engine.prefill(self.engine.tokenize("x"))
        return self.engine.logits()

    def after(self, damage: Callable[[Path], object], layer: int = 0, *, fits: bool = True) -> str:
        """Damage one layer's file; what the warm start says of it. Everything the suite demands is checked here."""
        self.restart()
        path = self.store.folder / self.names[layer]
        damage(path)
        left = {name: (self.store.folder / name).lstat().st_mtime_ns for name in self.names[:layer]}
        result = warm(self.engine, self.store, self.identity, self.prefix)
        kept = self.prefix.layers[layer - 1].end if layer else 0
        assert (result.restored, result.evaluated) == (kept, len(self.prefix.tokens) - kept)
        assert self.behind() == self.scores, "not a wrong answer"
        assert result.miss is not None
        assert path.name[:12] in result.miss.reason
        assert result.miss.rejected == (result.miss.reason,)
        assert self.store.rejected() == ([path.name + REJECTED] if fits else []), "else it has made room already"
        assert [os.path.lexists(self.store.folder / name) for name in left] == [True] * layer
        again = warm(self.engine, self.store, self.identity, self.prefix)
        assert (again.state, again.evaluated) == ("restored", 0)
        assert self.behind() == self.scores
        return result.miss.reason


@pytest.fixture(scope="module")
def bench(tiny: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    from carbon_mind.engine.llama import LlamaEngine

    engine = LlamaEngine(EngineOptions(model=tiny("dense"), n_ctx=2048))
    store = Store(tmp_path_factory.mktemp("damage") / "store", 1 << 30)
    identity, prefix = engine.fingerprint("m"), prefix_of(engine, HEAD)
    result = warm(engine, store, identity, prefix)
    names = tuple(layer.snapshot for layer in result.layers)
    found = Bench(engine, store, identity, prefix, names, {}, ())
    found.scores = found.behind()
    found.files = {path.name: path.read_bytes() for path in store.folder.iterdir() if path.is_file()}
    yield found
    engine.close()


def parts(data: bytes) -> tuple[int, int]:
    """Where the payload of a snapshot begins and ends."""
    _magic, _version, header_length, payload_length = struct.unpack_from("<8sIIQ", data)
    start = 32 + header_length + (-(32 + header_length) % 64)
    return start, start + payload_length


def sealed(data: bytes) -> bytes:
    """The same with the header's checksum made right again: only what comes after it can find the fault."""
    (length,) = struct.unpack_from("<I", data, 12)
    checksum = xxhash.xxh3_64_intdigest(data[:24] + data[32 : 32 + length])
    return data[:24] + struct.pack("<Q", checksum) + data[32:]


def rewritten(data: bytes, **changes: object) -> bytes:
    """The same snapshot with another header, all checksums right."""
    start, end = parts(data)
    (length,) = struct.unpack_from("<I", data, 12)
    header = msgspec.structs.replace(msgspec.json.decode(data[32 : 32 + length], type=Header), **changes)
    return b"".join(bytes(part) for part in layout.chunks(header, data[start:end]))


def patched(data: bytes, offset: int, value: bytes) -> bytes:
    return data[:offset] + value + data[offset + len(value) :]


# --- truncated, flipped ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_every_truncation(bench: Bench, layer: int) -> None:
    size = len(bench.files[bench.names[layer]])
    for i in range(POINTS):
        length = min(i * size // (POINTS - 1), size - 1)
        reason = bench.after(lambda path, length=length: os.truncate(path, length), layer)  # type: ignore[misc]
        assert "cut short" in reason or "do not add up" in reason


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("region", ["header", "payload", "end"])
def test_flipped_bits(bench: Bench, region: str, layer: int) -> None:
    data = bench.files[bench.names[layer]]
    (length,) = struct.unpack_from("<I", data, 12)
    start, end = parts(data)
    first, last = {"header": (0, 32 + length), "payload": (start, end), "end": (end, len(data))}[region]
    chance = random.Random(f"{region} {layer}")
    for _ in range(POINTS):
        at, bit = chance.randrange(first, last), chance.randrange(8)
        flipped = patched(data, at, bytes((data[at] ^ 1 << bit,)))
        reason = bench.after(lambda path, flipped=flipped: path.write_bytes(flipped), layer)  # type: ignore[misc]
        if region == "payload":
            assert "the payload is damaged: wrong checksum" in reason
        assert "set aside" in reason


def test_a_bit_between_header_and_payload_means_nothing(bench: Bench) -> None:
    data = next(
        d for d in (bench.files[name] for name in bench.names) if (32 + struct.unpack_from("<I", d, 12)[0]) % 64
    )
    name = next(name for name in bench.names if bench.files[name] == data)
    bench.restart()
    at = parts(data)[0] - 1
    (bench.store.folder / name).write_bytes(patched(data, at, b"\x01"))
    assert warm(bench.engine, bench.store, bench.identity, bench.prefix).state == "restored"
    assert bench.behind() == bench.scores


# --- lies --------------------------------------------------------------------------------------------------------

LIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "cut short: 0 bytes"),
    "noise": (lambda data: random.Random(1).randbytes(len(data)), "wrong magic"),
    "magic": (lambda data: patched(data, 0, b"GGSQ"), "wrong magic"),
    "version 0": (lambda data: sealed(patched(data, 8, struct.pack("<I", 0))), "format version 0"),
    "version 3": (lambda data: sealed(patched(data, 8, struct.pack("<I", 3))), "format version 3"),
    "version 1": (lambda data: sealed(patched(data, 8, struct.pack("<I", 1))), "the header cannot be understood"),
    "last version": (lambda data: sealed(patched(data, 8, b"\xff\xff\xff\xff")), "format version 4294967295"),
    "long header": (lambda data: patched(data, 12, struct.pack("<I", 1 << 20)), "lengths do not add up"),
    "huge header": (lambda data: patched(data, 12, b"\xff\xff\xff\xff"), "lengths do not add up"),
    "long payload": (lambda data: sealed(patched(data, 16, struct.pack("<Q", 1 << 20))), "lengths do not add up"),
    "10 GiB": (lambda data: sealed(patched(data, 16, struct.pack("<Q", 10 << 30))), "lengths do not add up"),
    "huge payload": (lambda data: sealed(patched(data, 16, b"\xff" * 8)), "lengths do not add up"),
    "appended": (lambda data: data + b"more", "lengths do not add up"),
    "no marker": (lambda data: data[:-8] + b"COMMITTE", "the commit marker is missing"),
    "other tokens": (lambda data: rewritten(data, tokens=(1, *_tokens(data)[1:])), "belongs to another prefix"),
    "other identity": (
        lambda data: rewritten(data, identity=Identity("x", "x", "x", ())),
        "belongs to another prefix or engine",
    ),
    "first position": (lambda data: rewritten(data, pos_min=-1), "positions"),
    "last position": (lambda data: rewritten(data, pos_max=7), "positions"),
}


def _tokens(data: bytes) -> list[int]:
    (length,) = struct.unpack_from("<I", data, 12)
    found: list[int] = json.loads(data[32 : 32 + length])["tokens"]
    return found


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("lie", LIES)
def test_lies(bench: Bench, lie: str, layer: int) -> None:
    change, told = LIES[lie]
    assert told in bench.after(lambda path: path.write_bytes(change(path.read_bytes())), layer)


def test_a_state_that_llama_cpp_refuses(bench: Bench) -> None:
    """Whole by every checksum, and not a state."""

    def damage(path: Path) -> None:
        data = path.read_bytes()
        start, end = parts(data)
        (length,) = struct.unpack_from("<I", data, 12)
        header = msgspec.json.decode(data[32 : 32 + length], type=Header)
        path.write_bytes(b"".join(bytes(part) for part in layout.chunks(header, bytes(end - start))))

    for layer in (0, 1):
        assert "was set aside" in bench.after(damage, layer)


def test_the_state_of_another_prefix_under_this_name(bench: Bench) -> None:
    base, digest, volatile = bench.names
    for layer, other in ((0, digest), (1, volatile), (2, base)):
        reason = bench.after(lambda path, other=other: path.write_bytes(bench.files[other]), layer)  # type: ignore[misc]
        assert "belongs to another prefix" in reason


# --- what is no file ---------------------------------------------------------------------------------------------


class Planted:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def test_a_planted_pickle_is_bytes(bench: Bench, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    planted = pickle.dumps(Planted(trace))
    pickle.loads(planted)  # noqa: S301 - that it would have worked
    trace.rmdir()
    assert "wrong magic" in bench.after(lambda path: path.write_bytes(planted.ljust(100)))

    def inside(path: Path) -> None:
        data = path.read_bytes()
        start, end = parts(data)
        path.write_bytes(data[:start] + planted.ljust(end - start) + data[end:])

    assert "wrong checksum" in bench.after(inside)
    assert not trace.exists()


def test_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    real = tmp_path / "real.kv"

    def to_a_good_one(path: Path) -> None:
        real.write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(real)

    def to_elsewhere(path: Path) -> None:
        path.unlink()
        path.symlink_to("/etc/passwd")

    before = Path("/etc/passwd").read_bytes()
    for layer in (0, 1):
        for damage in (to_a_good_one, to_elsewhere):
            assert "not a regular file" in bench.after(damage, layer)
    assert real.read_bytes() == bench.files[bench.names[1]]
    assert Path("/etc/passwd").read_bytes() == before


def test_a_fifo_is_not_waited_for(bench: Bench) -> None:
    def damage(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    for layer in (0, 1):
        assert "not a regular file" in bench.after(damage, layer)


def test_a_folder_is_no_snapshot(bench: Bench) -> None:
    def damage(path: Path) -> None:
        path.unlink()
        path.mkdir()

    assert "not a regular file" in bench.after(damage)


def test_a_sparse_file_of_10_gib_is_not_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    allocate = layout._buffer

    def watched(length: int) -> memoryview:
        asked.append(length)
        assert length < 1 << 30
        return allocate(length)

    def damage(path: Path) -> None:
        data = sealed(patched(path.read_bytes(), 16, struct.pack("<Q", 10 << 30)))
        (length,) = struct.unpack_from("<I", data, 12)
        path.write_bytes(data[: 32 + length])
        os.truncate(path, layout.file_length(length, 10 << 30))

    monkeypatch.setattr(layout, "_buffer", watched)
    for layer in (0, 1):
        assert "larger than the store may be" in bench.after(damage, layer, fits=False)
    monkeypatch.setattr(bench.store, "budget", 100 << 30)
    for layer in (0, 1):
        assert "commit marker is missing" in bench.after(damage, layer)
    assert asked


# --- the header parser -------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = tuple(Header.__struct_fields__)
SAMPLE: dict[str, Any] = json.loads(msgspec.json.encode(HEADER))


def file_with(body: bytes, version: int) -> bytes:
    """A file whose lengths and checksums are right, whatever the header says."""
    fixed = struct.pack("<8sIIQ", b"CARBONKV", version, len(body), len(PAYLOAD))
    start = fixed + struct.pack("<Q", xxhash.xxh3_64_intdigest(fixed + body)) + body
    return start + bytes(-len(start) % 64) + PAYLOAD + xxhash.xxh3_128_digest(PAYLOAD) + b"COMMITED"


def refused_or_sound(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for verify in (False, True):
        try:
            header, _ = layout.verify(path) if verify else layout.read(path, lambda _header, _length: None)
        except SnapshotRejected:
            continue
        ends = [layer.end for layer in header.layers]
        assert ends == sorted({*ends})
        assert 0 < ends[0] <= ends[-1] == len(header.tokens)
        assert 0 <= header.start < len(header.tokens)


@settings(max_examples=300, deadline=None)
@given(
    version=st.integers(1, 2),
    changes=st.dictionaries(st.sampled_from((*FIELDS, "more")), JSON, max_size=4),
    without=st.sets(st.sampled_from(FIELDS), max_size=2),
)
def test_a_header_of_any_shape(
    tmp_path_factory: pytest.TempPathFactory, version: int, changes: dict[str, Any], without: set[str]
) -> None:
    document = {name: value for name, value in (SAMPLE | changes).items() if name not in without}
    refused_or_sound(tmp_path_factory.mktemp("fuzz") / "s.kv", file_with(json.dumps(document).encode(), version))


@settings(max_examples=300, deadline=None)
@given(version=st.integers(1, 2), body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_a_header_of_any_bytes(tmp_path_factory: pytest.TempPathFactory, version: int, body: bytes) -> None:
    refused_or_sound(tmp_path_factory.mktemp("fuzz") / "s.kv", file_with(body, version))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"tokens":[' + b"9" * 100_000 + b"]}",
        b'{"tokens":[1e999]}',
        b"\xff\xfe",
        b'{"identity": "\\ud800"}',
        *(
            json.dumps(SAMPLE).encode().replace(place, place + b'"more": ' + b"[" * 200_000 + b"]" * 200_000 + b",", 1)
            for place in (b'"identity": {', b'"layers": [{', b'"spans": [{')
        ),
    ],
)
def test_headers_that_break_parsers(tmp_path: Path, body: bytes) -> None:
    for version in (1, 2):
        refused_or_sound(tmp_path / "s.kv", file_with(body, version))


@settings(max_examples=200, deadline=None)
@given(
    ends=st.lists(st.integers(-5, 9) | st.sampled_from([1 << 31, 1 << 63, -(1 << 63)]), max_size=4),
    tokens=st.lists(st.integers(-(1 << 70), 1 << 70), max_size=6),
    position=st.integers(-(1 << 70), 1 << 70),
)
def test_numbers_out_of_any_range(
    tmp_path_factory: pytest.TempPathFactory, ends: list[int], tokens: list[int], position: int
) -> None:
    document = SAMPLE | {
        "layers": [{"name": "x", "end": end} for end in ends],
        "tokens": tokens,
        "pos_min": position,
        "pos_max": -position,
    }
    folder = tmp_path_factory.mktemp("fuzz")
    data = file_with(json.dumps(document).encode(), 2)
    refused_or_sound(folder / "s.kv", data)
    store = Store(folder / "store", 1 << 20)
    name = "a" * 64 + ".kv"
    (store.folder / name).write_bytes(data)
    with pytest.raises(SnapshotRejected):
        store.verify(name)
    store.plan(HEADER.identity, Prefix((1, 2), HEADER.layers[:1]), rollback=True)
    store.collect()
    assert store.entries() == []


@pytest.mark.parametrize("token", [-1, 1 << 31, 1 << 63, (1 << 64) - 1, 1 << 64])
def test_a_token_that_no_engine_has(tmp_path: Path, token: int) -> None:
    """The rest of the header is right, so that the token is what is looked at."""
    store, name = Store(tmp_path / "store", 1 << 20), "a" * 64 + ".kv"
    path = store.folder / name
    path.write_bytes(file_with(json.dumps(SAMPLE | {"tokens": [1, 2, token]}).encode(), 2))
    for use in (lambda: store.verify(name), lambda: store.read(name, HEADER.identity, HEADER.tokens)):
        with pytest.raises(SnapshotRejected, match="cannot be understood"):
            use()
    path.write_bytes((store.folder / (name + REJECTED)).read_bytes())
    assert store.plan(HEADER.identity, Prefix(HEADER.tokens, HEADER.layers), rollback=True)[0].names == ()
    store.collect()
    assert store.entries() == []


def test_the_whole_file_is_what_the_fuzzer_starts_from(tmp_path: Path) -> None:
    """Else all of the above would be refused for another reason."""
    path = tmp_path / "s.kv"
    path.write_bytes(file_with(msgspec.json.encode(HEADER, order="deterministic"), 2))
    assert path.read_bytes() == whole()
    assert layout.verify(path)[0] == HEADER
