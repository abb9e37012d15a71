"""Extraction on bytes that nobody would write, and on many files at once: always an answer, always the same one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbon_mind.repo.extract import MAX_BYTES, extract, extract_files
from carbon_mind.repo.languages import LANGUAGES, Language, fingerprint, language_of, versions
from carbon_mind.values import BlobId, RepoPath, SourceFile, Tags

GOLDEN = Path(__file__).parents[1] / "golden" / "extract"
SOURCES = {
    name: next(path for path in sorted((GOLDEN / name).iterdir()) if path.name != "expected.json").read_bytes()
    for name in LANGUAGES
}
PYTHON = LANGUAGES["python"]


def names(tags: Tags) -> list[str]:
    return [definition.name for definition in tags.definitions]


@pytest.mark.parametrize("name", LANGUAGES)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
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


# --- many files --------------------------------------------------------------------------------------------------


def many(root: Path, count: int = 60, size: int = 40_000) -> list[tuple[SourceFile, Language]]:
    """More source than one process is used for."""
    jobs = []
    for i in range(count):
        text = f"def first_{i}(): pass\n" + "x = 1\n" * (size // 6)
        (root / f"m{i:03}.py").write_text(text)
        jobs.append((SourceFile(RepoPath(f"m{i:03}.py"), BlobId(str(i)), len(text)), PYTHON))
    return jobs


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    jobs = many(tmp_path)
    seen: list[tuple[int, int]] = []
    alone = list(extract_files(tmp_path, jobs, workers=1))
    together = list(extract_files(tmp_path, jobs, workers=2, progress=lambda done, total: seen.append((done, total))))
    assert alone == together
    assert [file for file, _ in together] == [file for file, _ in jobs]
    assert seen[-1] == (60, 60)
    assert names(together[7][1]) == ["first_7"]


def test_a_file_that_went_away_or_became_a_link_is_unreadable(tmp_path: Path) -> None:
    jobs = many(tmp_path, count=3, size=100)
    (tmp_path / "m000.py").unlink()
    (tmp_path / "m001.py").unlink()
    (tmp_path / "m001.py").symlink_to(tmp_path / "m002.py")
    assert [tags.degraded for _, tags in extract_files(tmp_path, jobs)] == ["unreadable", "unreadable", ""]


KILLER = """
import os, signal
def language():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("where", [(0,), (59,), (0, 59), (30,)])
def test_a_file_that_kills_its_parser_costs_only_itself(tmp_path: Path, where: tuple[int, ...]) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "killer_grammar.py").write_text(KILLER)
    root = tmp_path / "root"
    root.mkdir()
    code = f"""
from pathlib import Path
from carbon_mind.repo.extract import extract_files
from carbon_mind.repo.languages import LANGUAGES, Language
from tests.repo.test_extract import many
root = Path({str(root)!r})
jobs = many(root)
for i in {where!r}:
    jobs[i] = (jobs[i][0], Language("python", "killer_grammar", ("python.scm",)))
for file, tags in extract_files(root, jobs, workers=2):
    print(file.path, tags.degraded, [item.name for item in tags.definitions])
"""
    checkout = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path / "lib"), str(checkout)))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    expected = [f"m{i:03}.py parser crashed []" if i in where else f"m{i:03}.py  ['first_{i}']" for i in range(60)]
    assert done.stdout.splitlines() == expected


def test_an_interrupt_ends_the_workers_too(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from carbon_mind.repo.extract import extract_files
from tests.repo.test_extract import many
root = Path({str(tmp_path)!r})
try:
    for file, _ in extract_files(root, many(root), workers=2):
        os.killpg(0, signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = child.communicate(timeout=60)
    assert out == "interrupted\n"
    assert "Traceback" not in err
    for _ in range(100):  # the last of them may need a moment to notice
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    pytest.fail("a worker is still there")


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
