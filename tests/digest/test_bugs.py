"""Known bugs: what counts as one, and which come first."""

from __future__ import annotations

from carbon_mind.digest.bugs import MAX_BUGS, MAX_TESTS, known_bugs
from carbon_mind.evidence import Evidence
from carbon_mind.values import Marker, RankedFile, RepoPath, Tags

TEST = RepoPath("tests/t.py")


def marked(*markers: Marker) -> Tags:
    return Tags("python", markers=markers)


def found(tags: dict[RepoPath, Tags], *ranked: RankedFile) -> list[tuple[str, str]]:
    return [(bug.source, bug.tag) for bug in known_bugs(Evidence(tags=tags, ranked=ranked, kinds={TEST: "test"}))]


def test_sorted_by_what_they_say_and_where() -> None:
    tags = {
        RepoPath("low.py"): marked(Marker("HACK", 1, "ugly"), Marker("BUG", 2, "breaks")),
        RepoPath("high.py"): marked(
            Marker("XXX", 5, "unsure"), Marker("FIXME", 6, "fix"), Marker("FIXME", 8, "\u200b ")
        ),
    }
    ranked = RankedFile(RepoPath("high.py"), 0.9, 1), RankedFile(RepoPath("low.py"), 0.1, 1)
    assert found(tags, *ranked) == [
        ("high.py:6", "FIXME"),
        ("low.py:2", "BUG"),
        ("high.py:5", "XXX"),
        ("low.py:1", "HACK"),
    ]


def test_a_test_may_be_switched_off_and_code_may_be_broken_but_not_the_other_way_round() -> None:
    tags = {
        TEST: marked(Marker("BUG", 1, "in a test"), Marker("SKIP", 2, "test_a"), Marker("XFAIL", 3, "test_b: slow")),
        RepoPath("a.py"): marked(Marker("SKIP", 1, "helper"), Marker("HACK", 2, "ugly")),
    }
    assert found(tags) == [("tests/t.py:3", "XFAIL"), ("a.py:2", "HACK"), ("tests/t.py:2", "SKIP")]


def test_a_test_weighs_as_much_as_what_it_leans_on() -> None:
    other = RepoPath("tests/u.py")
    tags = {TEST: marked(Marker("XFAIL", 1, "test_a")), other: marked(Marker("XFAIL", 1, "test_b"))}
    ranked = (
        RankedFile(RepoPath("a.py"), 0.9, 1),
        RankedFile(other, 0.01, 0, depends_on=(RepoPath("a.py"),)),
        RankedFile(TEST, 0.05, 0),
    )
    bugs = known_bugs(Evidence(tags=tags, ranked=ranked, kinds={TEST: "test", other: "test"}))
    assert [bug.source for bug in bugs] == ["tests/u.py:1", "tests/t.py:1"]


def test_bounds() -> None:
    many = {RepoPath("a.py"): marked(*(Marker("BUG", i, f"b{i}") for i in range(1, 40)))}
    assert found(many) == [(f"a.py:{i}", "BUG") for i in range(1, MAX_BUGS + 1)]
    tests = {TEST: marked(*(Marker("SKIP", i, f"t{i}") for i in range(1, 40)))}
    assert found(tests) == [(f"tests/t.py:{i}", "SKIP") for i in range(1, MAX_TESTS + 1)]
