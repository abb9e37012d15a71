"""One snapshot, one file. Byte by byte, integers little-endian:

    offset  size  what
    0       8     magic "CARBONKV"
    8       4     format version, now 1
    12      4     H: length of the header, at most 64 MiB
    16      8     P: length of the payload
    24      8     XXH3-64 of bytes 0..23 followed by the header
    32      H     header: UTF-8 JSON, keys sorted: identity, tokens, pos_min, pos_max
    32+H    0-63  zero bytes up to the next multiple of 64, so that the payload is aligned in a mapped file
    ...     P     payload: what the engine gave, opaque
    +0      16    XXH3-128 of the payload
    +16     8     commit marker "COMMITED"

The marker comes last, and the file is renamed into place only after an fsync, so a file with a right length, marker and checksums
is whole. The checksums find damage (XXH3 runs at memory speed, SHA-256 at about 2 GB/s); they are no defence against somebody who
can write to the user's own cache folder. llama.cpp accepts damaged states and aborts on truncated ones, so nothing reaches it
before `read` has verified every byte.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import xxhash

from carbon_mind.errors import SnapshotRejected
from carbon_mind.values import Identity

MAGIC = b"CARBONKV"
VERSION = 1
COMMIT = b"COMMITED"
ALIGN = 64
MAX_HEADER = 64 << 20
_FIXED = struct.Struct("<8sIIQ")  # magic, version, H, P
_SUM = struct.Struct("<Q")
_START = _FIXED.size + _SUM.size
_TAIL = 16 + len(COMMIT)


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a snapshot says about itself; compared in full before the payload is used."""

    identity: Identity
    tokens: tuple[int, ...]
    pos_min: int
    pos_max: int


_decoder = msgspec.json.Decoder(Header)


def _padding(header_length: int) -> int:
    return -(_START + header_length) % ALIGN


def file_length(header_length: int, payload_length: int) -> int:
    """Bytes of a whole snapshot file."""
    return _START + header_length + _padding(header_length) + payload_length + _TAIL


def chunks(header: Header, payload: bytes | bytearray | memoryview) -> Iterator[bytes | memoryview]:
    """The file's bytes in order, the payload uncopied."""
    body = msgspec.json.encode(header, order="deterministic")
    if len(body) > MAX_HEADER:
        raise SnapshotRejected(f"a header of {len(body)} bytes is longer than the format allows")
    fixed = _FIXED.pack(MAGIC, VERSION, len(body), len(payload))
    yield fixed + _SUM.pack(xxhash.xxh3_64_intdigest(fixed + body)) + body + bytes(_padding(len(body)))
    yield memoryview(payload)
    yield xxhash.xxh3_128_digest(payload) + COMMIT


def read_header(file: BinaryIO) -> tuple[Header, int]:
    """The verified header and the payload's length; `file` then stands at the payload. Raises SnapshotRejected."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(_START)
    if len(start) < _START:
        raise SnapshotRejected(f"cut short: {size} bytes")
    magic, version, header_length, payload_length = _FIXED.unpack_from(start)
    if magic != MAGIC:
        raise SnapshotRejected("not a snapshot: wrong magic")
    if version != VERSION:
        raise SnapshotRejected(f"format version {version}, this program reads {VERSION}")
    if header_length > MAX_HEADER or file_length(header_length, payload_length) != size:
        raise SnapshotRejected(f"lengths do not add up: {size} bytes on disk")
    body = file.read(header_length)
    (expected,) = _SUM.unpack_from(start, _FIXED.size)
    if len(body) < header_length or xxhash.xxh3_64_intdigest(start[: _FIXED.size] + body) != expected:
        raise SnapshotRejected("the header is damaged: wrong checksum")
    try:
        header = _decoder.decode(body)
    except msgspec.MsgspecError as broken:
        raise SnapshotRejected(f"the header cannot be understood: {broken}") from broken
    file.seek(_padding(header_length), os.SEEK_CUR)
    return header, payload_length


def read(path: Path) -> tuple[Header, bytearray]:
    """Header and payload, every byte verified. Raises SnapshotRejected, or OSError when the file cannot be read."""
    with open_regular(path) as file:
        header, length = read_header(file)
        payload = bytearray(length)
        view = memoryview(payload)
        while view and (count := file.readinto(view)):  # type: ignore[attr-defined]
            view = view[count:]
        tail = file.read(_TAIL)
    if view or len(tail) != _TAIL or tail[16:] != COMMIT:
        raise SnapshotRejected("cut short: the commit marker is missing")
    if xxhash.xxh3_128_digest(payload) != tail[:16]:
        raise SnapshotRejected("the payload is damaged: wrong checksum")
    return header, payload


def open_regular(path: Path) -> BinaryIO:
    """Open without following a link and without waiting on a FIFO. Raises SnapshotRejected for anything but a regular file."""
    import stat

    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as refused:
        raise SnapshotRejected(f"cannot be opened: {refused.strerror}") from refused
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SnapshotRejected("not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)
