"""`carbon trust`: look at what steers an agent in a repository, then let its mind be shown, or not."""

from __future__ import annotations

import os
import time
from pathlib import Path

from carbon_mind import settings
from carbon_mind.cli import console
from carbon_mind.cli.common import print_json
from carbon_mind.errors import NotARepository, UsageProblem
from carbon_mind.repo.scan import locate, scan
from carbon_mind.repo.shipped import shipped
from carbon_mind.safety.safe import safe
from carbon_mind.safety.text import clean
from carbon_mind.safety.trust import KINDS, Trust, described, kind_of, surface, verdict

SHOWN = 200


def trust_list() -> Trust:
    """The user's list, in a folder of its own beside the settings."""
    return Trust(settings.trust_folder())


def run(where: Path, *, list_all: bool, revoke: bool, json: bool) -> None:
    """Show and trust, list, or take back. Raises CarbonError."""
    if list_all and revoke:
        raise UsageProblem(
            "--list and --revoke exclude each other", hint="`carbon trust --list` shows what can be revoked"
        )
    if list_all:
        _list(json=json)
    elif revoke:
        _revoke(where, json=json)
    else:
        _trust(where, json=json)


def _trust(where: Path, *, json: bool) -> None:
    seen = scan(locate(where))
    paths = shipped(seen)
    trusted = trust_list()
    before = verdict(seen.root, paths, trusted)
    rows = [(path, kind_of(path), _size(seen.root, path)) for path in surface(paths)]
    new = trusted.trust(seen.root)
    root = clean(str(seen.root))
    if json:
        print_json(
            {
                "root": root,
                "trusted": True,
                "before": before.reason,
                "counts": dict(before.counts),
                "surface": [{"path": safe(path, 1000), "class": kind, "size": size} for path, kind, size in rows],
            }
        )
        return
    if rows:
        order = sorted(rows, key=lambda row: KINDS.index(row[1] or "agent"))
        cells = [(safe(path, 160), str(kind), f"{size:,}" if size is not None else "?") for path, kind, size in order]
        console.data(console.table(("path", "class", "bytes"), cells[:SHOWN]))
        if len(cells) > SHOWN:
            console.data(f"... and {len(cells) - SHOWN:,} more\n")
    found = described(before.counts) or "nothing that steers an agent"
    console.data(f"{'trusted' if new else 'trusted already'}: {root} ({found})\n")
    if rows and new:
        console.step(
            "its mind is shown from now on, also when these files change; `carbon trust --revoke` takes it back"
        )


def _size(root: Path, path: str) -> int | None:
    try:
        return os.lstat(root / path).st_size
    except (OSError, ValueError):
        return None


def _revoke(where: Path, *, json: bool) -> None:
    try:
        root = locate(where).root
    except NotARepository:  # trust outlives a folder that is gone, and can still be taken back
        root = where
    gone = trust_list().revoke(root)
    name = clean(os.path.realpath(root))
    if json:
        print_json({"root": name, "revoked": gone})
    else:
        console.data(f"{'not trusted any more' if gone else 'was not trusted'}: {name}\n")


def _list(*, json: bool) -> None:
    trusted = trust_list()
    rows = trusted.all()
    if problem := trusted.problem():
        console.notice(f"{trusted.file} cannot be believed, so nothing is trusted: {clean(problem)}")
    if json:
        print_json([{"root": clean(root), "when": when, "there": Path(root).is_dir()} for root, when in rows])
        return
    cells = [
        (clean(root), time.strftime("%Y-%m-%d", time.gmtime(when)), "" if Path(root).is_dir() else "gone")
        for root, when in rows
    ]
    console.data(console.table(("repository", "since", ""), cells) if cells else "no repository is trusted by name\n")
