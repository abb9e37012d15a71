"""`carbon store list|verify|gc|purge`."""

from __future__ import annotations

import sys
import time

from carbon_mind.cli import console
from carbon_mind.cli.common import print_json, settings_only
from carbon_mind.errors import SnapshotRejected, StorageProblem
from carbon_mind.safety.text import clean
from carbon_mind.serve.records import forget_all
from carbon_mind.store import notes
from carbon_mind.store.format import Header
from carbon_mind.store.states import Entry, Store, name_of

_LABEL = 60  # characters of a label that are shown


def _open() -> Store:
    settings = settings_only()
    return Store(settings.snapshots, settings.store_budget_mib << 20)


def _label(header: Header | None, name: str) -> str:
    return clean(dict(header.labels).get(name, ""), limit=_LABEL) if header is not None else ""


def run_list(*, json: bool) -> None:
    """Everything in the store, most recently used first. Raises StorageProblem."""
    store = _open()
    rows = [(entry, store.header(entry.name)) for entry in reversed(store.entries())]
    if json:
        print_json(
            {
                "folder": str(store.folder),
                "bytes": store.size(),
                "budget": store.budget,
                "snapshots": [_as_json(entry, header) for entry, header in rows],
                "set_aside": store.rejected(),
                "unfinished": store.unfinished(),
            }
        )
        return
    now = time.time_ns()
    cells = [
        (
            entry.name[:12],
            _label(header, "model") or "(cannot be read)",
            _label(header, "layer"),
            _label(header, "repository"),
            f"{header.start:,}-{len(header.tokens):,}" if header is not None else "",
            f"{entry.size / 1e6:,.1f} MB",
            str(entry.hits),
            _age((now - entry.used_ns) / 1e9),
        )
        for entry, header in rows
    ]
    console.data(console.table(("name", "model", "layer", "repository", "tokens", "size", "hits", "last use"), cells))
    aside = len(store.rejected()) + len(store.unfinished())
    console.step(
        f"{len(rows)} snapshots, {store.size() / 1e6:,.1f} MB of {store.budget / 1e6:,.0f} MB in {store.folder}"
        + (f"; {aside} files set aside or unfinished: `carbon store gc` removes them" if aside else "")
    )


def _as_json(entry: Entry, header: Header | None) -> dict[str, object]:
    found: dict[str, object] = {
        "name": entry.name,
        "bytes": entry.size,
        "hits": entry.hits,
        "used_ns": entry.used_ns,
        "readable": header is not None,
    }
    if header is not None:
        found |= {"start": header.start, "tokens": len(header.tokens), "layers": header.layers}
        found |= {"labels": dict(header.labels), "identity": header.identity}
    return found


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"


def run_verify(*, json: bool) -> None:
    """Check every snapshot. What is damaged is set aside; exit code 6 when there was any. Raises StorageProblem."""
    store = _open()
    talk = console.Talk()
    progress = talk.progress("verifying")
    entries = store.entries()
    total, done, bad, old = sum(entry.size for entry in entries), 0, {}, []
    for entry in entries:
        try:
            store.verify(entry.name)
        except SnapshotRejected as damaged:
            header = store.header(entry.name)
            if header is not None and not header.identity.prompt and name_of(header) != entry.name:
                old.append(entry.name)  # whole, and of a format that is not used any more
            else:
                bad[entry.name] = damaged.message
                store.reject(entry.name)
        except OSError as unreadable:
            bad[entry.name] = f"cannot be read: {unreadable.strerror}"
        done += entry.size
        progress(done, total)
    talk.close()
    good = len(entries) - len(bad) - len(old)
    if json:
        print_json({"verified": good, "old": old, "damaged": bad, "bytes": total, "unfinished": store.unfinished()})
    else:
        for name, reason in bad.items():
            console.data(f"damaged {name[:12]}: {reason}\n")
        console.data(f"store: {good} snapshots are whole ({total / 1e6:,.1f} MB read), {len(bad)} damaged\n")
        if old:
            console.step(f"{len(old)} snapshots have an old format: `carbon store gc` removes them")
        if waste := len(store.unfinished()) + len(store.rejected()):
            console.step(f"{waste} files are set aside or unfinished: `carbon store gc` removes them")
    if bad:
        sys.exit(StorageProblem.exit_code)


def _removed(store: Store, removed: dict[str, int], *, json: bool) -> None:
    notes.tidy(store)
    if json:
        print_json({"removed": removed, "bytes": sum(removed.values()), "left": store.size()})
    else:
        console.data(
            f"store: removed {len(removed)} files, {sum(removed.values()) / 1e6:,.1f} MB; "
            f"{len(store.entries())} snapshots, {store.size() / 1e6:,.1f} MB are left\n"
        )


def run_gc(*, json: bool) -> None:
    """Remove what nobody can use, and what is over budget. Raises StorageProblem."""
    store = _open()
    _removed(store, store.collect(), json=json)


def run_purge(*, model: str | None, repository: str | None, json: bool) -> None:
    """Remove the chosen snapshots, all of them by default. Raises StorageProblem."""
    store = _open()

    def chosen(entry: Entry) -> bool:
        header = store.header(entry.name)
        labels = dict(header.labels) if header is not None else {}
        fits = model is None or model.lower() in labels.get("model", "").lower()
        return fits and (repository is None or repository == labels.get("repository"))

    removed = store.purge(chosen)
    if model is None and repository is None:
        notes.clear(store)
        forget_all(settings_only().cache / "gateway")
    _removed(store, removed, json=json)
