"""Extraction on bytes that nobody would write: always an answer, always the same one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbon_mind.repo.extract import MAX_BYTES, extract
from carbon_mind.repo.languages import LANGUAGES, Language, fingerprint, language_of, versions
from carbon_mind.values import Tags

GOLDEN = Path(__file__).parents[1] / "golden" / "extract"
SOURCES = {
    name: next(path for path in sorted((GOLDEN / name).iterdir()) if path.name != "expected.json").read_bytes()
    for name in LANGUAGES
}
PYTHON = LANGUAGES["python"]


def names(tags: Tags) -> list[str]:
    return [definition.name for definition in tags.definitions]


@pytest.mark.parametrize("name", LANGUAGES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(noise=st.binary(max_size=300), position=st.integers(0, 2000), remove=st.integers(0, 400))
def test_any_bytes_have_tags_that_are_sorted_and_repeatable(
    name: str, noise: bytes, position: int, remove: int
) -> None:
    source = SOURCES[name]
    mutated = source[:position] + noise + source[position + remove :]
    found = extract(mutated, LANGUAGES[name])
    assert found == extract(mutated, LANGUAGES[name])
    assert list(found.definitions) == sorted(found.definitions, key=lambda item: (item.line, item.name, item.kind))
    assert list(found.references) == sorted(found.references)
    assert all("\n" not in item.signature and len(item.signature) <= 160 for item in found.definitions)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"", []),
        (b"\xef\xbb\xbfdef bom(): pass\n", ["bom"]),
        ("def wide(): pass\n".encode("utf-16"), ["wide"]),
        (b"def one(): pass\r\ndef two(): pass\r\n", ["one", "two"]),
        (b"# caf\xe9\ndef latin(): pass\n", ["latin"]),
    ],
)
def test_encodings_and_line_ends(source: bytes, expected: list[str]) -> None:
    found = extract(source, PYTHON)
    assert (names(found), found.degraded) == (expected, "")


def test_what_is_not_source_keeps_its_name_and_says_why() -> None:
    assert extract(b"def f(): pass\n\0\1\2" * 100, PYTHON).degraded == "not text"
    assert extract(b"x=" + b"f(1);" * 200_000, LANGUAGES["javascript"]).degraded == "minified"
    assert extract(b"x = 1\n" * 200_000, PYTHON).degraded == "too large"


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("shape", [b"(", b"[", b"{", b"([{", b"f("])
def test_deep_nesting_loses_symbols_not_the_process(name: str, shape: bytes) -> None:
    found = extract(SOURCES[name] + b"\n" + shape * 20_000, LANGUAGES[name])
    assert found.degraded or found.definitions


def test_what_tags_quote_holds_no_credential() -> None:
    key = "ghp_" + "a1B2" * 9
    found = extract(
        f"def login(token: 'Literal[\\'{key}\\']') -> None: ...\n# FIXME: uses {key} here\n".encode(), PYTHON
    )
    assert key not in repr(found)
    assert found.markers[0].text == "uses [redacted] here"


def test_an_import_from_an_address_holds_no_credential() -> None:
    found = extract(b"import a from 'https://ann:hunter2secret@example.com/a.js'\n", LANGUAGES["javascript"])
    assert len(found.imports) == 1
    assert "hunter2secret" not in found.imports[0]


def test_comments_without_end_cost_no_square() -> None:
    source = b"# HACK: kept\ndef before(): pass\n" + b"# filler\n" * 100_000 + b"def after(): pass\n"
    found = extract(source, PYTHON)
    assert [(item.name, item.line) for item in found.definitions] == [("before", 2), ("after", 100_003)]
    assert [marker.line for marker in found.markers] == [1]


def test_redirections_without_end_are_refused() -> None:
    assert extract(b"<a>\n" * 20_000, LANGUAGES["bash"]).degraded == "too deep"
    assert extract(b"cat <<A\nA\n" * 20_000, LANGUAGES["bash"]).degraded == "too deep"


def test_thirty_thousand_functions_are_all_there() -> None:
    source = b"".join(b"def f%d(): pass\n" % i for i in range(30_000))
    found = extract(source, PYTHON)
    assert len(found.definitions) == 30_000
    assert found.degraded == ""


# --- languages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "head", "name"),
    [
        ("a/b.py", b"", "python"),
        ("b.PY", b"", "python"),
        ("x.tsx", b"", "tsx"),
        ("x.d.ts", b"", "typescript"),
        ("Rakefile", b"", "ruby"),
        ("h.h", b"struct a { int x; };\n", "c"),
        ("h.h", b"namespace a { class B { public: int x; }; }\n", "cpp"),
        ("tool", b"#!/usr/bin/env -S python3 -u\n", "python"),
        ("tool", b"#!/bin/sh\n", "bash"),
        ("tool", b"plain text", None),
        ("README.md", b"", None),
        (".py", b"", None),
    ],
)
def test_the_language_of_a_file(path: str, head: bytes, name: str | None) -> None:
    found = language_of(path, head)
    assert (found.name if found else None) == name


def test_versions_are_the_same_in_every_process() -> None:
    code = "from carbon_mind.repo.languages import *; print(fingerprint()); print([versions(l) for l in LANGUAGES.values()])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{fingerprint()}\n{[versions(language) for language in LANGUAGES.values()]}\n"}


def test_a_missing_grammar_is_a_reason_not_an_error() -> None:
    found = extract(b"x = 1\n", Language("python", "no_such_grammar", ("python.scm",)))
    assert found.degraded
    assert MAX_BYTES >= 1 << 20
