"""Look at a GGUF file before llama.cpp does, which aborts, or prints riddles, when the file is not whole.

Only the header is read: key-value pairs and the table of tensors. Every count and length in it is a claim, checked
against the bytes that are left and against what a header may take at most. From the table follows how long the file
must be, which finds every truncation. Whether the weights are right is the checksum's business.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian). Block sizes of the
tensor types: `ggml_type` and `type_traits` in ggml.h and ggml.c.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from carbon_mind.errors import ModelDamaged

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GgufInfo", "check_header"]

_CHUNK = 1 << 20
_MAX_TEXT = 1 << 22  # chat templates are some 10 KB; nobody means 4 MiB
_MAX_DEPTH = 4  # arrays of arrays
_MAX_DIMS = 8  # llama.cpp knows 4
_MAX_HEADER = 1 << 27  # the largest vocabularies take some 20 MB
_MAX_PAIRS, _MAX_TENSORS = 1 << 16, 1 << 20

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_SCALARS = {
    number: struct.Struct("<" + code)
    for number, code in {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "B",
        10: "Q",
        11: "q",
        12: "d",
    }.items()
}

# ggml type: (values per block, bytes per block). A type that is not here is newer than this table: not counted.
# fmt: off
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}
# fmt: on

# Architectures of llama.cpp that keep the keys and values of every position in every layer. One that is not here may be so, too;
# then a state is restored as a whole or not at all, which is slower and never wrong.
_DENSE = frozenset(
    (
        *(
            "llama",
            "qwen2",
            "qwen2moe",
            "qwen3",
            "qwen3moe",
            "starcoder2",
            "deepseek",
            "deepseek2",
            "granite",
            "granitemoe",
        ),
        *(
            "stablelm",
            "gemma",
            "internlm2",
            "olmo",
            "olmo2",
            "smollm3",
            "baichuan",
            "command-r",
            "glm4",
            "phi2",
            "mistral3",
        ),
    )
)
_NOT_DENSE = ("sliding_window", "ssm.", "shortconv", "wkv", "chunk")


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """What the header says. Text is the file's own: not trusted, not cleaned."""

    architecture: str  # "" in the second and later files of a split model
    name: str
    context_length: int  # tokens; 0 when not said
    file_type: int | None  # llama_ftype, e.g. 15 for Q4_K_M; None when not said
    n_tensors: int
    chat_template: str | None  # Jinja source
    rollback: (
        bool  # whether the state's tail may be dropped: known dense attention, without a window or a recurrent part
    )


class _Damaged(Exception):
    """Why the header cannot be right, as the end of a sentence."""


def check_header(path: Path) -> GgufInfo:
    """Read the header of one GGUF file and check that the file is as long as its tensors need.

    Raises ModelDamaged for what is missing, no regular file, empty, cut short, not GGUF, or contradicts itself.
    """
    if path.is_dir():
        raise ModelDamaged(f"{path} is a directory.", hint="Give the path of the .gguf file in it.")
    if path.exists() and not path.is_file():
        raise ModelDamaged(f"{path} is not a regular file.", hint="Give the path of a .gguf file.")
    try:
        with path.open("rb") as file:
            return _read(_Cursor(file))
    except FileNotFoundError as error:
        raise ModelDamaged(f"There is no file {path}.", hint="Check the path of the model.") from error
    except OSError as error:
        raise ModelDamaged(
            f"{path} cannot be read: {error.strerror}.", hint="Check its permissions and disk."
        ) from error
    except _Damaged as error:
        raise ModelDamaged(
            f"{path} is not a usable GGUF model: {error}.",
            hint="Download it again (carbon models pull does so for the models it knows), or give another file.",
        ) from error


class _Cursor:
    """Reads forward through the header, and refuses to go past the file's end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, 2)  # of the whole file
        self._limit = min(self.size, _MAX_HEADER)
        self._base = 0  # where the buffer stands in the file
        self._buffer = b""
        self._at = 0  # position in the buffer

    @property
    def position(self) -> int:
        return self._base + self._at

    @property
    def left(self) -> int:
        return self._limit - self.position

    def _ends(self) -> _Damaged:
        if self.size > self._limit:
            return _Damaged(f"its header does not end within {_MAX_HEADER >> 20} MiB")
        return _Damaged(f"it is cut short in its header, at {self.size:,} bytes")

    def goto_relative(self, count: int) -> None:
        if count > self.left:
            raise self._ends()
        self._at += count

    def _fill(self, count: int) -> None:
        """At least `count` bytes in the buffer, from the position on."""
        if len(self._buffer) - self._at >= count:
            return
        if count > self.left:
            raise self._ends()
        self._base, self._at = self.position, 0
        self._file.seek(self._base)
        self._buffer = self._file.read(max(count, _CHUNK))
        if len(self._buffer) < count:
            raise _Damaged("it became shorter while it was read")

    def take(self, count: int) -> bytes:
        self._fill(count)
        self._at += count
        return self._buffer[self._at - count : self._at]

    def number(self, kind: struct.Struct) -> int | float:
        self._fill(kind.size)
        self._at += kind.size
        value: int | float = kind.unpack_from(self._buffer, self._at - kind.size)[0]
        return value

    def u32(self) -> int:
        return int(self.number(_U32))

    def u64(self) -> int:
        return int(self.number(_U64))

    def text(self) -> str:
        length = self.u64()
        if length > min(_MAX_TEXT, self.left):
            raise _Damaged(f"a text in its header claims {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        """One loop without calls: a vocabulary has some 300,000 texts."""
        while count:
            self._fill(_U64.size)
            buffer, at = self._buffer, self._at
            last = len(buffer) - _U64.size
            while count and at <= last:
                at += _U64.size + _U64.unpack_from(buffer, at)[0]
                count -= 1
            self.goto_relative(at - self._at)


def _read(cursor: _Cursor) -> GgufInfo:
    _read_magic(cursor)
    n_tensors, n_pairs = cursor.u64(), cursor.u64()
    too_many = n_pairs > _MAX_PAIRS or n_tensors > _MAX_TENSORS
    if too_many or n_pairs * 13 + n_tensors * 24 > cursor.left:  # the shortest pair and tensor that can be written
        raise _Damaged(f"it claims {n_tensors:,} tensors and {n_pairs:,} settings, and cannot hold them")
    pairs = _read_pairs(cursor, n_pairs)
    end = _read_tensors(cursor, n_tensors)
    _check_length(cursor, pairs, end)
    architecture = _text(pairs, "general.architecture") or ""
    if not architecture and not pairs.get("split.no"):
        raise _Damaged("it does not say its architecture")
    context = pairs.get(f"{architecture}.context_length")
    file_type = pairs.get("general.file_type")
    return GgufInfo(
        architecture=architecture,
        name=_text(pairs, "general.name") or "",
        context_length=context if isinstance(context, int) else 0,
        file_type=file_type if isinstance(file_type, int) else None,
        n_tensors=n_tensors,
        chat_template=_text(pairs, "tokenizer.chat_template"),
        rollback=architecture in _DENSE and not any(part in key for part in _NOT_DENSE for key in pairs),
    )


def _text(pairs: dict[str, str | int | float], key: str) -> str | None:
    value = pairs.get(key)
    return value if isinstance(value, str) else None


def _read_magic(cursor: _Cursor) -> None:
    if not cursor.left:
        raise _Damaged("it is empty")
    magic = cursor.take(min(4, cursor.left))
    if magic == b"vers":
        raise _Damaged("it looks like a Git LFS pointer instead of the file itself (git lfs pull)")
    if magic != b"GGUF":
        raise _Damaged("it does not begin with GGUF")
    version = cursor.u32()
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise _Damaged("it is big-endian" if swapped in (2, 3) else f"GGUF version {version} is not known")


def _read_pairs(cursor: _Cursor, count: int) -> dict[str, str | int | float]:
    """The scalar settings and those texts that are wanted; everything else is passed over."""
    pairs: dict[str, str | int | float] = {}
    for _ in range(count):
        key = cursor.text()
        kind = cursor.u32()
        if kind == _STRING and key in ("general.architecture", "general.name", "tokenizer.chat_template"):
            pairs[key] = cursor.text()
        elif kind in _SCALARS:
            pairs[key] = cursor.number(_SCALARS[kind])
        else:
            _skip(cursor, kind, 1, _MAX_DEPTH)
    return pairs


def _skip(cursor: _Cursor, kind: int, count: int, depth: int) -> None:
    if kind in _SCALARS:
        cursor.goto_relative(_SCALARS[kind].size * count)
    elif kind == _STRING:
        cursor.skip_texts(count)
    elif kind == _ARRAY and depth:
        for _ in range(count):  # each one moves on by at least 12 bytes, so the file's end bounds this
            inner = cursor.u32()
            _skip(cursor, inner, cursor.u64(), depth - 1)
    else:
        raise _Damaged(f"a setting has the unknown type {kind}")


def _read_tensors(cursor: _Cursor, count: int) -> int:
    """Where the last tensor ends, counted from the start of the tensor data."""
    end = 0
    for _ in range(count):
        cursor.skip_texts(1)
        n_dims = cursor.u32()
        if n_dims > _MAX_DIMS:
            raise _Damaged(f"a tensor claims {n_dims:,} dimensions")
        dims = [cursor.u64() for _ in range(n_dims)]
        kind, offset = cursor.u32(), cursor.u64()
        per_block, size = _BLOCKS.get(kind, (1, 0))
        if dims and dims[0] % per_block:
            raise _Damaged(f"a row of {dims[0]:,} values does not divide into blocks of {per_block}")
        end = max(end, offset + math.prod(dims) // per_block * size)
    return end


def _check_length(cursor: _Cursor, pairs: dict[str, str | int | float], end: int) -> None:
    alignment = pairs.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise _Damaged(f"its alignment is {alignment}")
    if not end:
        return  # a split model's first file may hold no tensors, and then no padding either
    start = -(-cursor.position // alignment) * alignment
    if cursor.size < start + end:
        raise _Damaged(f"it is cut short: its tensors need {start + end:,} bytes, there are {cursor.size:,}")
