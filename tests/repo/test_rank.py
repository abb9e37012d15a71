"""The rank of files: numbers that a person can recount, and an order that depends on nothing else."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.repo.classify import Kind
from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import resolve
from carbon_mind.repo.rank import MAX_HOMES, entry_files, rank
from carbon_mind.values import Definition, RankedFile, RepoPath, Tags


def tags(language: str, defines: str = "", uses: dict[str, int] | None = None, imports: tuple[str, ...] = ()) -> Tags:
    definitions = tuple(Definition(name, "function", i + 1, f"def {name}()") for i, name in enumerate(defines.split()))
    return Tags(language, definitions, tuple(sorted((uses or {}).items())), imports)


def ranked(
    files: dict[str, Tags], kinds: dict[str, Kind] | None = None, entries: tuple[str, ...] = ()
) -> dict[str, RankedFile]:
    known = {RepoPath(path): found for path, found in files.items()}
    result = rank(
        known,
        {RepoPath(path): kind for path, kind in (kinds or {}).items()},
        resolve(known, Context(list(known), lambda path: None)),
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
    family = ranked({"a.js": tags("javascript", "engine"), "b.tsx": tags("tsx", "", {"engine": 3}, ("./a",))})
    assert family["a.js"].used_by == 1
    assert family["a.js"].top_symbols[0][1] == 3


def test_nothing_to_rank() -> None:
    assert rank({}, {}, {}) == ()


def test_the_order_of_the_input_does_not_matter() -> None:
    expected = list(ranked(PROJECT, KINDS).values())
    for seed in range(5):
        names = list(PROJECT)
        random.Random(seed).shuffle(names)
        assert list(ranked({path: PROJECT[path] for path in names}, KINDS).values()) == expected


def test_the_hash_seed_does_not_matter() -> None:
    code = """
from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import resolve
from carbon_mind.repo.rank import rank, entry_files
from carbon_mind.values import Definition, Tags
names = [f"name{i}" for i in range(40)]
files = {
    f"d{i % 3}/f{i}.py": Tags("python", tuple(Definition(names[j], "function", j, "x") for j in range(i, 40, 7)),
                              tuple((names[j], j + 1) for j in range(i % 5, 40, 3)), (f"d{i % 3}.f{(i * 5) % 30}",))
    for i in range(30)
}
resolved = resolve(files, Context(list(files), {}.get))
found = rank(files, {"d0/f3.py": "test"}, resolved, {"d1/f1.py", "d2/f2.py"})
print([(f.path, f.score.hex(), f.used_by, f.top_symbols, f.depends_on, f.imported_by) for f in found])
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
        "pkg/__init__.py": tags("python", imports=(".", ".:text")),
        "pkg/text.py": tags("python", "shorten"),
        "other.py": tags("python", "shorten"),
        "direct.py": tags("python", "", {"shorten": 2}, ("pkg.text",)),
        "through.py": tags("python", "", {"shorten": 3}, ("pkg",)),
        "method.py": tags("python", "", {"shorten": 50}),
    }
    found = ranked(files)
    assert found["pkg/text.py"].used_by == 1 + 2
    assert found["pkg/text.py"].imported_by == 2  # by the package and by direct.py
    assert [count for _, count in found["pkg/text.py"].top_symbols] == [5]
    assert (found["other.py"].used_by, found["other.py"].top_symbols) == (0, ())


def defined(language: str, *definitions: Definition, **rest: object) -> Tags:
    return Tags(language, definitions, **rest)  # type: ignore[arg-type]


def test_imports_are_counted_and_told_from_uses() -> None:
    files = {
        "a.ts": tags("typescript", "alpha"),
        "index.ts": tags("typescript", imports=("./a",)),
        "user.ts": tags("typescript", "", {"alpha": 2}, (".",)),
        "other.ts": tags("typescript", "", {}, ("./a",)),
        "a.test.ts": tags("typescript", "", {"alpha": 7}, ("./a",)),
    }
    found = ranked(files, {"a.test.ts": "test"})
    assert (found["a.ts"].used_by, found["a.ts"].imported_by) == (3, 2)
    assert [count for _, count in found["a.ts"].top_symbols] == [2]
    assert (found["index.ts"].used_by, found["index.ts"].imported_by) == (1, 1)
    assert found["user.ts"].depends_on == ("a.ts", "index.ts")
    assert found["a.test.ts"].depends_on == ("a.ts",)


def test_what_only_its_own_file_can_name_is_not_used_from_elsewhere() -> None:
    private = Definition("mstime", "function", 1, "static long long mstime(void)", local=True)
    public = Definition("mstime", "function", 9, "long long mstime(void)")
    files = {
        "clock.h": tags("c"),
        "cli.c": defined("c", private, imports=("clock.h",)),
        "server.c": defined("c", public, imports=("clock.h",)),
        "user.c": tags("c", "", {"mstime": 4}, ("clock.h",)),
    }
    found = ranked(files)
    assert (found["cli.c"].used_by, found["cli.c"].top_symbols) == (0, ())
    assert found["server.c"].top_symbols == ((public, 4),)
    del files["server.c"]
    assert ranked(files)["cli.c"].top_symbols == ()


def test_a_name_that_two_visible_files_define_counts_for_neither() -> None:
    files = {
        "pkg/unix.go": tags("go", "Open"),
        "pkg/windows.go": tags("go", "Open OnlyHere"),
        "pkg/user.go": tags("go", "", {"Open": 5, "OnlyHere": 1}),
        "far/user.go": tags("go", "", {"OnlyHere": 9}),
    }
    found = ranked(files)
    assert (found["pkg/unix.go"].used_by, found["pkg/unix.go"].top_symbols) == (0, ())
    assert [count for _, count in found["pkg/windows.go"].top_symbols] == [1]
    assert found["pkg/windows.go"].used_by == 1
    assert found["pkg/user.go"].depends_on == ("pkg/windows.go",)


def test_a_method_counts_where_its_type_is_named_and_no_other_has_it() -> None:
    walker = Definition("Walker", "class", 1, "class Walker")
    method = Definition("walk_deep", "method", 2, "def walk_deep(self)")
    plain = Definition("travel", "method", 3, "def travel(self)")
    files = {
        "a.rb": defined("ruby", walker, method, plain),
        "with_type.rb": tags("ruby", "", {"Walker": 1, "walk_deep": 3, "travel": 8}),
        "without.rb": tags("ruby", "", {"walk_deep": 5}),
    }
    found = ranked(files)["a.rb"]
    assert found.top_symbols == ((walker, 1), (method, 3))  # types lead; one plain word says nothing
    assert found.used_by == 1
    files["b.rb"] = defined("ruby", method)
    assert ranked(files)["a.rb"].top_symbols == ((walker, 1),)


def test_a_constructor_is_its_type() -> None:
    shelf = Definition("Shelf", "class", 1, "class Shelf")
    made = Definition("Shelf", "method", 2, "Shelf()")
    files = {"p/Shelf.java": defined("java", shelf, made), "p/User.java": tags("java", "User", {"Shelf": 2})}
    assert ranked(files)["p/Shelf.java"].top_symbols == ((shelf, 2),)


def test_nothing_points_at_what_is_not_the_projects_own_code() -> None:
    files = {
        "tests/tools.py": tags("python", "make_app"),
        "gen.py": Tags("python", degraded="generated"),
        "lonely.py": tags("python", "unused"),
        **{f"tests/t{i}.py": tags("python", "", {"make_app": 9}, ("tools", "gen")) for i in range(9)},
        "app.py": tags("python", "", {}, ("gen",)),
    }
    kinds: dict[str, Kind] = {path: "test" for path in files if path.startswith("tests/")}
    found = ranked(files, kinds)
    assert list(found)[:2] == ["app.py", "lonely.py"]
    assert found["tests/tools.py"].used_by == 0
    assert found["tests/t1.py"].depends_on == ("gen.py", "tests/tools.py")


def test_the_one_file_that_a_central_file_uses_is_not_as_central() -> None:
    users = {f"u{i}.py": tags("python", "", {"engine": 9}, ("core",)) for i in range(6)}
    files = {
        **users,
        "core.py": tags("python", "engine", {"detail": 1}, ("leaf",)),
        "leaf.py": tags("python", "detail"),
    }
    found = ranked(files)
    assert found["core.py"].score > 1.5 * found["leaf.py"].score


def test_an_entry_point_that_does_nothing_and_one_of_a_test_are_no_start() -> None:
    files = {
        "index.js": tags("javascript", imports=("./dist/index.js",)),
        "main.js": tags("javascript", "", {"start_all": 1}, ("./lib",)),
        "lib.js": tags("javascript", "start_all"),
        "test/app.js": tags("javascript", "boot"),
    }
    found = ranked(files, {"test/app.js": "test"}, entries=("index.js", "main.js", "test/app.js"))
    assert found["main.js"].score > found["index.js"].score
    assert list(found)[-1] == "test/app.js"
    assert [file.entry for file in found.values()].count(True) == 3
