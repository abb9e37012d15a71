"""SHA-256 of a model, without reading gigabytes at every start.

A stored state belongs to a model's bytes, so the bytes must be known each time; hashing them takes seconds. So the
result is remembered for a file as the system describes it (path, size, inode, times of change), and together with a
hash over 16 blocks of 4 KiB that are spread evenly over the file, first and last byte included. Every use reads those
64 KiB again.

What that finds: on POSIX systems every write, because the change time cannot be set back by ordinary means; and
without that clue (Windows, some network mounts, a clock set back) every other model, quantisation or fine-tune under
the same name, size and time, because those differ almost everywhere. What it cannot find: without the change time, an
edit that keeps size, inode and modification time and touches none of the 16 blocks. A flipped bit on the disk changes
no time, and is found only in a sampled block: that is what `carbon models pull --verify` is for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from carbon_mind.errors import ModelDamaged, StorageProblem
from carbon_mind.models.find import parts
from carbon_mind.safety.files import atomic_write

__all__ = ["file_sha256", "model_sha256"]

_BLOCK = 4096
_SAMPLES = 16
_MAX_CACHE = 1 << 20


class _Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as it was when `sha256` was computed."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sample: str
    sha256: str

    def describes(self, status: os.stat_result) -> bool:
        return (self.size, self.mtime_ns, self.ctime_ns, self.inode) == _described(status)


class _Cache(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    files: dict[str, _Known]


_VERSION = 1


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of the file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_sha256(path: Path, cache_file: Path) -> str:
    """Hex SHA-256 of the model at `path`: of its bytes; for a split model, of the lines `<hex of part>\\n` in order.

    `cache_file` is a JSON file whose folder exists; a damaged one is ignored and replaced, and when it cannot be
    written the result is right all the same. Raises ModelDamaged when a file of the model is missing or cannot be read.
    """
    files = parts(path)
    known = _load(cache_file)
    try:
        current = {os.fspath(file.resolve()): _current(file, known) for file in files}
    except OSError as error:
        raise ModelDamaged(f"{path} cannot be read: {error.strerror}.", hint="Check the path of the model.") from error
    if any(known.get(name) != entry for name, entry in current.items()):
        with contextlib.suppress(StorageProblem):  # a read-only cache costs time, not correctness
            _save(cache_file, known | current)
    digests = [entry.sha256 for entry in current.values()]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()


def _current(file: Path, known: dict[str, _Known]) -> _Known:
    status = file.stat()
    sample = _sample(file, status.st_size)
    entry = known.get(os.fspath(file.resolve()))
    if entry is not None and entry.describes(status) and entry.sample == sample:
        return entry
    sha256 = file_sha256(file)
    if _described(file.stat()) != _described(status):
        raise ModelDamaged(f"{file} changed while it was read.", hint="Wait until it is written, then try again.")
    return _Known(*_described(status), sample, sha256)


def _described(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _sample(file: Path, size: int) -> str:
    """Hash over the sampled blocks; of the whole content where they would cover it."""
    digest = hashlib.sha256()
    last = max(size - _BLOCK, 0)
    with file.open("rb", buffering=0) as reader:
        for number in range(_SAMPLES):
            reader.seek(last * number // (_SAMPLES - 1))
            digest.update(reader.read(_BLOCK))
    return digest.hexdigest()


def _load(cache_file: Path) -> dict[str, _Known]:
    try:
        with cache_file.open("rb") as file:
            cache = msgspec.json.decode(file.read(_MAX_CACHE), type=_Cache)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return cache.files if cache.version == _VERSION else {}


def _save(cache_file: Path, known: dict[str, _Known]) -> None:
    """Two processes may overwrite each other's entries: the loser's model is hashed once more."""
    present = {name: known[name] for name in sorted(known) if Path(name).exists()}
    atomic_write(cache_file, msgspec.json.encode(_Cache(_VERSION, present)), mode=0o600)
