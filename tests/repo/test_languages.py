"""What a file is written in, what its comments flag, and that neither depends on the process that asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES, grammar, language_of, query_text, settle, versions

CHECKOUT = Path(__file__).parents[2]


def run(code: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- headers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "c"),
        ("struct class_list { int class; };\n", "c"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void);\n#ifdef __cplusplus\n}\n#endif\n', "c"),
        ("#ifdef __cplusplus\nnamespace a { class B {}; }\n#endif\nint f(void);\n", "c"),
        ("/*\nclass of its own {\ntemplate <\n*/\nint f(void);\n", "c"),
        ("// public:\nint public;\n", "c"),
        ("class Shape {\npublic:\n};\n", "cpp"),
        ("class Shape;\nclass Circle\n  : public Shape\n{\n};\n", "cpp"),
        ("template <typename T> T f(T t);\n", "cpp"),
        ("inline namespace v1 {\n}\n", "cpp"),
        ("struct A {\n  private:\n    int a;\n};\n", "cpp"),
        ("enum class Side { Left };\n", "cpp"),
        ("using std::string;\n", "cpp"),
    ],
)
def test_a_header_is_c_unless_its_text_is_clearly_cpp(text: str, name: str) -> None:
    header = language_of("include/x.h")
    assert header is not None
    settled = settle(header, text.encode())
    assert (settled.name, settled.header) == (name, True)
    assert extract(text.encode(), header).language == name


def test_the_key_of_a_header_changes_with_either_language() -> None:
    header = language_of("x.h")
    assert header is not None
    assert versions(LANGUAGES["cpp"]) not in versions(header)
    assert versions(header) != versions(LANGUAGES["c"])


@pytest.mark.parametrize(
    "piece", [b"/*", b"#if __cplusplus\n", b"class a\n", b"namespace a\\\n", b"template \t", b"using a\n"]
)
def test_a_header_of_a_megabyte_is_settled_without_a_square(piece: bytes) -> None:
    header = language_of("x.h")
    assert header is not None
    # A search that starts over at each piece would take hours here, so a test that ends has passed.
    assert settle(header, piece * ((1 << 20) // len(piece))).name in ("c", "cpp")


@pytest.mark.parametrize(
    "changed",
    ["repo/extract.py", "repo/extract_marks.py", "repo/languages.py", "repo/queries/c.scm", "safety/secrets.py"],
)
def test_the_key_changes_with_the_code_that_makes_the_tags(tmp_path: Path, changed: str) -> None:
    shutil.copytree(CHECKOUT / "carbon_mind", tmp_path / "carbon_mind", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from carbon_mind.repo.languages import *; print(versions(LANGUAGES['c'])); print(fingerprint())"
    # An editable install finds its own checkout before any path is looked at.
    first = "from importlib.machinery import PathFinder; sys.meta_path.insert(0, PathFinder)"
    there = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {first}; sys.dont_write_bytecode = True; {code}"
    before = run(there).split("\n")
    assert before == run(code).split("\n")  # wherever it is installed
    path = tmp_path / "carbon_mind" / changed
    path.write_bytes(path.read_bytes() + (b"\n; changed\n" if changed.endswith(".scm") else b"\n# changed\n"))
    after = run(there).split("\n")
    assert before[0] != after[0]
    assert before[1] != after[1]


# --- scripts and the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"#!/usr/bin/python3.12", "python"),
        (b"#! /usr/bin/env LANG=C ruby -w", "ruby"),
        (b"#!/usr/bin/env node", "javascript"),
        (b"#!/usr/bin/php8.2", "php"),
        (b"#!/bin/dash -e", "bash"),
        (b"\xef\xbb\xbf#!/bin/bash", "bash"),
        (b"#!/usr/bin/env", None),
        (b"#!", None),
        (b"#!\xff\xfe\xfd", None),
        (b"#!/usr/bin/perl", None),
    ],
)
def test_a_script_is_known_by_its_first_line(line: bytes, name: str | None) -> None:
    found = language_of("bin/tool", line + b"\nrest\n")
    assert (found.name if found else None) == name


def test_every_language_has_a_grammar_and_a_query_that_fits_it() -> None:
    for language in LANGUAGES.values():
        assert grammar(language) is not None
        assert "@definition." in query_text(language)
        assert extract(b"\n", language).degraded == ""


# --- markers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("// FIXME: leaks", ("FIXME", "leaks")),
        ("// FIXME(ann): leaks", ("FIXME", "leaks")),
        ("/* XXX why? */", ("XXX", "why?")),
        ("/** @BUG: wrong */", ("BUG", "wrong")),
        ("// it works. HACK: but slowly", ("HACK", "but slowly")),
        ("// HACK", ("HACK", "")),
        ("// FIXME \u2014 größer", ("FIXME", "größer")),
        ("// DEBUG: no", None),
        ("// BUGS: no", None),
        ("// a BUG in prose", None),
        ("// XXX-12 is a number", None),
        ("// XXX.XXX.XXX is an address", None),
        ("// fixme: in lower case", None),
        ('const char *s = "FIXME: text";', None),
        ("// FIXME: " + "x" * 300, ("FIXME", "x" * 197 + "...")),
    ],
)
def test_what_counts_as_a_marker(comment: str, expected: tuple[str, str] | None) -> None:
    markers = extract(f"int a;\n{comment}\nint b;\n".encode(), LANGUAGES["c"]).markers
    assert [(marker.tag, marker.text, marker.line) for marker in markers] == ([(*expected, 2)] if expected else [])


# --- the same everywhere -------------------------------------------------------------------------------------


def test_tags_do_not_depend_on_the_hash_seed() -> None:
    code = """
from pathlib import Path
from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES
for name, language in LANGUAGES.items():
    for path in sorted(Path("tests/golden/extract", name).iterdir()):
        print(extract(path.read_bytes(), language))
"""
    assert run(f"import os; os.chdir({str(CHECKOUT)!r})\n{code}", PYTHONHASHSEED="1") == run(
        f"import os; os.chdir({str(CHECKOUT)!r})\n{code}", PYTHONHASHSEED="4242"
    )


def test_a_script_without_a_guard_does_not_start_itself_again(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"m{i}.py").write_text(f"def f{i}(): pass\n" + "x = 1\n" * 40_000)
    script = tmp_path / "script"
    script.write_text(f"""#!/usr/bin/env python3
from pathlib import Path
from carbon_mind.repo.workers import extract_files
from carbon_mind.repo.languages import LANGUAGES
from carbon_mind.values import BlobId, RepoPath, SourceFile
print("started")
root = Path({str(tmp_path)!r})
jobs = [(SourceFile(RepoPath(f"m{{i}}.py"), BlobId(""), 240_000), LANGUAGES["python"]) for i in range(8)]
print([tags.definitions[0].name for _, tags in extract_files(root, jobs, workers=2)])
""")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("started\n['f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7']\n", "")
