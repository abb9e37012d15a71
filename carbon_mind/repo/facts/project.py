"""What manifests, build files and tool settings say about a project: exact commands, constraints, entry points.

Each ecosystem is a small module with `WANTS` (which files it reads) and `facts` (what one file says), chosen in the
one table below; the table's order is the order of importance. No evidence, no line: a fact carries `path:line` of what
shows it, and a manifest that cannot be understood gives nothing. Nothing is executed; only `read` touches files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from carbon_mind.repo.facts import (
    boundaries,
    cargo,
    ci,
    containers,
    dotnet,
    elixir,
    golang,
    jvm,
    make,
    native,
    node,
    php,
    precommit,
    python_config,
    python_envs,
    python_project,
    recipes,
    ruby,
    rules,
    runtimes,
    scripts,
    vendored,
)
from carbon_mind.repo.facts.context import Context, Wants, directory
from carbon_mind.repo.facts.merge import Part, merge
from carbon_mind.repo.facts.name import project_name
from carbon_mind.repo.facts.restated import not_restated
from carbon_mind.safety import block
from carbon_mind.values import ProjectFacts, RepoPath

__all__ = ["ECOSYSTEMS", "Ecosystem", "project_facts"]


class Ecosystem(Protocol):
    """A module that understands one kind of manifest."""

    @property
    def WANTS(self) -> Wants:  # noqa: N802 - a module's constant
        """Which files `facts` is called for."""

    def facts(self, path: RepoPath, text: str, context: Context) -> ProjectFacts:
        """What one file says; never raises, whatever the text is."""


ECOSYSTEMS: dict[str, Ecosystem] = {
    "make": make,
    "recipes": recipes,
    "node": node,
    "python": python_project,
    "python-config": python_config,
    "python-envs": python_envs,
    "cargo": cargo,
    "go": golang,
    "native": native,
    "jvm": jvm,
    "ruby": ruby,
    "php": php,
    "dotnet": dotnet,
    "elixir": elixir,
    "scripts": scripts,
    "pre-commit": precommit,
    "runtimes": runtimes,
    "containers": containers,
    "vendored": vendored,
    "boundaries": boundaries,
    "rules": rules,
    "ci": ci,
}


def project_facts(paths: Sequence[RepoPath], read: Callable[[RepoPath], str | None]) -> ProjectFacts:
    """Facts of a project from its file list; `read` gives a file's text, or None when it may not or cannot be read."""
    context = Context(paths, read)
    merged = merge(part for name, ecosystem in ECOSYSTEMS.items() for part in _parts(name, ecosystem, context))
    named = replace(merged, name=project_name(context.text))
    return not_restated(named, context.text(block.AGENTS) or "")


def _parts(name: str, ecosystem: Ecosystem, context: Context) -> Iterator[Part]:
    wants = ecosystem.WANTS
    if wants.tree:
        yield Part(name, True, ecosystem.facts(RepoPath(""), "", context))
    for path in context.choose(wants):
        text = context.text(path)
        if text is not None:
            root = not directory(path) or directory(path) in wants.under
            yield Part(name, root, ecosystem.facts(path, text, context))
