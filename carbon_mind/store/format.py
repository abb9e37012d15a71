"""One snapshot, one file. Byte by byte, integers little-endian:

    offset  size  what
    0       8     magic "CARBONKV"
    8       4     format version, now 2
    12      4     H: length of the header, at most 64 MiB
    16      8     P: length of the payload
    24      8     XXH3-64 of bytes 0..23 followed by the header
    32      H     header: UTF-8 JSON, keys sorted; see below
    32+H    0-63  zero bytes up to the next multiple of 64, so that the payload is aligned in the file
    ...     P     payload: what the engine gave, opaque
    +0      16    XXH3-128 of the payload
    +16     8     commit marker "COMMITED"

The header holds the identity (engine, build, model, context, environment, prompt), the exact tokens from the first one on, the
positions (`pos_min`, `pos_max`) that the engine must report once they are restored, the end of every layer up to this one, what
stands where in the tokens, and labels for people. The payload has the positions of the last layer alone; those before it are in the
files of the layers before, whose names follow from identity, tokens and ends. Version 1 knew neither layers nor labels: one file
holds all positions. Its files are still read (so that they can be explained, verified and removed), and never used again: their
identity lacks the prompt.

The marker comes last, and the file is renamed into place only after an fsync, so a file with a right length, marker and checksums
is whole. The checksums find damage (XXH3 runs at memory speed, SHA-256 at about 2 GB/s); they are no defence against somebody who
can write to the user's own cache folder. llama.cpp accepts damaged states and aborts on truncated ones, so nothing reaches it
before `read` has verified every byte.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
import xxhash

from carbon_mind.errors import SnapshotRejected
from carbon_mind.safety.files import NOT_A_FILE
from carbon_mind.values import Identity, Span

MAGIC = b"CARBONKV"
VERSION = 2
COMMIT = b"COMMITED"
ALIGN = 64
MAX_HEADER = 64 << 20
_FIXED = struct.Struct("<8sIIQ")  # magic, version, H, P
_SUM = struct.Struct("<Q")
_START = _FIXED.size + _SUM.size
_TAIL = 16 + len(COMMIT)
_BLOCK = 4 << 20
_OWN = 32 << 20
_Token = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a snapshot says about itself; identity and tokens are compared in full before the payload is used."""

    identity: Identity
    tokens: tuple[_Token, ...]
    pos_min: int
    pos_max: int
    layers: tuple[Span, ...]
    spans: tuple[Span, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def start(self) -> int:
        """The first position that the payload has."""
        return self.layers[-2].end if len(self.layers) > 1 else 0


class _Header1(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    identity: Identity
    tokens: tuple[_Token, ...]
    pos_min: int
    pos_max: int


_decode = msgspec.json.Decoder(Header).decode
_decode_1 = msgspec.json.Decoder(_Header1).decode


def _header(version: int, body: bytes) -> Header:
    try:
        if version == 1:
            old = _decode_1(body)
            layers = (Span("prefix", len(old.tokens)),)
            header = Header(
                identity=old.identity, tokens=old.tokens, pos_min=old.pos_min, pos_max=old.pos_max, layers=layers
            )
        else:
            header = _decode(body)
    except (msgspec.MsgspecError, RecursionError) as broken:  # nested without end, in a field that is passed over
        raise SnapshotRejected(f"the header cannot be understood: {broken}") from broken
    ends = [layer.end for layer in header.layers]
    if not ends or ends != sorted({*ends}) or ends[0] < 1 or ends[-1] != len(header.tokens):
        raise SnapshotRejected(f"the header contradicts itself: layers end at {ends}, tokens at {len(header.tokens)}")
    return header


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
    if not 1 <= version <= VERSION:
        raise SnapshotRejected(f"format version {version}, this program reads 1 to {VERSION}")
    if header_length > MAX_HEADER or file_length(header_length, payload_length) != size:
        raise SnapshotRejected(f"lengths do not add up: {size} bytes on disk")
    body = file.read(header_length)
    (expected,) = _SUM.unpack_from(start, _FIXED.size)
    if len(body) < header_length or xxhash.xxh3_64_intdigest(start[: _FIXED.size] + body) != expected:
        raise SnapshotRejected("the header is damaged: wrong checksum")
    header = _header(version, body)
    file.seek(_padding(header_length), os.SEEK_CUR)
    return header, payload_length


def read(path: Path, accept: Callable[[Header, int], None]) -> tuple[Header, memoryview]:
    """Header and payload, every byte verified; `accept` sees header and payload length before anything is allocated.

    Raises SnapshotRejected (so may `accept`), or OSError when the file cannot be read or memory is short.
    """
    with open_regular(path) as file:
        header, length = read_header(file)
        accept(header, length)
        checksum = _checksum(file)
        payload = _buffer(length)
        _fill(file, payload)
        _compare(xxhash.xxh3_128_digest(payload), checksum)
    return header, payload


def pour(path: Path, accept: Callable[[Header, int], None], take: Callable[[memoryview], object]) -> tuple[Header, int]:
    """As `read`, but `take` gets the payload block by block (a block lasts for the call): the header and the payload's length.

    What was taken is verified only when this returns; where it raises, it must be thrown away.
    """
    with open_regular(path) as file:
        header, length = read_header(file)
        accept(header, length)
        checksum = _checksum(file)
        digest = xxhash.xxh3_128()
        block = _buffer(min(length, _BLOCK))
        left = length
        while left:
            part = block[: min(left, _BLOCK)]
            _fill(file, part)
            digest.update(part)
            take(part)
            left -= len(part)
        _compare(digest.digest(), checksum)
    return header, length


def verify(path: Path) -> tuple[Header, int]:
    """As `read`, but the payload is only looked at: the header and the payload's length."""
    return pour(path, lambda _header, _length: None, lambda _part: None)


def _buffer(length: int) -> memoryview:
    """Writable memory: of the process's own while that is used again and again, else not cleared first, on huge pages where there are any.

    A file that is mapped would be faster still, and would kill this process when another one shortens it meanwhile. Below 32 MiB
    the C library gives the same memory out again (28 MB are read in 3 ms instead of 17); above, reading 200 MB into a buffer of its
    own takes a third of the time of `bytearray`, whose pages are touched twice and four KiB at a time.
    """
    if length < _OWN:
        return memoryview(bytearray(length))
    memory = mmap.mmap(-1, length)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def _fill(file: BinaryIO, view: memoryview) -> None:
    while view:
        count = file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise SnapshotRejected("cut short while it was read")
        view = view[count:]


def _checksum(file: BinaryIO) -> bytes:
    """The payload's checksum, if the file was finished: looked at before memory is asked for. `file` stays where it is."""
    here = file.tell()
    file.seek(-_TAIL, os.SEEK_END)
    tail = file.read(_TAIL)
    file.seek(here)
    if len(tail) != _TAIL or tail[16:] != COMMIT:
        raise SnapshotRejected("cut short: the commit marker is missing")
    return tail[:16]


def _compare(found: bytes, expected: bytes) -> None:
    if found != expected:
        raise SnapshotRejected("the payload is damaged: wrong checksum")


def open_regular(path: Path) -> BinaryIO:
    """Open without following a link and without waiting on a FIFO.

    Raises SnapshotRejected for anything but a regular file, and OSError for one that cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as refused:
        if refused.errno in NOT_A_FILE:
            raise SnapshotRejected(f"not a regular file: {refused.strerror}") from refused
        raise  # missing, no permission, too many open files: that says nothing about the file's content
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SnapshotRejected("not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)
