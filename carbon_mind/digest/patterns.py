"""What this project's code looks like: frameworks, base classes, error classes, how its tests are laid out and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from carbon_mind.counts import by_count
from carbon_mind.digest.architecture import naming
from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe

MAX_FRAMEWORKS = 10
MAX_BASES = 5
MAX_ERRORS = 6
_TYPES = frozenset({"class", "struct", "enum", "interface", "type"})


def patterns(evidence: Evidence) -> tuple[str, ...]:
    """One line for each pattern that there is evidence for."""
    return tuple(line for make in (_frameworks, _bases, _errors, _tests) for line in make(evidence))


def _frameworks(evidence: Evidence) -> Iterator[str]:
    if names := evidence.facts.frameworks[:MAX_FRAMEWORKS]:
        yield "frameworks and tools: " + ", ".join(safe(name, 40) for name in names)


def _bases(evidence: Evidence) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for _, tags in evidence.parsed("source"):
        counts.update(dict(tags.bases))
    common = [(name, count) for name, count in by_count(counts) if count >= 3][:MAX_BASES]
    if common:
        yield "classes derive most from: " + ", ".join(f"{safe(name, 60)} ({count})" for name, count in common)


def _errors(evidence: Evidence) -> Iterator[str]:
    """Those that are used most first."""
    names = {
        definition.name
        for _, tags in evidence.parsed("source")
        for definition in tags.definitions
        if definition.kind in _TYPES and not definition.local and definition.name.endswith(("Error", "Exception"))
    }
    if names:
        uses = Counter(dict.fromkeys(names, 0))
        for _, tags in evidence.parsed("source"):
            uses.update({name: count for name, count in tags.references if name in names})
        shown = [safe(name, 60) for name, _ in by_count(uses)]
        more = f" and {len(shown) - MAX_ERRORS} more" if len(shown) > MAX_ERRORS else ""
        yield "error classes: " + ", ".join(shown[:MAX_ERRORS]) + more


def _tests(evidence: Evidence) -> Iterator[str]:
    tests = [path for path, _ in evidence.parsed("test") if naming(path)]
    if tests:
        total = len(tests)
        named, count = by_count(Counter(map(naming, tests)))[0]
        place, there = by_count(Counter(path.rpartition("/")[0] for path in tests))[0]
        how = f"named {safe(named, 40)}" if count == total else f"{count} named {safe(named, 40)}"
        yield f"tests: {total} file{'s' * (total != 1)}, {how}, most in {safe(place, 80) or '.'}/ ({there})"
