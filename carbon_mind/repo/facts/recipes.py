"""Recipe runners beside make: just and Task. Names only; a recipe that needs arguments is left out."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.text import numbered, word
from carbon_mind.repo.facts.yaml_tree import Fields, at, parse_yaml
from carbon_mind.repo.facts.yaml_tree import text as flag
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=("justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml"), limit=4
)

_JUST = re.compile(r"@?([A-Za-z_][\w-]*)((?: +[^\s:]+)*) *:(?!=)")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """`just X` or `task X` for each recipe whose name tells what it is for."""
    found = Found(path)
    task = "taskfile" in path.lower()
    names = _tasks(text) if task else _recipes(text)
    for kind, name in ranked(names):
        found.command(kind, f"{'task' if task else 'just'} {name}", names[name])
    return found.done()


def _recipes(text: str) -> dict[str, int]:
    names: dict[str, int] = {}
    for number, row in numbered(text):
        match = _JUST.match(row)
        if (
            match
            and not match.group(1).startswith("_")
            and all("=" in part or part.startswith("*") for part in match.group(2).split())
        ):
            names.setdefault(match.group(1), number)
    return names


def _tasks(text: str) -> dict[str, int]:
    tasks = at(parse_yaml(text), "tasks")
    if not isinstance(tasks, Fields):
        return {}
    hidden = {name for name, task in tasks.fields.items() if flag(at(task, "internal")) == "true"}
    return {name: tasks.lines[name] for name in tasks.fields if word(name) and name not in hidden}
