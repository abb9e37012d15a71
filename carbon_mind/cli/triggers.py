"""`carbon hook` and `carbon watch`: what keeps the digest current without being asked."""

from __future__ import annotations

from pathlib import Path

from carbon_mind import hooks, pipeline
from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.hooks import Hook
from carbon_mind.refresh import LOG, describe
from carbon_mind.repo.scan import locate
from carbon_mind.safety.files import read_regular
from carbon_mind.values import RepoPath


def hook_install(where: Path, *, tracked: bool, outside: bool, json: bool) -> None:
    """Put the hooks in. Raises CarbonError."""
    _print(hooks.install(locate(where).root, hooks.command(), tracked=tracked, outside=outside), json=json)


def hook_remove(where: Path, *, json: bool) -> None:
    """Take the hooks out. Raises CarbonError."""
    _print(hooks.remove(locate(where).root), json=json)


def hook_status(where: Path, *, json: bool) -> None:
    """Show the hooks and the last line of their log. Raises CarbonError."""
    place, settings = place_and_settings(where)
    found = hooks.status(place.root, hooks.command())
    folder = pipeline.find_folder_of(place, settings)
    try:
        last = (
            read_regular(folder.path, RepoPath(LOG), 1 << 20)
            .decode("utf-8", "replace")
            .rstrip("\n")
            .rpartition("\n")[2]
        )
    except OSError:
        last = ""
    _print(found, json=json, last=last)


def _print(found: hooks.Report, *, json: bool, last: str | None = None) -> None:
    for notice in found.notices:
        console.notice(notice)
    if json:
        document = {"folder": str(found.folder), "hooks": [_as_json(hook) for hook in found.hooks]}
        print_json(document if last is None else document | {"last": last})
        return
    for hook in found.hooks:
        console.data(f"{hook.name:<13}  {hook.action or hook.state:<9}  {hook.file}\n")
    for note in sorted({hook.note for hook in found.hooks} - {""}):
        console.notice(note)
    if last:
        console.data(f"last refresh: {last}\n")


def _as_json(hook: Hook) -> dict[str, str]:
    return {"name": hook.name, "state": hook.state, "action": hook.action, "file": str(hook.file), "note": hook.note}


def hook_run(name: str) -> None:
    """One refresh of the current directory; where it changed the prefix, a gateway that runs warms its heads anew."""
    from carbon_mind.refresh import run
    from carbon_mind.settings import Settings

    def changed(settings: Settings) -> str:
        from carbon_mind.cli.serve import refreshed

        return refreshed(settings)

    run(name, changed)


def watch(where: Path, *, debounce: float, poll: bool, budget: int | None, json: bool) -> None:
    """Report every digest until Ctrl-C, which is how one ends it: no failure. Raises CarbonError."""
    import msgspec

    from carbon_mind.watch import watch as minds

    place, settings = place_and_settings(where, budget=budget)
    talk = console.Talk()
    try:
        for mind in minds(
            place,
            settings,
            talk,
            debounce=debounce,
            poll=poll,
            ready=lambda: console.step(f"watching {place.root}; Ctrl-C ends it"),
        ):
            if json:
                document = {
                    name: getattr(mind, name) for name in ("built", "files", "parsed", "seconds", "prefix_changed")
                }
                document["changed"] = None if mind.changes is None else mind.changes.files
                console.data(msgspec.json.encode(document).decode() + "\n")
            else:
                console.data(describe(mind) + "\n")
    except KeyboardInterrupt:
        console.step("watch: ended")
