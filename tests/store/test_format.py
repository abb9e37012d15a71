"""The snapshot file: what is written is read, and whatever else is there is refused by name and never crashes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbon_mind.errors import SnapshotRejected
from carbon_mind.store import format as layout
from carbon_mind.store.format import Header
from carbon_mind.values import Identity

IDENTITY = Identity("fake 1", "0" * 64, "1" * 64, (("n_ctx", "8192"),), (("GGML_X", "1"),))
HEADER = Header(IDENTITY, (1, 2, 300), 0, 2)
PAYLOAD = bytes(range(256)) * 20


def whole(header: Header = HEADER, payload: bytes = PAYLOAD) -> bytes:
    return b"".join(bytes(part) for part in layout.chunks(header, payload))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    header, payload = layout.read(write(tmp_path / "s.kv", whole()))
    assert header == HEADER
    assert payload == PAYLOAD


def test_the_bytes_are_those_of_the_docstring() -> None:
    data = whole()
    magic, version, header_length, payload_length = struct.unpack_from("<8sIIQ", data)
    assert (magic, version, payload_length) == (b"CARBONKV", 1, len(PAYLOAD))
    start = 32 + header_length + (-(32 + header_length) % 64)
    assert start % 64 == 0
    assert data[start : start + len(PAYLOAD)] == PAYLOAD
    assert data.endswith(b"COMMITED")
    assert len(data) == start + len(PAYLOAD) + 24 == layout.file_length(header_length, payload_length)


def test_a_snapshot_of_version_1_stays_readable() -> None:
    """A file that the first release wrote; it is never made anew."""
    header, payload = layout.read(Path(__file__).parent / "version1.kv")
    assert header == HEADER
    assert payload == PAYLOAD[:100]


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = whole()
    for length in range(0, len(data), 37):
        with pytest.raises(SnapshotRejected, match=r"cut short|do not add up"):
            layout.read(write(tmp_path / "s.kv", data[:length]))
    with pytest.raises(SnapshotRejected, match="do not add up"):
        layout.read(write(tmp_path / "s.kv", data + b"x"))


@given(position=st.integers(0, len(whole()) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, position: int, bit: int
) -> None:
    data = bytearray(whole())
    data[position] ^= 1 << bit
    path = write(tmp_path_factory.mktemp("flip") / "s.kv", bytes(data))
    try:
        header, payload = layout.read(path)
    except SnapshotRejected:
        return
    # Only the padding is not covered: what is used must be what was written.
    assert header == HEADER
    assert payload == PAYLOAD


def test_lying_lengths_and_versions_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    data = bytearray(whole())
    for offset, value, what in (
        (8, struct.pack("<I", 2), "version 2"),
        (12, struct.pack("<I", 1 << 30), "do not add up"),
        (16, struct.pack("<Q", 10 << 30), "do not add up"),
        (0, b"GGSQ", "magic"),
    ):
        bad = bytearray(data)
        bad[offset : offset + len(value)] = value
        with pytest.raises(SnapshotRejected, match=what):
            layout.read(write(tmp_path / "s.kv", bytes(bad)))


def test_links_fifos_and_folders_are_refused_without_waiting(tmp_path: Path) -> None:
    write(tmp_path / "real.kv", whole())
    (tmp_path / "link.kv").symlink_to(tmp_path / "real.kv")
    os.mkfifo(tmp_path / "fifo.kv")
    (tmp_path / "folder.kv").mkdir()
    for name in ("link.kv", "fifo.kv", "folder.kv"):
        with pytest.raises(SnapshotRejected):
            layout.read(tmp_path / name)


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_by_name(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    with pytest.raises(SnapshotRejected):
        layout.read(write(tmp_path_factory.mktemp("noise") / "s.kv", data))
