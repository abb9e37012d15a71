"""Facts to digest: pick, order and word what is worth its tokens. Selection only; nothing is measured or guessed here.

The order is that of the digest: what an agent cannot see in one read comes first, because truncation takes from the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from carbon_mind.counts import by_count
from carbon_mind.digest.architecture import modules
from carbon_mind.digest.bugs import known_bugs
from carbon_mind.digest.critical import critical_files
from carbon_mind.digest.patterns import patterns
from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe
from carbon_mind.values import Command, Constraint, Coverage, Digest, EntryPoint

MAX_CONSTRAINTS = 16
MAX_ENTRY_POINTS = 10
MAX_SUFFIXES = 8
MAX_COMMAND = 160  # characters; a longer one is left out, because a command that is cut is another command


def build(evidence: Evidence) -> Digest:
    """The whole digest, before any budget. Every text in it is safe to print and to put into a prompt."""
    facts = evidence.facts
    return Digest(
        name=safe(facts.name, 60),
        commands=tuple(
            Command(command.kind, shown, safe(command.source, 160))
            for command in facts.commands
            if len(shown := safe(command.command)) <= MAX_COMMAND
        ),
        constraints=tuple(
            Constraint(safe(c.text, 160), safe(c.source, 160)) for c in facts.constraints[:MAX_CONSTRAINTS]
        ),
        entry_points=tuple(
            EntryPoint(safe(e.name, 80), safe(e.target, 120), safe(e.source, 160))
            for e in facts.entry_points[:MAX_ENTRY_POINTS]
        ),
        architecture=modules(evidence),
        critical_files=critical_files(evidence),
        known_bugs=known_bugs(evidence),
        patterns=patterns(evidence),
        coverage=Coverage(
            files=len(evidence.files),
            parsed=sum(1 for found in evidence.tags.values() if not found.degraded),
            skipped=tuple(sorted(Counter(item.reason for item in evidence.skipped).items())),
            without_grammar=_suffixes(evidence.without_grammar),
            outlined=evidence.outlined,
        ),
    )


def _suffixes(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """A suffix is text of the repository like any other; two that look alike once cleaned count as one."""
    cleaned: Counter[str] = Counter()
    for suffix, count in counts.items():
        cleaned[safe(suffix, 20)] += count
    return tuple(by_count(cleaned)[:MAX_SUFFIXES])
