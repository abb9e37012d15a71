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
        titles = [line for line in now if line.startswith("## ")]
        assert titles == [line for line in whole if line.startswith("## ")][: len(titles)], "sections go from the end"
        assert found.digest.coverage == DIGEST.coverage
        before = now
    assert before == whole


def test_each_entry_goes_alone_and_the_last_first() -> None:
    """With a counter that counts entries, every budget holds exactly the first ones."""

    def entries(text: str) -> int:
        return sum(line.lstrip().startswith("- ") for line in text.splitlines())

    shown = [line for line in lines(to_markdown(DIGEST)) if line.lstrip().startswith("- ")]
    # A signature stands below its file and goes before the last file does.
    files = [line for line in shown if "(used by" in line]
    signatures = [line for line in shown if line.startswith("  - ")]
    first, last = shown.index(files[0]), shown.index(signatures[-1])
    worth = [*shown[:first], *files, *signatures, *shown[last + 1 :]]
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
