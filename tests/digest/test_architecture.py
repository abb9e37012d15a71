"""The module map: components, the direction in which they lean, and where their tests are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from carbon_mind.digest.architecture import modules, naming
from carbon_mind.evidence import Evidence
from carbon_mind.values import Definition, RankedFile, RepoPath, Tags


def files(folder: str, count: int, language: str = "python") -> dict[RepoPath, Tags]:
    return {RepoPath(f"{folder}/f{i}.py"): Tags(language, imports=("x",)) for i in range(count)}


def needs(path: str, *others: str) -> RankedFile:
    return RankedFile(RepoPath(path), 0.1, 0, depends_on=tuple(RepoPath(other) for other in others))


def evidence(tags: dict[RepoPath, Tags], *ranked: RankedFile) -> Evidence:
    kinds = {path: "test" for path in tags if "test" in path}
    return Evidence(sorted(tags), tags=tags, ranked=ranked, kinds=kinds)


def test_counts_files_and_leans() -> None:
    tags = {**files("web", 3), **files("core", 2), RepoPath("setup.py"): Tags("python"), **files("tests", 9)}
    found = modules(
        evidence(
            tags,
            needs("web/f0.py", "core/f0.py", "setup.py", "web/f1.py", "tests/f0.py"),
            needs("web/f1.py", "core/f0.py", "core/f1.py"),
            needs("tests/f0.py", "web/f0.py"),
        )
    )
    assert [(part.path, part.files, part.languages, part.depends_on) for part in found] == [
        ("web", 3, ("python",), ("core", ".")),
        ("core", 2, ("python",), ()),
        (".", 1, ("python",), ()),
    ]


def test_one_directory_that_holds_nearly_everything_says_little() -> None:
    deep = {**files("src/a", 3), **files("src/b", 3)}
    assert [part.path for part in modules(evidence(deep))] == ["src/a", "src/b"]


def test_hidden_directories_are_no_components() -> None:
    tags = {**files("web", 2), **files(".devcontainer", 1), **files(".github/scripts", 4)}
    assert [part.path for part in modules(evidence(tags))] == ["web"]


def test_tests_belong_to_what_they_lie_in_or_lean_on() -> None:
    tags = {
        **files("web", 3),
        **files("core", 2),
        **files("tests/web", 2),
        **files("tests/core", 1),
        **files("core/__tests__", 4),
        RepoPath("tests/conftest.py"): Tags("python"),  # leans on nothing: nobody's test
        RepoPath("benches/test_speed.py"): Tags("python", imports=("core",)),
    }
    found = modules(
        evidence(
            tags,
            needs("tests/web/f0.py", "web/f0.py", "web/f1.py", "core/f0.py"),
            needs("tests/web/f1.py", "web/f0.py"),
            needs("tests/core/f0.py", "core/f0.py"),
            needs("benches/test_speed.py", "web/f0.py"),
            needs("core/__tests__/f0.py", "web/f0.py"),
        )
    )
    assert {part.path: part.tests for part in found} == {
        "web": ("tests/web/",),
        "core": ("own __tests__/", "tests/core/"),
    }


def test_the_directory_that_holds_most_of_the_tests_stands_for_them() -> None:
    tags = {**files("web", 1), **files("tests/web/deep", 2), **files("tests/web", 2), **files("tests", 2)}
    leaning = [needs(path, "web/f0.py") for path in tags if path.startswith("tests/")]
    assert modules(evidence(tags, *leaning))[0].tests == ("tests/web/",)
    tags |= files("tests/other", 4)
    leaning = [needs(path, "web/f0.py") for path in tags if path.startswith("tests/")]
    assert modules(evidence(tags, *leaning))[0].tests == ("tests/",)


def test_tests_that_nobody_reads_make_the_place_less_exact() -> None:
    tags = {**files("src", 2), **files("tests/helpers", 2)}
    leaning = [needs("tests/helpers/f0.py", "src/f0.py"), needs("tests/helpers/f1.py", "src/f0.py")]
    found = evidence(tags, *leaning)
    assert modules(found)[0].tests == ("tests/helpers/",)
    unread = [RepoPath(f"tests/unit/t{i}.tcl") for i in range(5)]
    kinds = {**found.kinds, **dict.fromkeys(unread, "test")}
    assert modules(replace(found, files=[*found.files, *unread], kinds=kinds))[0].tests == ("tests/",)


def test_tests_beside_the_code_and_inside_of_it() -> None:
    tags = {
        RepoPath("a/x.go"): Tags("go"),
        RepoPath("a/x_test.go"): Tags("go"),
        RepoPath("b/lib.rs"): Tags("rust", (Definition("tests", "module", 9, "mod tests"),)),
    }
    assert {part.path: part.tests for part in modules(evidence(tags))} == {
        "a": ("beside the code *_test.go",),
        "b": ("inline `mod tests`",),
    }


def test_a_place_with_few_of_the_tests_is_left_out() -> None:
    tags = {**files("web", 1), **files("web/tests", 9), **files("examples/tests", 1)}
    found = modules(evidence(tags, needs("examples/tests/f0.py", "web/f0.py")))
    assert [part.tests for part in found] == [("own tests/",)]


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("tests/test_a.py", "test_*.py"),
        ("a/b_test.go", "*_test.go"),
        ("a_spec.rb", "*_spec.rb"),
        ("a/b.test.tsx", "*.test.tsx"),
        ("b.spec.ts", "*.spec.ts"),
        ("src/FooTest.java", "*Test.java"),
        ("FooTests.cs", "*Tests.cs"),
        ("contest.py", ""),
        ("conftest.py", ""),
        ("latest.go", ""),
    ],
)
def test_naming(path: str, shape: str) -> None:
    assert naming(path) == shape
