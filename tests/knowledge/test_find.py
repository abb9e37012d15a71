"""Symbols and search over real parses: what is defined where, who uses it, and which files a query means."""

from __future__ import annotations

import pytest

from carbon_mind import pipeline
from carbon_mind.knowledge.search import Search, own_words, words
from carbon_mind.knowledge.symbols import Symbols
from carbon_mind.repo.scan import locate
from carbon_mind.settings import load
from tests.conftest import Repository


@pytest.fixture
def known(sample: Repository) -> tuple[Symbols, Search]:
    sample.write(
        "sample/store.py",
        '"""Where sessions are kept between two requests."""\n\n\ndef loadUserSession() -> None: ...\n',
    )
    sample.write("other/apart.py", "def build_engine() -> None: ...\n\n\nloadUserSession()\n")
    licence = "/* Copyright 2020 somebody\n * All rights reserved */\n"
    sample.write("docs/guide.c", licence + "#include <x.h>\n/* Draws the night sky. */\nint f(void);\n")
    evidence, read = pipeline.known(locate(sample.path), load(None, {}), pipeline.Silent())
    return Symbols(evidence), Search(evidence, read)


def test_a_symbol_is_told_with_signature_and_users(known: tuple[Symbols, Search]) -> None:
    answer = known[0].answer("build_engine")
    assert "- sample/core.py:6 def build_engine(name: str) -> Engine (function)\n" in answer
    assert "- other/apart.py:1 def build_engine() -> None (function)\n" in answer
    assert answer.index("sample/core.py:6") < answer.index("other/apart.py:1"), "the one that matters first"
    assert "- sample/cli.py x2\n" in answer or "- sample/cli.py x1\n" in answer
    for asked in ("Engine.start", "Engine::start", " start() "):
        assert "- sample/core.py:2 def start(self, speed: int = ...) -> bool (method)\n" in known[0].answer(asked)


def test_a_use_without_an_import_is_told_as_such(known: tuple[Symbols, Search]) -> None:
    assert "- other/apart.py x1 (same name, no import seen)\n" in known[0].answer("loadUserSession")


def test_a_name_that_is_not_there_gets_similar_ones(known: tuple[Symbols, Search]) -> None:
    assert known[0].answer("build_engin") == "build_engin: not defined in any parsed file; similar: build_engine\n"
    assert known[0].answer("\u202e`zzz\n") == "`zzz: not defined in any parsed file\n"
    assert known[0].answer("") == ": not defined in any parsed file\n"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("where is the user session loaded", "sample/store.py - 4: def loadUserSession() -> None"),
        ("sessions between requests", "sample/store.py - "),
        ("engines", "sample/core.py - "),
        ("night sky", "docs/guide.c - Draws the night sky."),
        ("test core", "tests/test_core.py"),
    ],
)
def test_the_file_that_is_meant_comes_first(known: tuple[Symbols, Search], query: str, first: str) -> None:
    answer = known[1].answer(query)
    assert answer.splitlines()[2].startswith(f"- {first}"), answer


@pytest.mark.parametrize(
    "query", ["", "  ", '"', "the of", "a AND b OR (", "NEAR(x", "*", "x" * 10_000, "\u4f60\u597d", "\0"]
)
def test_no_query_is_an_error(known: tuple[Symbols, Search], query: str) -> None:
    assert known[1].answer(query).endswith("\n")


def test_words_are_those_of_programmers() -> None:
    assert words("getUserName get_user_name HTTPServer2 x-ray") == [
        *("get", "user", "name", "get", "user", "name", "http", "server", "2", "x", "ray")
    ]


def test_what_a_file_says_of_itself_is_not_its_licence_nor_its_includes() -> None:
    assert own_words("#!/bin/sh\n# Copyright X\n# Licensed under Y\n\n# Builds the thing.\nmake\n# later words\n") == [
        "Builds the thing."
    ]
    assert own_words('"""One line here."""\nx = 1\n') == ["One line here."]
    assert own_words("#include <stdio.h>\n#include <x.h>\n#define A 1\nint x;\n// far below here\n") == []
    assert own_words("") == []
