"""The budget is never exceeded, whatever counts, and what goes first is what is worth least."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from carbon_mind.digest.bound import token_bound
from carbon_mind.digest.budget import fit
from carbon_mind.digest.render import to_markdown
from carbon_mind.values import (
    Command,
    Constraint,
    Coverage,
    CriticalFile,
    Digest,
    EntryPoint,
    KnownBug,
    Module,
    RepoPath,
)

DIGEST = Digest(
    name="sample",
    commands=tuple(Command("test", f"pytest tests/part{i}", f"tox.ini:{i}") for i in range(9)),
    constraints=tuple(Constraint(f"Python >=3.{i}", f"pyproject.toml:{i}") for i in range(9)),
    entry_points=tuple(EntryPoint(f"tool{i}", f"sample.tool{i}:main", "pyproject.toml:3") for i in range(9)),
    architecture=tuple(Module(f"part{i}", 3 + i, ("python", "c"), ("part0",)) for i in range(9)),
    critical_files=tuple(
        CriticalFile(RepoPath(f"sample/file{i}.py"), f"used by {i} files", (f"1: def f{i}()", f"7: class A{i}(B)"))
        for i in range(9)
    ),
    patterns=tuple(f"pattern number {i} is a longer line" for i in range(9)),
    known_bugs=tuple(KnownBug(f"sample/file{i}.py:{i}", "FIXME", "this does not work as it should") for i in range(9)),
    coverage=Coverage(10, 5),
)
COUNTERS: list[Callable[[str], int]] = [token_bound, lambda text: len(text) // 3, lambda text: len(text.split())]


WORTH = ("Commands", "Constraints", "Entry points", "Architecture", "Critical files", "Known bugs", "Patterns")
"""Sections in the order in which they are worth their tokens: not that of the text, which goes from stable to volatile."""


def section(title: str) -> str:
    """The name of a title line."""
    return title.removeprefix("## ").split(" (")[0]


def lines(markdown: str) -> list[str]:
    """All but the blank ones, which are no entries."""
    return [line for line in markdown.splitlines() if line]


@pytest.mark.parametrize("count", COUNTERS)
def test_never_over_and_entries_stay_whole(count: Callable[[str], int]) -> None:
    whole = lines(to_markdown(DIGEST))
    before: list[str] = []
    for budget in range(100, 2001):
        found = fit(DIGEST, budget, count)
        assert count(found.markdown) == found.tokens <= budget
        if (now := lines(found.markdown)) == before:
            continue
        assert found.markdown == to_markdown(found.digest), "what is stored is what is shown"
        assert [line for line in whole if line in set(now)] == now, "each line is a line of the whole, in its order"
        assert set(before) <= set(now), "more budget never takes a line away"
        titles = {section(line) for line in now if line.startswith("## ")}
        assert titles == {*WORTH[: len(titles)]}, "the section of least worth goes first"
        assert found.digest.coverage == DIGEST.coverage
        before = now
    assert before == whole


def test_each_entry_goes_alone_and_the_last_first() -> None:
    """With a counter that counts entries, every budget holds exactly the first ones."""

    def entries(text: str) -> int:
        return sum(line.lstrip().startswith("- ") for line in text.splitlines())

    shown, inside = [], {name: list[str]() for name in WORTH}
    for line in lines(to_markdown(DIGEST)):
        if line.startswith("## "):
            title = section(line)
        elif line.lstrip().startswith("- "):
            shown.append(line)
            inside[title].append(line)
    # A signature stands below its file and goes before the last file does.
    inside["Critical files"].sort(key=lambda line: line.startswith("  - "))
    worth = [line for name in WORTH for line in inside[name]]
    assert sorted(worth) == sorted(shown)
    for budget in range(len(worth) + 1):
        found = [line for line in lines(fit(DIGEST, budget, entries).markdown) if line.lstrip().startswith("- ")]
        assert sorted(found) == sorted(worth[:budget])
        assert [line for line in found if line.startswith("- ")] == [
            line for line in shown if line.startswith("- ") and line in set(worth[:budget])
        ]
    assert fit(DIGEST, 10_000, entries).digest == DIGEST


def test_nothing_fits() -> None:
    found = fit(DIGEST, 0, len)
    assert (found.markdown, found.tokens) == ("", 0)
    assert found.digest.commands == ()
    title = to_markdown(Digest("sample"))
    assert fit(DIGEST, len(title), len).markdown == title
    assert fit(DIGEST, len(title) - 1, len).markdown == ""


def test_a_counter_that_goes_up_and_down_cannot_break_the_limit() -> None:
    """Tokenizers are not monotonic: one more line may merge into fewer tokens."""
    for budget in (10, 37, 99):
        found = fit(DIGEST, budget, lambda text: (len(text) * 7919) % 101)
        assert found.tokens <= budget
        assert (len(found.markdown) * 7919) % 101 == found.tokens
