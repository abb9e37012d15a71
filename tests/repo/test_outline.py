"""Of a test only its imports and what switches it off: the same imports as of the whole file, at a fraction of the bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES, language_of, outlined, query_text, untested, versions
from carbon_mind.repo.outline import head, may_switch_off
from carbon_mind.values import Tags
from tests.repo.test_extract import SOURCES

BODY = "\n" + "x = call(1)\n" * 50


@pytest.mark.parametrize(
    ("language", "imports"),
    [
        ("python", "import os\nfrom a.b import (\n    c,\n    d,\n)\n"),
        ("python", "from . import x\n"),
        ("typescript", "import {\n  a,\n  b,\n} from './a'\nimport type { C } from 'c'\n"),
        ("typescript", "export * from './all'\n"),
        ("javascript", "const fs = require('fs')\nconst {\n  a,\n} = require('./a')\n"),
        ("rust", "use crate::a::{\n    b,\n    c::D,\n};\nmod util;\n"),
        ("rust", "pub use a::b;\n"),
        ("c", '#include <stdio.h>\n#  include "a.h"\n'),
        ("php", "<?php\nnamespace A\\B;\nuse C\\{\n  D,\n  E\n};\n"),
        ("bash", "source lib.sh\n. ./more.sh\n"),
        ("zig", 'const std = @import("std");\n'),
        ("lua", 'local a = require("a.b")\n'),
    ],
)
def test_the_head_ends_behind_the_last_import(language: str, imports: str) -> None:
    assert head((imports + BODY).encode(), language) == imports.encode()
    assert head((imports + BODY + "    import nothing\n").encode(), language) == imports.encode(), "not at the margin"
    assert head(BODY.encode(), language) == b""
    assert head(imports.rstrip("\n").encode(), language) == imports.encode(), "the last line may lack its end"


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_an_outline_has_the_imports_and_nothing_else(name: str) -> None:
    row = outlined(LANGUAGES[name])
    whole, outline = extract(SOURCES[name], LANGUAGES[name]), extract(SOURCES[name], row)
    if row.part != "imports":  # a language whose tests need not import what they test
        assert outline == whole
        return
    assert set(outline.imports) <= set(whole.imports)
    assert outline.imports or not whole.imports
    assert outline == Tags(name, imports=outline.imports, packages=outline.packages, markers=outline.markers)
    assert all(mark.tag in ("SKIP", "XFAIL") for mark in outline.markers)


def test_a_test_that_is_switched_off_is_found_wherever_it_stands() -> None:
    row = outlined(LANGUAGES["python"])
    text = f"import pytest\n{BODY}\n@pytest.mark.skip(reason='slow')\ndef test_a():\n    pass\n".encode()
    assert may_switch_off(text, "python")
    (mark,) = extract(text, row).markers
    assert (mark.tag, mark.line) == ("SKIP", 54)
    assert extract(text, row).definitions == ()
    assert not may_switch_off(b"import pytest\n@pytest.mark.parametrize('a', [1])\n", "python")
    assert not may_switch_off(b"anything skip", "c")


def test_a_header_stays_an_outline_when_its_text_tells_the_language() -> None:
    row = language_of("tests/a.h")
    assert row is not None
    tags = extract(b'#include "b.h"\nclass A { int f(); };\n', outlined(row))
    assert (tags.language, tags.imports, tags.definitions) == ("cpp", ("b.h",), ())


def test_an_outline_is_another_entry_of_the_cache() -> None:
    rows = [*LANGUAGES.values()]
    keys = {versions(row) for row in rows} | {versions(outlined(row)) for row in rows}
    assert len(keys) == len(rows) + sum(outlined(row).part == "imports" for row in rows)


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_code_is_asked_for_everything_but_tests_that_are_switched_off(name: str) -> None:
    whole, code = extract(SOURCES[name], LANGUAGES[name]), extract(SOURCES[name], untested(LANGUAGES[name]))
    off = [mark for mark in code.markers if mark.tag in ("SKIP", "XFAIL")]
    assert code == replace(whole, markers=tuple(m for m in whole.markers if m in off or m.tag not in ("SKIP", "XFAIL")))
    if "@off.name" in query_text(LANGUAGES[name]) and "@off" not in query_text(untested(LANGUAGES[name])):
        assert off == []
