"""Critical files: the right ones, with reasons that a person can recount."""

from __future__ import annotations

from carbon_mind.digest.critical import MAX_CRITICAL, MAX_SIGNATURES, MAX_SIGNED_FILES, critical_files
from carbon_mind.evidence import Evidence
from carbon_mind.values import Definition, RankedFile, RepoPath


def test_reasons_that_can_be_recounted() -> None:
    start = Definition("start", "function", 7, "def start() -> None")
    stop = Definition("stop", "function", 9, "def stop() -> None")
    ranked = [
        RankedFile(RepoPath("a.py"), 0.5, 3, ((start, 4), (stop, 2)), imported_by=1),
        RankedFile(RepoPath("tests/t.py"), 0.3, 9),
        RankedFile(RepoPath("b.go"), 0.2, 2, ((stop, 2),), entry=True),
        RankedFile(RepoPath("main.py"), 0.1, 0, entry=True),
        RankedFile(RepoPath("unused.py"), 0.1, 0),
    ]
    found = critical_files(Evidence(ranked=ranked, kinds={RepoPath("tests/t.py"): "test"}))
    assert [(file.path, file.reason, file.signatures) for file in found] == [
        ("a.py", "imported by 1 file; start x4", ("7: def start() -> None", "9: def stop() -> None")),
        ("b.go", "entry point; used by 2 files; stop x2", ("9: def stop() -> None",)),
        ("main.py", "entry point", ()),
    ]


def test_bounds() -> None:
    many = tuple((Definition(f"f{i}", "function", i, f"def f{i}()"), 9) for i in range(MAX_SIGNATURES + 2))
    ranked = [RankedFile(RepoPath(f"f{i:02}.py"), 0.01, 2, many) for i in range(MAX_CRITICAL + 5)]
    found = critical_files(Evidence(ranked=ranked))
    assert len(found) == MAX_CRITICAL
    assert [len(file.signatures) for file in found] == [MAX_SIGNATURES] * MAX_SIGNED_FILES + [0] * (
        MAX_CRITICAL - MAX_SIGNED_FILES
    )
