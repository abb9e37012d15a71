from __future__ import annotations

import contextlib
import os
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.errors import ModelDamaged
from carbon_mind.models import GgufInfo, check_header
from carbon_mind.models.gguf_header import _BLOCKS
from tests import tiny_models

if TYPE_CHECKING:
    from pathlib import Path

gguf = pytest.importorskip("gguf")
np = pytest.importorskip("numpy")


def write(path: Path, *, alignment: int | None = None, tensors: bool = True, texts: int = 50) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(512)
    writer.add_file_type(2)
    writer.add_chat_template("{{ messages }}")
    writer.add_token_list([f"token {number}" for number in range(texts)])
    writer.add_token_scores([float(number) for number in range(texts)])
    writer.add_array("an.array", [[1, 2], [3, 4]])
    writer.add_bool("a.bool", True)
    writer.add_float64("a.double", 1.5)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    if tensors:
        writer.add_tensor("a", np.arange(7, dtype=np.float32))
        writer.add_tensor("b", np.zeros((3, 18), dtype=np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
        writer.add_tensor("c", np.ones((5, 3), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelDamaged) as caught:
        check_header(path)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
def test_what_is_read(tmp_path: Path, alignment: int | None) -> None:
    assert check_header(write(tmp_path / "m.gguf", alignment=alignment)) == GgufInfo(
        architecture="llama",
        name="Tiny",
        context_length=512,
        file_type=2,
        n_tensors=3,
        chat_template="{{ messages }}",
        rollback=True,
    )


def test_what_can_go_back_is_dense_and_nothing_else(tmp_path: Path) -> None:
    found = {kind: check_header(make(tmp_path / f"{kind}.gguf")).rollback for kind, make in tiny_models.KINDS.items()}
    assert {kind for kind, rollback in found.items() if rollback} == {"dense", "agent"}


@pytest.mark.parametrize("alignment", [None, 8, 4096])
def test_every_truncation_is_found(tmp_path: Path, alignment: int | None) -> None:
    """Down to the last byte of the last tensor; what follows it is padding, which llama.cpp does not need either."""
    whole = write(tmp_path / "whole.gguf", alignment=alignment)
    data = whole.read_bytes()
    end = max(int(tensor.data_offset + tensor.n_bytes) for tensor in gguf.GGUFReader(whole).tensors)
    path = tmp_path / "m.gguf"
    for length in {*range(300), *range(300, end, 37), *range(end - 40, end)}:
        assert refused(path, data[:length])
    path.write_bytes(data[:end])
    assert check_header(path).n_tensors == 3


def test_buffer_borders(tmp_path: Path) -> None:
    """A header of several buffers, so that texts lie across their borders."""
    path = write(tmp_path / "m.gguf", texts=200_000)
    assert path.stat().st_size > 3 << 20
    assert check_header(path).n_tensors == 3
    data = path.read_bytes()
    for cut in ((1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 5, (3 << 20) - 3):
        assert "cut short" in refused(path, data[:cut])


def test_files_that_are_something_else(tmp_path: Path, tiny: bytes) -> None:
    path = tmp_path / "m.gguf"
    assert "empty" in refused(path, b"")
    assert "begin with GGUF" in refused(path, b"GG")
    assert "begin with GGUF" in refused(path, b"PK\x03\x04" + bytes(100))
    assert "begin with GGUF" in refused(path, b"<html>" * 100)
    assert "git lfs pull" in refused(path, b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n")
    assert "version 1" in refused(path, b"GGUF" + struct.pack("<I", 1) + tiny[8:])
    assert "version 9" in refused(path, b"GGUF" + struct.pack("<I", 9) + tiny[8:])
    assert "big-endian" in refused(path, b"GGUF" + struct.pack(">I", 3) + tiny[8:])


def test_places_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="directory"):
        check_header(tmp_path)
    with pytest.raises(ModelDamaged, match="no file"):
        check_header(tmp_path / "none.gguf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_fifo_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(ModelDamaged, match="not a regular file"):
        check_header(tmp_path / "m.gguf")


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = pair(b"general.architecture", 8, text(b"llama"))


def header(pairs: list[bytes], tensors: list[bytes], *, counts: tuple[int, int] | None = None) -> bytes:
    n_tensors, n_pairs = counts or (len(tensors), len(pairs))
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_pairs) + b"".join(pairs) + b"".join(tensors)


def tensor(dims: list[int], kind: int = 0, offset: int = 0) -> bytes:
    return text(b"t") + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


HUGE = 2**64 - 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (header([ARCHITECTURE], [], counts=(HUGE, 1)), "claims"),
        (header([ARCHITECTURE], [], counts=(0, HUGE)), "claims"),
        (header([struct.pack("<Q", HUGE) + b"general"], [], counts=(0, 1)), "claims"),
        (header([pair(b"a", 8, struct.pack("<Q", HUGE) + bytes(20))], []), "cut short"),
        (header([pair(b"general.name", 8, struct.pack("<Q", HUGE) + bytes(20))], []), "claims"),
        (header([pair(b"a", 9, struct.pack("<IQ", 4, HUGE) + bytes(20))], []), "cut short"),
        (header([pair(b"a", 9, struct.pack("<IQ", 8, HUGE) + bytes(20))], []), "cut short"),
        (header([pair(b"a", 9, struct.pack("<IQ", 9, HUGE) + bytes(20))], []), "cut short"),
        (header([pair(b"a", 9, struct.pack("<IQ", 9, 1) * 9 + bytes(20))], []), "unknown type"),
        (header([pair(b"a", 13, bytes(20))], []), "unknown type"),
        (header([ARCHITECTURE], [tensor([1] * 9)]) + bytes(99), "dimensions"),
        (header([ARCHITECTURE], [text(b"t") + struct.pack("<I", 2**32 - 1)]) + bytes(99), "dimensions"),
        (header([ARCHITECTURE], [tensor([HUGE] * 4)]) + bytes(999), "tensors need"),
        (header([ARCHITECTURE], [tensor([8], offset=HUGE)]) + bytes(999), "tensors need"),
        (header([ARCHITECTURE], [tensor([33], kind=2)]) + bytes(999), "blocks of 32"),
        (header([ARCHITECTURE, pair(b"general.alignment", 4, bytes(4))], [tensor([1])]) + bytes(99), "alignment"),
        (header([ARCHITECTURE, pair(b"general.alignment", 4, struct.pack("<I", 24))], []) + bytes(99), "alignment"),
        (header([ARCHITECTURE, pair(b"general.alignment", 6, struct.pack("<f", 32))], []) + bytes(99), "alignment"),
        (header([], []), "architecture"),
        (header([pair(b"general.architecture", 4, bytes(4))], []) + bytes(99), "architecture"),
    ],
)
def test_hostile_claims(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refused(tmp_path / "m.gguf", data)


def test_tensor_of_a_later_type_is_counted_by_its_offset_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header([ARCHITECTURE], [tensor([1000], kind=999)]))
    assert check_header(path).n_tensors == 1
    assert "tensors need" in refused(path, header([ARCHITECTURE], [tensor([1000], kind=999, offset=4096)]))


def test_files_of_a_split_model(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header([ARCHITECTURE, pair(b"split.no", 2, struct.pack("<H", 0))], []))
    assert check_header(path).n_tensors == 0
    later = header([pair(b"split.no", 2, struct.pack("<H", 1))], [tensor([8])])
    path.write_bytes(later + bytes(-len(later) % 32) + bytes(32))
    assert check_header(path).architecture == ""


def test_endless_header_is_refused(tmp_path: Path) -> None:
    """A sparse file of 1 GiB whose vocabulary never ends: not read to its end."""
    path = tmp_path / "m.gguf"
    path.write_bytes(header([pair(b"a", 9, struct.pack("<IQ", 0, 1 << 29))], []))
    os.truncate(path, 1 << 30)
    with pytest.raises(ModelDamaged, match="does not end within 128 MiB"):
        check_header(path)


def test_block_sizes_are_those_of_the_reference() -> None:
    reference = {int(kind): sizes for kind, sizes in gguf.constants.GGML_QUANT_SIZES.items()}
    assert {kind: _BLOCKS.get(kind) for kind in reference} == reference


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_cause_anything_but_model_damaged(
    tmp_path_factory: pytest.TempPathFactory, tiny: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(tiny[: data.draw(st.integers(0, len(tiny)))])
    for _ in range(data.draw(st.integers(0, 8))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(damaged)
    with contextlib.suppress(ModelDamaged):
        assert isinstance(check_header(path), GgufInfo)
