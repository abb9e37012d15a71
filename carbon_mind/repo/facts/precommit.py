"""pre-commit: all hooks at once, and the formatters that only its settings show."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.python_tools import add_tool, runner
from carbon_mind.repo.facts.text import first_line, numbered
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=(".pre-commit-config.yaml",), under=("",), limit=1)

_REPOS = re.compile(r"^repos\s*:")
_HOOK = re.compile(r"\s*-\s*id\s*:\s*([\w-]+)")
_TOOL_OF_HOOK = {"ruff-format": "ruff-format", "black": "black"}


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of the settings file."""
    found = Found(path)
    line = first_line(text, _REPOS)
    if line:
        found.command("lint", f"{runner(context, path, 'pre-commit')}pre-commit run --all-files", line)
    for number, row in numbered(text):
        match = _HOOK.match(row)
        if match and match.group(1) in _TOOL_OF_HOOK:
            add_tool(found, context, _TOOL_OF_HOOK[match.group(1)], number)
    return found.done()
