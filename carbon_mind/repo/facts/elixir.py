"""Elixir: mix.exs, with the formatter's settings file and Credo."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, join
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import first_line, numbered, version, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("mix.exs",), limit=4)

FRAMEWORKS = words("phoenix phoenix_live_view ecto ecto_sql absinthe nerves oban broadway plug")
_PROJECT = re.compile(r"^\s*def\s+project\b")
_ELIXIR = re.compile(r"""\belixir:\s*"([^"]{1,40})\"""")
_DEPENDENCY = re.compile(r"\s*\[?\s*\{:(\w{1,60}),")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one mix.exs."""
    found = Found(path)
    line = first_line(text, _PROJECT)
    if not line:
        return found.done()
    found.command("build", "mix compile", line)
    if any(file.endswith("_test.exs") for file in context.below(join(found.directory, "test"))):
        found.command("test", "mix test", line)
        found.command("test-one", "mix test path/to/file_test.exs:LINE", line)
    if context.has(join(found.directory, ".formatter.exs")):
        found.command("format", "mix format", 0, join(found.directory, ".formatter.exs"))
    for number, row in numbered(text):
        if (match := _ELIXIR.search(row)) and (spec := version(match.group(1))):
            found.constraint(f"Elixir {spec}", number, where=True)
        if match := _DEPENDENCY.match(row):
            name = match.group(1)
            if name in FRAMEWORKS:
                found.framework(name)
            if name == "credo":
                found.command("lint", "mix credo", number)
            if name == "dialyxir":
                found.command("typecheck", "mix dialyzer", number)
            if name == "phoenix":
                found.command("run", "mix phx.server", number)
    return found.done()
