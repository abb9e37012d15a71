"""Putting manifests together: root before nested, the table's order, few of each kind, nothing twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from carbon_mind.values import COMMAND_KINDS, Command, Constraint, EntryPoint, ProjectFacts

MAX_OF_A_KIND = 3
MAX_CONSTRAINTS = 40
MAX_CONSTRAINTS_OF_ONE = 10  # of one ecosystem: a dozen pipelines must not push the rest out
MAX_ENTRY_POINTS = 16
MAX_FRAMEWORKS = 24


@dataclass(frozen=True, slots=True)
class Part:
    """One manifest's facts: which ecosystem (by name), and whether the manifest stands at the root."""

    ecosystem: str
    root: bool
    facts: ProjectFacts


def merge(parts: Iterable[Part]) -> ProjectFacts:
    """All facts of a project. A nested manifest adds a command only where its ecosystem's root manifest has none of the
    kind: what the root offers is how the project wants to be built."""
    ordered = list(parts)
    ordered = [part for part in ordered if part.root] + [part for part in ordered if not part.root]
    commands: list[Command] = []
    constraints: dict[str, Constraint] = {}
    entry_points: dict[tuple[str, str], EntryPoint] = {}
    frameworks: dict[str, None] = {}
    seen: set[str] = set()
    commands_of: dict[str, int] = {}
    constraints_of: dict[str, int] = {}
    at_root = {(part.ecosystem, command.kind) for part in ordered if part.root for command in part.facts.commands}
    for part in ordered:
        for command in part.facts.commands:
            offered = not part.root and (part.ecosystem, command.kind) in at_root
            if offered or command.command in seen or commands_of.get(command.kind, 0) >= MAX_OF_A_KIND:
                continue
            seen.add(command.command)
            commands_of[command.kind] = commands_of.get(command.kind, 0) + 1
            commands.append(command)
        for constraint in part.facts.constraints:
            if constraint.text not in constraints and constraints_of.get(part.ecosystem, 0) < MAX_CONSTRAINTS_OF_ONE:
                constraints_of[part.ecosystem] = constraints_of.get(part.ecosystem, 0) + 1
                constraints[constraint.text] = constraint
        for entry in part.facts.entry_points:
            entry_points.setdefault((entry.name, entry.target), entry)
        frameworks.update(dict.fromkeys(part.facts.frameworks))
    return ProjectFacts(
        tuple(sorted(commands, key=lambda command: COMMAND_KINDS.index(command.kind))),
        tuple(constraints.values())[:MAX_CONSTRAINTS],
        tuple(entry_points.values())[:MAX_ENTRY_POINTS],
        tuple(sorted(tuple(frameworks)[:MAX_FRAMEWORKS])),
    )
