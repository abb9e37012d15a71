"""JSON and Markdown of a real project, byte for byte, and documents that are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from carbon_mind import pipeline
from carbon_mind.digest.render import FORMAT, Document, from_json, to_json, to_markdown
from carbon_mind.errors import StorageProblem
from carbon_mind.settings import load
from carbon_mind.values import Command, CriticalFile, Digest, EntryPoint, Module, RepoPath
from tests.conftest import Repository

GOLDEN = Path(__file__).parents[1] / "golden/digest"


@pytest.mark.parametrize("name", ["sample.md", "sample.json"])
def test_golden(sample: Repository, name: str) -> None:
    """UPDATE_GOLDEN=1 rewrites the files; look at the difference before it is committed."""
    mind = pipeline.build(sample.path, load(None, {}), pipeline.Silent())
    data = mind.json if name.endswith(".json") else mind.markdown.encode()
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_bytes(data)
    assert data.decode() == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_json_has_what_it_promises(sample: Repository) -> None:
    mind = pipeline.build(sample.path, load(None, {}), pipeline.Silent())
    document = json.loads(mind.json)
    assert document["version"] == FORMAT
    assert set(document["digest"]) == {
        *(
            "name",
            "architecture",
            "commands",
            "entry_points",
            "critical_files",
            "constraints",
            "known_bugs",
            "patterns",
            "coverage",
            "words",
        )
    }
    assert to_markdown(from_json(mind.json).digest) == mind.markdown, "the Markdown is made from the JSON"
    assert str(sample.path) not in mind.json.decode() + mind.markdown


def test_round_trip() -> None:
    document = Document(
        FORMAT, 12, "bound", Digest("schön", commands=(Command("test", "make 'a\"b\\'", "Makefile:1"),))
    )
    data = to_json(document)
    assert from_json(data) == document
    assert data.endswith(b"}\n")
    assert "schön".encode() in data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"not json",
        b"\xff",
        to_json(Document(FORMAT + 1, 1, "bound", Digest("x"))),
        to_json(Document(FORMAT, 1, "bound", Digest("x"))).replace(b'"tokens"', b'"more": 1, "tokens"'),
        to_json(Document(FORMAT, 1, "bound", Digest("x"))).replace(b'"x"', b"3"),
        to_json(Document(FORMAT, 1, "bound", Digest("x")))[:-20],
        b"[" * 100_000,
    ],
)
def test_an_unknown_document_is_refused(data: bytes) -> None:
    with pytest.raises(StorageProblem) as caught:
        from_json(data)
    assert caught.value.hint
    assert isinstance(caught.value.__cause__, msgspec.MsgspecError | RecursionError | UnicodeDecodeError | type(None))


def test_markdown_of_each_kind_of_entry() -> None:
    digest = Digest(
        "x",
        commands=(
            Command("typecheck", "mypy", "a:1"),
            Command("build", "make `all`", "b:2"),
            Command("test-one", "pytest X", "c"),
        ),
        entry_points=(EntryPoint("x", "x:main", "p:1"), EntryPoint("python -m x", "x/__main__.py", "x/__main__.py")),
        architecture=(
            Module(".", 1, ("c",), tests=("own t/",)),
            Module("src", 2, ("c", "python"), ("lib", "."), ("tests/", "inline")),
            Module("pkg/a", 3, ("go",), ("pkg/b", "cmd/pkg/c")),
        ),
        critical_files=(CriticalFile(RepoPath("a.c"), "used by 2 files", ("1: int a(void)", "9: int b(void)")),),
    )
    assert to_markdown(digest).splitlines() == [
        "# x: repository digest",
        "",
        "## Commands",
        "- build: `` make `all` `` (b:2)",
        "- test one: `pytest X` (c)",
        "- type check: `mypy` (a:1)",
        "",
        "## Entry points",
        "- x: x:main (p:1)",
        "- python -m x: x/__main__.py",
        "",
        "## Architecture",
        "- (top level): 1 c file; tests: own t/",
        "- src/: 2 c/python files; uses lib, .; tests: tests/, inline",
        "- pkg/a/: 3 go files; uses b, cmd/pkg/c",
        "",
        "## Critical files (below each: line, signature)",
        "- a.c (used by 2 files)",
        "  - 1: int a(void)",
        "  - 9: int b(void)",
    ]
