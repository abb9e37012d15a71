"""`carbon mind` and `carbon mind --check`, apart from how their flags are parsed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from carbon_mind import opening, pipeline
from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.errors import CarbonError, UsageProblem
from carbon_mind.refresh import describe
from carbon_mind.settings import Settings

SHOWN = 20
SHOWN_JSON = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """The command line of `carbon mind`."""

    where: Path = Path()
    show: bool = False
    json: bool = False
    budget: int | None = None
    model: str | None = None
    write_agents: bool = False
    full: bool = False
    check: bool = False
    enrich: bool = False
    no_words: bool = False


def run(request: Request) -> None:
    """Build and report, or check. Raises CarbonError; a check ends the process with its own exit codes."""
    if request.check:
        _check(request)
    if request.show and request.json:
        raise UsageProblem(
            "--print and --json exclude each other", hint="mind.json and mind.md are both in .carbon/mind/"
        )
    place, settings = place_and_settings(request.where, budget=request.budget, model=request.model)
    talk = console.Talk()
    counting = words = None
    if request.enrich:
        words = _words(settings, talk)
    elif request.no_words:
        words = pipeline.Words("")
    if request.model is not None and not request.enrich:
        opened = opening.open_engine(settings, talk)
        counting = pipeline.model_counting(opened)
    found = pipeline.build(place, settings, talk, counting=counting, full=request.full, words=words)
    talk.close()
    line = describe(found)
    if request.show or request.json:
        console.step(line)
        console.data(found.json.decode() if request.json else found.markdown)
    else:
        console.data(line + "\n")
    if request.enrich and words is not None:
        console.step(_said(found))
    if request.write_agents:
        _write_agents(found)


def _words(settings: Settings, talk: console.Talk) -> pipeline.Words | None:
    """The model that is asked for words; none, with a notice, where there is none."""
    try:
        return pipeline.Words(*opening.asker(settings, talk))
    except CarbonError as missing:
        talk.notice(f"no model's words: {missing.message}" + (f" ({missing.hint})" if missing.hint else ""))
        return None


def _said(found: pipeline.Mind) -> str:
    if found.enriched is None:
        return "words: nothing changed, no model was asked"
    dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(found.enriched.dropped.items()))
    return (
        f"words: {found.enriched.calls} calls, {found.enriched.kept} claims kept, "
        f"{found.enriched.dropped.total()} dropped" + (f" ({dropped})" if dropped else "")
    )


def _write_agents(found: pipeline.Mind) -> None:
    """Put the digest into AGENTS.md. A repository that counted as trusted still does: what is new there is ours."""
    from carbon_mind.digest.agents import write_block
    from carbon_mind.repo.scan import locate, scan
    from carbon_mind.repo.shipped import shipped
    from carbon_mind.safety.trust import Trust, verdict
    from carbon_mind.settings import trust_folder

    trust = Trust(trust_folder())
    before = verdict(found.root, shipped(scan(locate(found.root))), trust)
    outcome = write_block(found.root, found.markdown)
    if before.reason == "no surface" and outcome != "unchanged":
        trust.trust(found.root)
    console.step(f"AGENTS.md: {outcome}")


# --- check -----------------------------------------------------------------------------------------------------


def _check(request: Request) -> None:
    try:
        if request.show or request.write_agents or request.full or request.enrich or request.model is not None:
            raise UsageProblem("--check only looks", hint="use it alone, or with --json and --budget")
        place, settings = place_and_settings(request.where, budget=request.budget)
        found = pipeline.check(place, settings, console.Talk())
    except CarbonError as problem:
        # 1 means stale here, and 3 or 6 would tell a script nothing more than 2 does.
        console.error(problem)
        sys.exit(2)
    if request.json:
        print_json(_as_json(found))
    else:
        console.data(_as_text(found))
    sys.exit(0 if found.current else 1)


def _rows(found: pipeline.Freshness) -> list[tuple[str, str]]:
    from carbon_mind.safety.text import clean

    if found.changes is None:
        return []
    rows = [(kind, path) for kind in ("added", "changed", "removed") for path in getattr(found.changes, kind)]
    rows = [(kind, clean(path, limit=160)) for kind, path in rows]
    return rows + [
        ("renamed", f"{clean(old, limit=160)} -> {clean(new, limit=160)}") for old, new in found.changes.renamed
    ]


def _as_text(found: pipeline.Freshness) -> str:
    if found.current:
        return "mind: current\n"
    rows = _rows(found)
    counts = [
        f"{count:,} {kind}"
        for kind in ("added", "changed", "removed", "renamed")
        if (count := sum(row[0] == kind for row in rows))
    ]
    lines = [f"mind: stale ({found.reason})" + (f": {', '.join(counts)}" if counts else "")]
    lines += [f"{kind:<8} {path}" for kind, path in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f"... and {len(rows) - SHOWN:,} more")
    return "\n".join(lines) + "\n"


def _as_json(found: pipeline.Freshness) -> dict[str, object]:
    from carbon_mind.safety.text import clean

    changes = found.changes
    document: dict[str, object] = {"current": found.current, "reason": found.reason}
    if changes is not None:
        kinds = ("added", "changed", "removed", "renamed")
        document |= {"program": changes.program, "settings": changes.settings}
        document["counts"] = {kind: len(getattr(changes, kind)) for kind in kinds}
        for kind in kinds[:3]:
            document[kind] = [clean(path, limit=1000) for path in getattr(changes, kind)[:SHOWN_JSON]]
        document["renamed"] = [
            {"from": clean(old, limit=1000), "to": clean(new, limit=1000)} for old, new in changes.renamed[:SHOWN_JSON]
        ]
    return document
