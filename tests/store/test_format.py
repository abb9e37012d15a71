"""The snapshot file: what is written is read, and whatever else is there is refused by name and never crashes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from carbon_mind.errors import SnapshotRejected
from carbon_mind.store import format as layout
from carbon_mind.store.format import Header
from carbon_mind.values import Identity, Span

IDENTITY = Identity("fake 1", "0" * 64, "1" * 64, (("n_ctx", "8192"),), (("GGML_X", "1"),))
LAYERS = (Span("base", 2), Span("digest", 3))
HEADER = Header(
    identity=IDENTITY,
    tokens=(1, 2, 300),
    pos_min=0,
    pos_max=2,
    layers=LAYERS,
    spans=(Span("rules", 1), Span("digest: Commands", 3)),
    labels=(("model", "x.gguf"), ("layer", "digest")),
)
PAYLOAD = bytes(range(256)) * 20


def whole(header: Header = HEADER, payload: bytes = PAYLOAD) -> bytes:
    return b"".join(bytes(part) for part in layout.chunks(header, payload))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def read(path: Path) -> tuple[Header, memoryview]:
    return layout.read(path, lambda _header, _length: None)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    header, payload = read(write(tmp_path / "s.kv", whole()))
    assert header == HEADER
    assert payload == PAYLOAD


def test_the_bytes_are_those_of_the_docstring() -> None:
    data = whole()
    magic, version, header_length, payload_length = struct.unpack_from("<8sIIQ", data)
    assert (magic, version, payload_length) == (b"CARBONKV", 2, len(PAYLOAD))
    start = 32 + header_length + (-(32 + header_length) % 64)
    assert start % 64 == 0
    assert data[start : start + len(PAYLOAD)] == PAYLOAD
    assert data.endswith(b"COMMITED")
    assert len(data) == start + len(PAYLOAD) + 24 == layout.file_length(header_length, payload_length)


@pytest.mark.parametrize("version", [1, 2])
def test_a_snapshot_of_every_version_stays_readable(version: int) -> None:
    """Files that a release of that format wrote; they are never made anew."""
    header, payload = read(Path(__file__).parent / f"version{version}.kv")
    assert payload == PAYLOAD[:100]
    if version == 1:
        old = Header(identity=IDENTITY, tokens=(1, 2, 300), pos_min=0, pos_max=2, layers=(Span("prefix", 3),))
        assert header == old
        assert header.start == 0
    else:
        assert header == HEADER
        assert header.start == 2


@pytest.mark.parametrize("ends", [(), (0, 3), (2, 2, 3), (3, 2), (2,), (2, 4), (-1, 3)])
def test_a_header_that_contradicts_itself_is_refused(ends: tuple[int, ...], tmp_path: Path) -> None:
    header = msgspec.structs.replace(HEADER, layers=tuple(Span("x", end) for end in ends))
    with pytest.raises(SnapshotRejected, match="contradicts itself"):
        read(write(tmp_path / "s.kv", whole(header)))


def test_verify_reads_every_byte_and_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_BLOCK", 1000)  # several blocks, the last one not full
    path = write(tmp_path / "s.kv", whole())
    assert layout.verify(path) == (HEADER, len(PAYLOAD))
    data = bytearray(whole())
    data[-30] ^= 1
    with pytest.raises(SnapshotRejected, match="payload is damaged"):
        layout.verify(write(path, bytes(data)))


def test_what_a_caller_refuses_is_not_even_allocated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(header: Header, length: int) -> None:
        assert (header, length) == (HEADER, len(PAYLOAD))
        raise SnapshotRejected("not wanted")

    monkeypatch.setattr(layout, "_buffer", lambda length: pytest.fail(f"{length} bytes allocated"))
    with pytest.raises(SnapshotRejected, match="not wanted"):
        layout.read(write(tmp_path / "s.kv", whole()), refuse)


def test_a_sparse_file_that_claims_gigabytes_is_refused_before_they_are_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(layout.chunks(HEADER, b""))
    fixed = bytearray(first[:24])
    struct.pack_into("<Q", fixed, 16, 10 << 30)
    (header_length,) = struct.unpack_from("<I", fixed, 12)
    checksum = xxhash.xxh3_64_intdigest(bytes(fixed) + first[32 : 32 + header_length])
    path = write(tmp_path / "s.kv", bytes(fixed) + struct.pack("<Q", checksum) + first[32:])
    os.truncate(path, layout.file_length(header_length, 10 << 30))
    monkeypatch.setattr(layout, "_buffer", lambda length: pytest.fail(f"{length} bytes allocated"))
    for use in (read, layout.verify):
        with pytest.raises(SnapshotRejected, match="commit marker is missing"):
            use(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = whole()
    for length in range(0, len(data), 37):
        with pytest.raises(SnapshotRejected, match=r"cut short|do not add up"):
            read(write(tmp_path / "s.kv", data[:length]))
    with pytest.raises(SnapshotRejected, match="do not add up"):
        read(write(tmp_path / "s.kv", data + b"x"))


@given(position=st.integers(0, len(whole()) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, position: int, bit: int
) -> None:
    data = bytearray(whole())
    data[position] ^= 1 << bit
    path = write(tmp_path_factory.mktemp("flip") / "s.kv", bytes(data))
    try:
        header, payload = read(path)
    except SnapshotRejected:
        return
    # Only the padding is not covered: what is used must be what was written.
    assert header == HEADER
    assert payload == PAYLOAD


def test_lying_lengths_and_versions_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    data = bytearray(whole())
    for offset, value, what in (
        (8, struct.pack("<I", 3), "version 3"),
        (8, struct.pack("<I", 0), "version 0"),
        (12, struct.pack("<I", 1 << 30), "do not add up"),
        (16, struct.pack("<Q", 10 << 30), "do not add up"),
        (0, b"GGSQ", "magic"),
    ):
        bad = bytearray(data)
        bad[offset : offset + len(value)] = value
        with pytest.raises(SnapshotRejected, match=what):
            read(write(tmp_path / "s.kv", bytes(bad)))


def test_links_fifos_and_folders_are_refused_without_waiting(tmp_path: Path) -> None:
    write(tmp_path / "real.kv", whole())
    (tmp_path / "link.kv").symlink_to(tmp_path / "real.kv")
    os.mkfifo(tmp_path / "fifo.kv")
    (tmp_path / "folder.kv").mkdir()
    for name in ("link.kv", "fifo.kv", "folder.kv"):
        with pytest.raises(SnapshotRejected):
            read(tmp_path / name)


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_by_name(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    with pytest.raises(SnapshotRejected):
        read(write(tmp_path_factory.mktemp("noise") / "s.kv", data))
