"""Patterns: one line each, only where there is evidence."""

from __future__ import annotations

from carbon_mind.digest.patterns import MAX_ERRORS, MAX_FRAMEWORKS, patterns
from carbon_mind.evidence import Evidence
from carbon_mind.values import Definition, ProjectFacts, RepoPath, Tags


def test_nothing_gives_nothing() -> None:
    assert patterns(Evidence(tags={RepoPath("a.py"): Tags("python")})) == ()


def test_frameworks_are_bounded() -> None:
    facts = ProjectFacts(frameworks=tuple(f"f{i:02}" for i in range(30)))
    (line,) = patterns(Evidence(facts=facts))
    assert line == "frameworks and tools: " + ", ".join(f"f{i:02}" for i in range(MAX_FRAMEWORKS))


def test_bases_and_errors_by_use() -> None:
    def error(name: str, **more: bool) -> Definition:
        return Definition(name, "class", 1, f"class {name}", **more)

    errors = [error(f"E{i}Error") for i in range(MAX_ERRORS + 1)]
    tags = {
        RepoPath("a.py"): Tags("python", (*errors, error("HiddenError", local=True)), bases=(("Base", 2), ("Rare", 1))),
        RepoPath("b.py"): Tags("python", references=(("E3Error", 5), ("HiddenError", 9)), bases=(("Base", 1),)),
        RepoPath("tests/t.py"): Tags("python", (error("TestOnlyError"),), (("E2Error", 50),), bases=(("Rare", 9),)),
    }
    found = patterns(Evidence(tags=tags, kinds={RepoPath("tests/t.py"): "test"}))
    assert found == (
        "classes derive most from: Base (3)",
        "error classes: E3Error, E0Error, E1Error, E2Error, E4Error, E5Error and 1 more",
    )


def test_layout_and_naming_of_tests() -> None:
    paths = ["tests/test_a.py", "tests/test_b.py", "tests/deep/c_test.py", "tests/conftest.py"]
    tags = {RepoPath(path): Tags("python") for path in paths}
    kinds = {RepoPath(path): "test" for path in paths}
    assert patterns(Evidence(tags=tags, kinds=kinds)) == ("tests: 3 files, 2 named test_*.py, most in tests/ (2)",)
