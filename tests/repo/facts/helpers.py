"""A repository written in a test: a dict of path -> text."""

from __future__ import annotations

from collections.abc import Mapping

from carbon_mind.repo.facts.project import project_facts
from carbon_mind.values import Command, Constraint, EntryPoint, ProjectFacts, RepoPath

__all__ = ["Command", "Constraint", "EntryPoint", "ProjectFacts", "commands", "constraints", "entries", "facts_of"]


def facts_of(files: Mapping[str, str]) -> ProjectFacts:
    """Facts of a repository that consists of these files."""
    return project_facts([RepoPath(path) for path in sorted(files)], files.get)


def commands(files: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(kind, command, source) of each command."""
    return [(command.kind, command.command, command.source) for command in facts_of(files).commands]


def constraints(files: Mapping[str, str]) -> list[tuple[str, str]]:
    """(text, source) of each constraint."""
    return [(constraint.text, constraint.source) for constraint in facts_of(files).constraints]


def entries(files: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(name, target, source) of each entry point."""
    return [(entry.name, entry.target, entry.source) for entry in facts_of(files).entry_points]
