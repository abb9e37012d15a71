"""`carbon mcp`."""

from __future__ import annotations

from pathlib import Path

from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings
from carbon_mind.errors import UsageProblem
from carbon_mind.recall import Recall


def run_serve(root: Path) -> None:
    """Serve the repository at `root` until the client closes its end. Raises CarbonError before anything is served."""
    place, settings = place_and_settings(root)
    try:
        from carbon_mind.serve.mcp import serve
    except ModuleNotFoundError as missing:
        raise UsageProblem(
            f"the MCP server needs the package {missing.name}", hint="install it: pip install 'carbon-mind[mcp]'"
        ) from missing
    serve(Recall(place, settings, console.Talk()))
