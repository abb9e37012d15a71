"""Names by how often they are there: one order for all sections, ties by name."""

from __future__ import annotations

from collections import Counter


def by_count(counts: Counter[str]) -> list[tuple[str, int]]:
    """(name, count), the highest count first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def most(counts: Counter[str], limit: int) -> tuple[str, ...]:
    """The names with the highest counts."""
    return tuple(name for name, _ in by_count(counts)[:limit])
