from __future__ import annotations

from pathlib import Path

import pytest

from carbon_mind.errors import ModelDamaged, NoModel
from carbon_mind.models import Entry, Source, load_registry, parts, resolve
from carbon_mind.models.record import record


def make(name: str, size: int) -> Entry:
    return Entry(
        name=name,
        title=name,
        file=f"{name}.gguf",
        sha256="a" * 64,
        licence="MIT",
        context=1,
        sources=(Source(url="https://example.org/x"),),
        size=size,
    )


ENTRIES = {entry.name: entry for entry in (make("big", 300), make("small", 100), make("middle", 200))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.gguf").write_bytes(b"x" * ENTRIES[name].size)
        record(ENTRIES[name], folder)


def test_name_of_a_pulled_model(folder: Path) -> None:
    put(folder, "big")
    assert resolve("big", folder, None, registry=ENTRIES) == folder / "big.gguf"
    assert resolve("big.gguf", folder, None, registry=ENTRIES) == folder / "big.gguf"


def test_name_that_is_not_pulled(folder: Path) -> None:
    for name in ("big", "big.gguf"):
        with pytest.raises(NoModel, match="not pulled") as caught:
            resolve(name, folder, "small", registry=ENTRIES)
        assert "carbon models pull big" in caught.value.hint


def test_unknown_name(folder: Path) -> None:
    with pytest.raises(NoModel, match="'huge'") as caught:
        resolve("huge", folder, None, registry=ENTRIES)
    assert "big, small, middle" in caught.value.hint


def test_nothing_named(folder: Path) -> None:
    with pytest.raises(NoModel, match="none is pulled") as caught:
        resolve(None, folder, None)
    assert "carbon models pull smollm2-135m" in caught.value.hint
    put(folder, "big", "middle")
    assert resolve(None, folder, None, registry=ENTRIES) == folder / "middle.gguf"
    assert resolve(None, folder, "big", registry=ENTRIES) == folder / "big.gguf"
    with pytest.raises(NoModel, match="small is not pulled"):  # a default that is not there is not replaced in silence
        resolve(None, folder, "small", registry=ENTRIES)


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NoModel):
        resolve(None, tmp_path / "none", None)


def test_path(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"x")
    (tmp_path / "plain").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert resolve(str(file), folder, None, registry=ENTRIES) == file
    assert resolve("own.gguf", folder, None, registry=ENTRIES) == Path("own.gguf")
    assert resolve("./plain", folder, None, registry=ENTRIES) == Path("plain")
    assert resolve("~/own.gguf", folder, None, registry=ENTRIES) == file
    with pytest.raises(NoModel) as caught:
        resolve("plain", folder, None, registry=ENTRIES)
    assert "./plain" in caught.value.hint


def test_existing_path_comes_before_the_registry(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "big")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.gguf").write_bytes(b"mine")
    assert resolve("big.gguf", folder, None, registry=ENTRIES) == Path("big.gguf")
    assert resolve("big", folder, None, registry=ENTRIES) == folder / "big.gguf"


@pytest.mark.parametrize("text", ["./none.gguf", "none.gguf", "a\0b.gguf", "x" * 5000 + ".gguf", "~nobody-here/x.gguf"])
def test_path_that_is_not_there(folder: Path, text: str) -> None:
    with pytest.raises(NoModel, match="no file") as caught:
        resolve(text, folder, None, registry=ENTRIES)
    assert caught.value.hint


def test_directory(folder: Path) -> None:
    with pytest.raises(ModelDamaged, match="directory"):
        resolve(str(folder), folder, None, registry=ENTRIES)


def split(folder: Path, count: int) -> list[Path]:
    files = [folder / f"m-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    for file in files:
        file.write_bytes(b"x")
    return files


def test_split_model(folder: Path) -> None:
    files = split(folder, 3)
    for file in files:
        assert parts(file) == tuple(files)
        assert resolve(str(file), folder, None) == files[0]
    assert parts(folder / "single.gguf") == (folder / "single.gguf",)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_split_model_with_a_part_missing(folder: Path, missing: int) -> None:
    files = split(folder, 3)
    files[missing].unlink()
    with pytest.raises(ModelDamaged) as caught:
        parts(files[missing - 1])
    assert files[missing].name in caught.value.message


@pytest.mark.parametrize("name", ["m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-00001-of-00000.gguf"])
def test_impossible_part(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"x")
    with pytest.raises(ModelDamaged, match="cannot be a part"):
        parts(folder / name)


def test_huge_number_of_parts_stops_at_the_first_missing_one(folder: Path) -> None:
    (folder / "m-00001-of-99999.gguf").write_bytes(b"x")
    with pytest.raises(ModelDamaged, match="m-00002-of-99999"):
        parts(folder / "m-00001-of-99999.gguf")


def test_the_registry_that_ships_is_the_default(folder: Path) -> None:
    entry = load_registry()["smollm2-135m"]
    with pytest.raises(NoModel, match="not pulled"):
        resolve(entry.name, folder, None)
