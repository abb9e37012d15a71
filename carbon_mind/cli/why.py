"""`carbon why`: the last warm start explained, or two prefixes compared. Nothing is evaluated; the texts shown are data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.cli.states import as_json
from carbon_mind.errors import StorageProblem, UsageProblem
from carbon_mind.safety.text import clean
from carbon_mind.settings import Settings
from carbon_mind.store import notes
from carbon_mind.store.states import Store, describe, identity_changes
from carbon_mind.values import Change, Difference, Prefix, Span, WarmResult
from carbon_mind.warm import SHOWN, find_difference

if TYPE_CHECKING:
    from carbon_mind.store.format import Header

_TEXT = 72  # characters of either side


def run(where: Path, tokens: tuple[str, str] | None, *, model: str | None, json: bool) -> None:
    """Explain the last warm start of the repository at `where`, or compare two prefixes. Raises CarbonError."""
    place, settings = place_and_settings(where, model=model)
    store = Store(settings.snapshots, settings.store_budget_mib << 20)
    if tokens is not None:
        _compare(store, settings, *tokens, json=json)
        return
    record = notes.read_record(store, str(place.root))
    if record is None:
        raise UsageProblem(
            f"no warm start of {place.root} is on record", hint="run `carbon warm` or `carbon ask` there first"
        )
    if json:
        cost = {"lost_tokens": record.result.lost[0], "lost_s": record.result.lost[1]}
        print_json({**msgspec.to_builtins(record), "result": as_json(record.result), **cost})
        return
    console.data("\n".join(_explained(record)) + "\n")


# --- the last warm start -----------------------------------------------------------------------------------------


def _explained(record: notes.Record) -> list[str]:
    result, miss = record.result, record.result.miss
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.when))
    lines = [f"{when}  carbon {record.command}, {clean(record.model)}: {_verdict(result)}"]
    lines.append(f"why:      {miss.reason if miss and miss.reason else _hit(result)}")
    if miss is not None:
        lines += [f"changed:  {_full(change)}" for change in miss.changes]
        if miss.difference is not None:
            lines += _sides(miss.difference, result.tokens)
        lines += [f"rejected: {reason}" for reason in miss.rejected]
        if miss.not_stored:
            lines.append(f"kept:     not stored: {miss.not_stored}")
    lines += _counts(result, record.tokens_per_s)
    return lines


def _verdict(result: WarmResult) -> str:
    return {
        "ready": "hit (nothing to do)",
        "restored": "hit",
        "extended": "partial hit",
        "prefilled": "miss",
    }[result.state]


def _hit(result: WarmResult) -> str:
    if result.state == "ready":
        return "the same request as before, and its snapshots are whole: the model was not loaded"
    return "all tokens and the whole identity are those of the stored state"


def _full(change: Change) -> str:
    return f"{change.field}: {clean(change.old)} -> {clean(change.new)}"


def _sides(difference: Difference, tokens: int) -> list[str]:
    where = f", in {difference.where}" if difference.where else ""
    return [
        f"differs:  from token {difference.at:,} of {tokens:,} on{where}",
        f"  stored: {_text(difference.stored)}",
        f"  now:    {_text(difference.wanted)}",
    ]


def _text(text: str) -> str:
    return f'"{clean(text, limit=_TEXT)}"' if text else "(ends here)"


def _counts(result: WarmResult, rate: float) -> list[str]:
    clocks = result.clocks
    lines = [
        f"layer:    {layer.name}: {layer.tokens:,} tokens, "
        + ("stored and verified" if result.state == "ready" else f"{layer.restored:,} restored")
        + (f", {layer.bytes_read:,} bytes read" if layer.bytes_read else "")
        + (f", {layer.bytes_written:,} bytes written" if layer.bytes_written else "")
        for layer in result.layers
    ]
    lines.append(
        f"tokens:   {result.restored:,} restored, {result.evaluated:,} evaluated; "
        f"{result.bytes_read:,} bytes read, {result.bytes_written:,} written"
    )
    lines.append(
        f"clocks:   read and verify {clocks.read_s * 1000:,.1f} ms, restore {clocks.restore_s * 1000:,.1f} ms, "
        f"prefill {clocks.prefill_s * 1000:,.1f} ms (save {clocks.save_s * 1000:,.1f} ms)"
    )
    lost, seconds = result.lost
    if lost:
        lines.append(f"lost:     {lost:,} tokens, {seconds:.2f} s here ({lost / max(seconds, 1e-9):,.0f} tokens/s)")
    elif rate:
        saved = result.tokens
        lines.append(f"saved:    {saved:,} tokens, about {saved / rate:.2f} s here ({rate:,.0f} tokens/s)")
    return lines


# --- two prefixes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two: tokens, and where it is a snapshot, its header."""

    name: str
    tokens: tuple[int, ...]
    spans: tuple[Span, ...] = ()
    header: Header | None = None


def _side(store: Store, given: str) -> _Side:
    path = Path(given)
    if path.is_file() and path.suffix != ".kv":
        try:
            return _Side(path.name, msgspec.json.decode(path.read_bytes(), type=tuple[int, ...]))
        except (OSError, msgspec.MsgspecError) as wrong:
            raise UsageProblem(
                f"{path} does not hold token ids: {wrong}", hint="a JSON list of integers is expected"
            ) from wrong
    asked = path.name.removesuffix(".kv")
    found = [entry.name for entry in store.entries() if entry.name.startswith(asked)] if asked else []
    if len(found) != 1:
        raise UsageProblem(
            f"{given!r} is the beginning of {len(found)} snapshots, and no file with token ids",
            hint="`carbon store list` shows the names",
        )
    header = store.header(found[0])
    if header is None:
        raise StorageProblem(f"snapshot {found[0][:12]} is damaged", hint="run `carbon store verify`")
    return _Side(found[0][:12], header.tokens, header.spans, header)


def _compare(store: Store, settings: Settings, left: str, right: str, *, json: bool) -> None:
    a, b = _side(store, left), _side(store, right)
    owners = {dict(side.header.labels).get("model", "") for side in (a, b) if side.header}
    found = find_difference(a.tokens, a.spans, Prefix(b.tokens, (), b.spans), _words(settings, owners))
    at, texts = found.at, [found.stored, found.wanted]
    changes = identity_changes(a.header.identity, b.header.identity) if a.header and b.header else ()
    lost = len(b.tokens) - at
    rates = [record.tokens_per_s for record in notes.records(store) if record.tokens_per_s]
    seconds = lost / rates[0] if rates else None
    if json:
        print_json(
            {
                "same": at == len(a.tokens) == len(b.tokens) and not changes,
                "shared": at,
                "tokens": [len(a.tokens), len(b.tokens)],
                "where": found.where,
                "text": texts,
                "ids": [side.tokens[at : at + SHOWN] for side in (a, b)],
                "changes": changes,
                "lost_tokens": lost,
                "lost_s": seconds,
            }
        )
        return
    lines = [f"{a.name}: {len(a.tokens):,} tokens; {b.name}: {len(b.tokens):,} tokens; {at:,} shared from the start"]
    lines += [f"changed:  {describe(change)}" for change in changes]
    if at == len(a.tokens) == len(b.tokens):
        lines.append("same:     the tokens do not differ")
    else:
        lines.append(f"differs:  from token {at:,} on" + (f", in {found.where}" if found.where else ""))
        lines += [f"  {side.name}: {_text(text)}" for side, text in zip((a, b), texts, strict=True)]
        cost = f", about {seconds:.2f} s here" if seconds is not None else ""
        lines.append(f"lost:     {lost:,} tokens of {b.name} have to be evaluated{cost}")
    console.data("\n".join(lines) + "\n")


def _words(settings: Settings, owners: set[str]) -> Callable[[Sequence[int]], str]:
    """Tokens in words, with the vocabulary of the model that they belong to; as numbers where that is not at hand."""
    from carbon_mind import opening
    from carbon_mind.errors import CarbonError

    try:
        if others := owners - {opening.model_path(settings).name}:
            raise UsageProblem(f"of the model {clean(', '.join(sorted(others)))}; give it with --model")
        return opening.open_vocabulary(settings)
    except CarbonError as missing:
        console.notice(f"shown as token ids: {missing.message}")
        return lambda tokens: " ".join(map(str, tokens))
