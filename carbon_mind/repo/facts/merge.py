"""Putting manifests together: root before nested, the table's order, few of each kind, nothing twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from carbon_mind.values import COMMAND_KINDS, Command, Constraint, EntryPoint, ProjectFacts

MAX_OF_A_KIND = 2
MAX_CONSTRAINTS = 40
MAX_CONSTRAINTS_OF_ONE = 10  # of one ecosystem: a dozen pipelines must not push the rest out
MAX_OF_A_SUBJECT = 2  # nested versions of one runtime
MAX_ENTRY_POINTS = 16
MAX_FRAMEWORKS = 24

# `uv run tox -e py` after `uv run pytest`: both bring their environment, so the second only takes longer.
_WRAPPED = re.compile(r"(?:uv|poetry|pdm|pipenv|hatch) run (?:--?\S+ \S+ )*(?:tox|nox)\b")
_TOX = re.compile(r"(?:^| )tox -e ")
_DIRECT = re.compile(r"(?:uv|poetry|pdm|pipenv|hatch) ")
_TESTS = frozenset({"test", "test-one"})
_NESTED = re.compile(r"(?P<subject>[^\d<>=~^*]+).* \(in \S+/\)\Z")  # as `Found.constraint` writes it


@dataclass(frozen=True, slots=True)
class Part:
    """One manifest's facts: which ecosystem (by name), and whether the manifest stands at the root."""

    ecosystem: str
    root: bool
    facts: ProjectFacts


def merge(parts: Iterable[Part]) -> ProjectFacts:
    """All facts of a project. What the root offers is how the project wants to be built: a nested manifest adds tests
    only where its ecosystem's root manifest has none, and another kind of command only where the root has none at all."""
    ordered = list(parts)
    ordered = [part for part in ordered if part.root] + [part for part in ordered if not part.root]
    entry_points: dict[tuple[str, str], EntryPoint] = {}
    frameworks: dict[str, None] = {}
    for part in ordered:
        for entry in part.facts.entry_points:
            entry_points.setdefault((entry.name, entry.target), entry)
        frameworks.update(dict.fromkeys(part.facts.frameworks))
    # `python -m flask` starts what `flask` starts.
    again = {f"python -m {name}" for name, _ in entry_points}
    entries = [entry for entry in entry_points.values() if entry.name not in again]
    return ProjectFacts(
        _commands(ordered),
        _constraints(ordered),
        tuple(entries[:MAX_ENTRY_POINTS]),
        tuple(sorted(tuple(frameworks)[:MAX_FRAMEWORKS])),
    )


def _commands(parts: Sequence[Part]) -> tuple[Command, ...]:
    offered = {(part.ecosystem, command.kind) for part in parts if part.root for command in part.facts.commands}
    kinds = {kind for _, kind in offered}
    chosen: dict[str, Command] = {}
    for part in parts:
        for command in part.facts.commands:
            tests = command.kind in _TESTS
            there = (part.ecosystem, command.kind) in offered if tests else command.kind in kinds
            if part.root or not there:
                chosen.setdefault(command.command, command)
    direct = {c.kind for c in chosen.values() if _DIRECT.match(c.command) and not _WRAPPED.match(c.command)}
    kept: list[Command] = []
    for kind in COMMAND_KINDS:
        of_kind = [c for c in chosen.values() if c.kind == kind]
        if kind in direct:
            of_kind = [c for c in of_kind if not _WRAPPED.match(c.command)]
        if kind == "test-one" and any(not _TOX.search(c.command) and "pytest" in c.command for c in of_kind):
            of_kind = [c for c in of_kind if not _TOX.search(c.command)]
        kept += of_kind[:MAX_OF_A_KIND]
    return tuple(kept)


def _constraints(parts: Sequence[Part]) -> tuple[Constraint, ...]:
    chosen: dict[str, Constraint] = {}
    of_ecosystem: Counter[str] = Counter()
    of_subject: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for constraint in part.facts.constraints:
            if constraint.text in chosen or of_ecosystem[part.ecosystem] >= MAX_CONSTRAINTS_OF_ONE:
                continue
            if match := _NESTED.match(constraint.text):
                subject = (part.ecosystem, match.group("subject"))
                of_subject[subject] += 1
                if of_subject[subject] > MAX_OF_A_SUBJECT:
                    continue
            of_ecosystem[part.ecosystem] += 1
            chosen[constraint.text] = constraint
    return tuple(chosen.values())[:MAX_CONSTRAINTS]
