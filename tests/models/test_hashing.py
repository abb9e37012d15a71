from __future__ import annotations

import hashlib
import json
import os
import random
from typing import TYPE_CHECKING

import pytest

from carbon_mind.errors import ModelDamaged
from carbon_mind.models import model_sha256

if TYPE_CHECKING:
    from pathlib import Path

DATA = random.Random(3).randbytes(1 << 20)


def sha(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache.json"


def poison(cache: Path, model: Path, *, ctime: bool = False) -> None:
    """Write a wrong hash into the cache, so that a result shows whether the cache was believed."""
    content = json.loads(cache.read_bytes())
    entry = content["files"][str(model.resolve())]
    entry["sha256"] = "f" * 64
    if ctime:  # a system without change times
        status = model.stat()
        entry["ctime_ns"], entry["inode"] = status.st_ctime_ns, status.st_ino
    cache.write_text(json.dumps(content))


def test_second_use_comes_from_the_cache(model: Path, cache: Path) -> None:
    assert model_sha256(model, cache) == sha(DATA)
    written = cache.stat().st_mtime_ns
    assert model_sha256(model, cache) == sha(DATA)
    assert cache.stat().st_mtime_ns == written
    poison(cache, model)
    assert model_sha256(model, cache) == "f" * 64
    if os.name == "posix":
        assert cache.stat().st_mode & 0o777 == 0o600


def rewrite(model: Path, data: bytes) -> None:
    """New content in the same file, modification time set back."""
    status = model.stat()
    with model.open("r+b") as file:
        file.write(data)
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert model.stat().st_size == status.st_size
    assert model.stat().st_mtime_ns == status.st_mtime_ns


@pytest.mark.skipif(os.name != "posix", reason="there is no change time")
def test_one_flipped_bit_with_the_time_set_back(model: Path, cache: Path) -> None:
    model_sha256(model, cache)
    changed = bytearray(DATA)
    changed[6000] ^= 1  # between two sampled blocks
    rewrite(model, bytes(changed))
    assert model_sha256(model, cache) == sha(changed)


@pytest.mark.parametrize("position", [0, 4095, (1 << 20) - 4096, (1 << 20) - 1])
def test_samples_find_changes_in_the_first_and_last_block(model: Path, cache: Path, position: int) -> None:
    model_sha256(model, cache)
    changed = bytearray(DATA)
    changed[position] ^= 1
    rewrite(model, bytes(changed))
    poison(cache, model, ctime=True)
    assert model_sha256(model, cache) == sha(changed)


def test_samples_find_another_model(model: Path, cache: Path) -> None:
    model_sha256(model, cache)
    other = DATA[:4096] + random.Random(4).randbytes(len(DATA) - 8192) + DATA[-4096:]
    rewrite(model, other)
    poison(cache, model, ctime=True)
    assert model_sha256(model, cache) == sha(other)


def test_samples_are_what_they_are(model: Path, cache: Path) -> None:
    """The limit that the docstring states: without change times, an edit between the blocks is not seen."""
    model_sha256(model, cache)
    changed = bytearray(DATA)
    changed[6000] ^= 1
    rewrite(model, bytes(changed))
    poison(cache, model, ctime=True)
    assert model_sha256(model, cache) == "f" * 64


def test_replaced_file(model: Path, cache: Path) -> None:
    model_sha256(model, cache)
    status = model.stat()
    new = model.with_name("new")
    new.write_bytes(DATA[::-1])
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(model)
    assert model_sha256(model, cache) == sha(DATA[::-1])


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 16 * 4096, 16 * 4096 + 1])
def test_small_files(tmp_path: Path, cache: Path, size: int) -> None:
    path = tmp_path / "s.gguf"
    path.write_bytes(DATA[:size])
    assert [model_sha256(path, cache) for _ in range(2)] == [sha(DATA[:size])] * 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"version": 1}',
        b'{"version": 2, "files": {}}',
        b'{"version": 1, "files": {"a": {"size": "1"}}}',
        b'{"version": 1, "files": {}}' + b" " * (1 << 20),
    ],
)
def test_damaged_cache_is_replaced(model: Path, cache: Path, content: bytes) -> None:
    cache.write_bytes(content)
    assert model_sha256(model, cache) == sha(DATA)
    assert list(json.loads(cache.read_bytes())["files"]) == [str(model.resolve())]


def test_cache_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    assert model_sha256(model, tmp_path / "missing" / "cache.json") == sha(DATA)
    (tmp_path / "folder").mkdir()
    assert model_sha256(model, tmp_path / "folder") == sha(DATA)


def test_several_models_share_a_cache_and_removed_ones_leave_it(tmp_path: Path, model: Path, cache: Path) -> None:
    other = tmp_path / "o.gguf"
    other.write_bytes(b"other")
    model_sha256(model, cache)
    model_sha256(other, cache)
    assert set(json.loads(cache.read_bytes())["files"]) == {str(model.resolve()), str(other.resolve())}
    other.unlink()
    model.write_bytes(b"new")
    assert model_sha256(model, cache) == sha(b"new")
    assert set(json.loads(cache.read_bytes())["files"]) == {str(model.resolve())}


def test_split_model(tmp_path: Path, cache: Path) -> None:
    files = [tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    files[0].write_bytes(b"one")
    with pytest.raises(ModelDamaged, match="missing"):
        model_sha256(files[0], cache)
    files[1].write_bytes(b"two")
    expected = sha(f"{sha(b'one')}\n{sha(b'two')}\n".encode())
    assert model_sha256(files[0], cache) == model_sha256(files[1], cache) == expected
    files[1].write_bytes(b"2")
    assert model_sha256(files[0], cache) != expected


def test_missing_file(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ModelDamaged):
        model_sha256(tmp_path / "none.gguf", cache)
    with pytest.raises(ModelDamaged, match="directory"):
        model_sha256(tmp_path, cache)
