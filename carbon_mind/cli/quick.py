"""The command lines that run before every session and after every commit, parsed without typer.

typer and what it imports take a quarter of the time of a current `carbon mind`. So its plain forms are recognised here; everything
else, mistakes included, is typer's, and both lead to the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_FLAGS = {
    "--print": "show",
    "--json": "json",
    "--write-agents": "write_agents",
    "--full": "full",
    "--check": "check",
}

_OTHERS = frozenset({"list", "lookup", "show", "status"})
"""Commands below `mind` that are typer's."""


def run(arguments: Sequence[str]) -> bool:
    """Run the command if it is one of the plain forms; false when it is not."""
    if "_CARBON_COMPLETE" in os.environ:
        return False
    if len(arguments) == 3 and arguments[:2] == ["hook", "run"] and not arguments[2].startswith("-"):
        from carbon_mind.cli.triggers import hook_run as run_hook

        run_hook(arguments[2])
        return True
    flags = [argument for argument in arguments[1:] if argument in _FLAGS]
    paths = [argument for argument in arguments[1:] if argument not in _FLAGS]
    if paths[:1] == ["build"]:
        del paths[0]
    elif paths[:1] and paths[0] in _OTHERS:
        return False
    if list(arguments[:1]) != ["mind"] or len(paths) > 1 or any(not path or path.startswith("-") for path in paths):
        return False
    from carbon_mind.cli import mind

    given: dict[str, Any] = {_FLAGS[flag]: True for flag in flags}
    mind.run(mind.Request(Path(*paths), **given))
    return True
