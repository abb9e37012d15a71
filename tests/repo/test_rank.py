"""The rank of files: numbers that a person can recount, and an order that depends on nothing else."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.repo.classify import Kind
from carbon_mind.repo.rank import MAX_HOMES, entry_files, rank
from carbon_mind.values import Definition, RankedFile, RepoPath, Tags


def tags(language: str, defines: str = "", uses: dict[str, int] | None = None, imports: tuple[str, ...] = ()) -> Tags:
    definitions = tuple(Definition(name, "function", i + 1, f"def {name}()") for i, name in enumerate(defines.split()))
    return Tags(language, definitions, tuple(sorted((uses or {}).items())), imports)


def ranked(
    files: dict[str, Tags], kinds: dict[str, Kind] | None = None, entries: tuple[str, ...] = ()
) -> dict[str, RankedFile]:
    result = rank(
        {RepoPath(path): found for path, found in files.items()},
        {RepoPath(path): kind for path, kind in (kinds or {}).items()},
        [RepoPath(path) for path in entries],
    )
    assert sum(file.score for file in result) == pytest.approx(1.0) or not files
    assert [(-file.score, file.path) for file in result] == sorted((-file.score, file.path) for file in result)
    return {str(file.path): file for file in result}


PROJECT = {
    "core.py": tags("python", "engine helper unused"),
    "one.py": tags("python", "first", {"engine": 3, "helper": 1}, ("core",)),
    "two.py": tags("python", "second", {"engine": 2, "first": 1}, ("core", "one")),
    "three.py": tags("python", "third", {"helper": 5}, ("core",)),
    "tests/test_core.py": tags("python", "", {"engine": 50, "unused": 9}),
}
KINDS: dict[str, Kind] = {"tests/test_core.py": "test"}


def test_counts_by_hand() -> None:
    found = ranked(PROJECT, KINDS)
    core = found["core.py"]
    assert core.used_by == 3
    assert [(definition.name, count) for definition, count in core.top_symbols] == [("helper", 6), ("engine", 5)]
    assert found["one.py"].used_by == 1
    assert found["three.py"].used_by == 0
    assert found["three.py"].top_symbols == ()
    assert next(iter(found)) == "core.py"


def test_tests_make_nothing_central() -> None:
    files = {
        "used.py": tags("python", "alpha"),
        "tested.py": tags("python", "beta"),
        "user.py": tags("python", "", {"alpha": 1}, ("used",)),
        **{f"tests/t{i}.py": tags("python", "", {"beta": 9}, ("tested",)) for i in range(3)},
    }
    kinds: dict[str, Kind] = {f"tests/t{i}.py": "test" for i in range(3)}
    found = ranked(files, kinds)
    assert found["used.py"].score > found["tested.py"].score
    assert (found["tested.py"].used_by, found["tested.py"].top_symbols) == (0, ())
    as_source = ranked(files)
    assert as_source["tested.py"].score > as_source["used.py"].score
    assert as_source["tested.py"].used_by == 3


def test_an_entry_point_counts_more() -> None:
    files = {"a.py": tags("python", "alpha"), "b.py": tags("python", "beta"), "c.py": tags("python", "gamma")}
    assert next(iter(ranked(files, entries=("c.py",)))) == "c.py"
    # ... and so does what it uses.
    files["c.py"] = tags("python", "gamma", {"beta": 1})
    assert list(ranked(files, entries=("c.py",)))[-1] == "a.py"


def test_names_that_say_little_count_for_nothing() -> None:
    homes = {f"h{i}.py": tags("python", "shared") for i in range(MAX_HOMES + 1)}
    found = ranked({**homes, "main.py": tags("python", "", {"shared": 9})})
    assert all(file.used_by == 0 and file.top_symbols == () for file in found.values())
    common = ranked(
        {"a.py": tags("python", "get __init__ ab"), "b.py": tags("python", "", {"get": 9, "__init__": 9, "ab": 9})}
    )
    assert common["a.py"].used_by == 0
    # Two homes: both may be meant, so neither is "used by" for certain.
    two = ranked(
        {"a.py": tags("python", "shared"), "b.py": tags("python", "shared"), "c.py": tags("python", "", {"shared": 2})}
    )
    assert (two["a.py"].used_by, two["b.py"].used_by) == (0, 0)


def test_languages_do_not_mix() -> None:
    found = ranked(
        {"a.py": tags("python", "engine"), "b.go": tags("go", "", {"engine": 3}), "c.ts": tags("typescript", "engine")}
    )
    assert found["a.py"].used_by == found["c.ts"].used_by == 0
    family = ranked({"a.js": tags("javascript", "engine"), "b.tsx": tags("tsx", "", {"engine": 3})})
    assert family["a.js"].used_by == 1


IMPORTS = [
    ("c", "src/a.c", '"b.h"', "src/b.h"),
    ("c", "src/a.c", '"../lib/b.h"', "lib/b.h"),
    ("cpp", "app/a.cc", "<b.h>", "include/b.h"),
    ("cpp", "app/a.cc", "b.h", "src/b.h"),
    ("javascript", "src/a.js", "./b", "src/b.js"),
    ("typescript", "src/a.ts", "./b.js", "src/b.ts"),
    ("typescript", "src/a.ts", "../lib", "lib/index.ts"),
    ("tsx", "src/a.tsx", "./b", "src/b.tsx"),
    ("python", "src/pkg/a.py", ".b", "src/pkg/b.py"),
    ("python", "src/pkg/a.py", "..other.b", "src/other/b.py"),
    ("python", "src/pkg/a.py", ".sub", "src/pkg/sub/__init__.py"),
    ("python", "src/pkg/a.py", "pkg.sub.b", "src/pkg/sub/b.py"),
    ("python", "tools/a.py", "helper", "tools/helper.py"),
]


@pytest.mark.parametrize(("language", "source", "text", "target"), IMPORTS)
def test_imports_resolve(language: str, source: str, text: str, target: str) -> None:
    packages = {path: tags("python") for path in ("src/pkg/__init__.py", "src/pkg/sub/__init__.py") if path != target}
    found = ranked({**packages, source: tags(language, imports=(text,)), target: tags(language)})
    assert found[target].used_by == 1
    assert found[source].depends_on == (target,)
    assert found[target].depends_on == ()


@pytest.mark.parametrize(
    ("language", "source", "text", "other"),
    [
        ("python", "src/pkg/a.py", "json", "src/pkg/json.py"),  # the standard library's, not the package's own
        ("python", "src/pkg/a.py", "typing", "src/pkg/sub/typing.py"),
        ("python", "src/pkg/a.py", "....x", "x/y.py"),
        ("javascript", "a.js", "b", "b.js"),  # a package of that name
        ("javascript", "a.js", "../../b", "b.js"),
        ("c", "src/a.c", "../../../b.h", "b.h"),
        ("go", "a.go", "./b", "b"),
    ],
)
def test_imports_of_something_else_do_not(language: str, source: str, text: str, other: str) -> None:
    packages = {path: tags("python") for path in ("src/pkg/__init__.py", "src/pkg/sub/__init__.py")}
    found = ranked({**packages, source: tags(language, imports=(text,)), other: tags(language)})
    assert found[other].used_by == 0
    assert found[source].depends_on == ()


def test_nothing_to_rank() -> None:
    assert rank({}, {}) == ()


def test_the_order_of_the_input_does_not_matter() -> None:
    expected = rank({RepoPath(path): PROJECT[path] for path in PROJECT}, {RepoPath("tests/test_core.py"): "test"})
    for seed in range(5):
        names = list(PROJECT)
        random.Random(seed).shuffle(names)
        shuffled = {RepoPath(path): PROJECT[path] for path in names}
        assert rank(shuffled, {RepoPath("tests/test_core.py"): "test"}) == expected


def test_the_hash_seed_does_not_matter() -> None:
    code = """
from carbon_mind.repo.rank import rank, entry_files
from carbon_mind.values import Definition, Tags
names = [f"name{i}" for i in range(40)]
files = {
    f"d{i % 3}/f{i}.py": Tags("python", tuple(Definition(names[j], "function", j, "x") for j in range(i, 40, 7)),
                              tuple((names[j], j + 1) for j in range(i % 5, 40, 3)), (f"d{i % 3}.f{(i * 5) % 30}",))
    for i in range(30)
}
print([(f.path, f.score.hex(), f.used_by, f.top_symbols) for f in rank(files, {"d0/f3.py": "test"}, {"d1/f1.py", "d2/f2.py"})])
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1
    assert b"f29" in outputs.pop()


def test_entry_points_are_mapped_to_their_files() -> None:
    known = [RepoPath(path) for path in ("src/flask/cli.py", "tool/__init__.py", "cmd/main.go", "other.py")]
    assert entry_files(["flask.cli:main", "tool:run", "cmd/main.go", "absent.x:y"], known) == set(known[:3])


def test_in_python_a_name_that_is_not_imported_is_somebody_elses() -> None:
    files = {
        "pkg/__init__.py": tags("python"),
        "pkg/text.py": tags("python", "shorten"),
        "other.py": tags("python", "shorten"),
        "direct.py": tags("python", "", {"shorten": 2}, ("pkg.text",)),
        "through.py": tags("python", "", {"shorten": 3}, ("pkg",)),
        "method.py": tags("python", "", {"shorten": 50}),
    }
    found = ranked(files)
    assert found["pkg/text.py"].used_by == 1 + 1
    assert [count for _, count in found["pkg/text.py"].top_symbols] == [5]
    assert (found["other.py"].used_by, found["other.py"].top_symbols) == (0, ())
