"""`carbon mcp serve|install|remove`."""

from __future__ import annotations

from pathlib import Path

from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.errors import UsageProblem
from carbon_mind.recall import Recall
from carbon_mind.repo.scan import locate, scan
from carbon_mind.repo.shipped import shipped
from carbon_mind.safety.trust import Trust, verdict
from carbon_mind.serve import clients
from carbon_mind.settings import trust_folder


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


def run_install(client: str, where: Path, *, dry_run: bool, json: bool) -> None:
    """Put our entry into the client's file. Raises CarbonError."""
    chosen = clients.client_of(client)
    place = locate(where)
    trust = Trust(trust_folder())
    before = verdict(place.root, shipped(scan(place)), trust)
    result = clients.install(chosen, place.root, dry_run=dry_run)
    if chosen.project and before.reason == "no surface" and result.outcome != "unchanged" and not dry_run:
        trust.trust(place.root)  # what steers an agent there now is what the user has just asked for
    _report(chosen, result, dry_run=dry_run, json=json)


def run_remove(client: str, where: Path, *, dry_run: bool, json: bool) -> None:
    """Take it out again. Raises CarbonError."""
    chosen = clients.client_of(client)
    _report(chosen, clients.remove(chosen, locate(where).root, dry_run=dry_run), dry_run=dry_run, json=json)


def _report(client: clients.Client, result: clients.Result, *, dry_run: bool, json: bool) -> None:
    if json:
        print_json({"client": client.name, "file": str(result.file), "outcome": result.outcome, "diff": result.diff})
        return
    if dry_run and result.diff:
        console.data(result.diff)
    would = "would be " if dry_run and result.diff else ""
    told = {"unchanged": "has the entry already", "absent": "has no entry of carbon"}.get(
        result.outcome, f"{would}{result.outcome}"
    )
    console.step(f"{client.title}: {result.file} {told}")
