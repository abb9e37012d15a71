"""Engine and store together: prefill a prefix once, save the state, restore it ever after, and prove which of the two happened.

A restore is believed only when the tokens in the snapshot are the prefix's tokens, the engine reports the positions that were saved,
and its own count of evaluated tokens did not move. Whatever goes wrong with a snapshot costs a prefill and is told in one line.
"""

from __future__ import annotations

import time

from carbon_mind.engine.base import Engine, Progress, State
from carbon_mind.errors import CarbonError, EngineProblem, SnapshotRejected, StorageProblem
from carbon_mind.store.format import Header
from carbon_mind.store.states import Store
from carbon_mind.values import Clocks, Identity, Prefix, WarmResult


def warm(
    engine: Engine,
    store: Store,
    identity: Identity,
    prefix: Prefix,
    *,
    progress: Progress | None = None,
    fresh: bool = False,
) -> WarmResult:
    """Bring the engine to the state after `prefix`, from the store if it has it, else by prefill, and store it then.

    `fresh` ignores what is stored (and stores anew). Raises PrefixTooLong and EngineProblem; never for a bad snapshot or a full
    disk, which end up in `reason`.
    """
    tokens = prefix.tokens
    before = engine.evaluated
    if fresh:
        reason = "asked for"
    else:
        restored, reason = _restore(engine, store, identity, tokens)
        if restored is not None:
            return restored
    started = time.perf_counter()
    engine.reset()
    engine.prefill(tokens, progress)
    prefill_s = time.perf_counter() - started
    name, written, save_s = "", 0, 0.0
    try:
        started = time.perf_counter()
        state = engine.save()
        name, written = store.put(Header(identity, state.tokens, state.pos_min, state.pos_max), state.data)
        save_s = time.perf_counter() - started
    except StorageProblem as full:
        reason = f"{reason}; not stored: {full.message}"
    return WarmResult(
        state="prefilled",
        tokens=len(tokens),
        evaluated=engine.evaluated - before,
        restored=0,
        bytes_read=0,
        bytes_written=written,
        snapshot=name,
        reason=reason,
        clocks=Clocks(prefill_s=prefill_s, save_s=save_s),
    )


def _restore(
    engine: Engine, store: Store, identity: Identity, tokens: tuple[int, ...]
) -> tuple[WarmResult | None, str]:
    """The result of a proved restore, or None and why not."""
    before = engine.evaluated
    started = time.perf_counter()
    try:
        snapshot = store.find(identity, tokens)
    except SnapshotRejected as rejected:
        return None, rejected.message
    if snapshot is None:
        return None, store.explain(identity, tokens)
    read_s = time.perf_counter() - started
    header = snapshot.header
    started = time.perf_counter()
    try:
        engine.load(State(header.tokens, snapshot.payload, header.pos_min, header.pos_max))
    except EngineProblem as refused:
        store.reject(snapshot.name)
        return None, f"snapshot {snapshot.name[:12]} was set aside: {refused.message}"
    restore_s = time.perf_counter() - started
    if engine.held != tokens or engine.evaluated != before:
        raise CarbonError("the engine's state after a restore is not what was asked for", hint="please report this")
    result = WarmResult(
        state="restored",
        tokens=len(tokens),
        evaluated=0,
        restored=len(tokens),
        bytes_read=len(snapshot.payload),
        bytes_written=0,
        snapshot=snapshot.name,
        reason="",
        clocks=Clocks(read_s=read_s, restore_s=restore_s),
    )
    return result, ""
