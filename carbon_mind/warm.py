"""Engine and store together: prefill a prefix once, save its state layer by layer, restore it ever after, and prove what happened.

A restore is believed only when the tokens in the snapshots are the prefix's tokens, the engine reports the positions that were saved,
and its own count of evaluated tokens did not move. Whatever goes wrong with a snapshot or with the store costs a prefill and is told
in one line. Each layer is evaluated and saved for itself, in a cold start as in a later one, so that the engine sees the same batches
in both and the logits are the same bit for bit; only a state that was cut inside a layer (dense attention) is evaluated in others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from carbon_mind.engine.base import Engine, Progress, State
from carbon_mind.errors import CarbonError, EngineProblem, SnapshotRejected, StorageProblem
from carbon_mind.prefix.spans import name_at
from carbon_mind.safety.text import clean
from carbon_mind.store.bandwidth import bandwidth
from carbon_mind.store.format import Header
from carbon_mind.store.states import Closest, Plan, Store, describe, names
from carbon_mind.values import (
    Clocks,
    Difference,
    Identity,
    Layer,
    Miss,
    Prefix,
    Span,
    WarmResult,
    WarmState,
    beginning_before,
    shared_length,
)

SHOWN = 8  # tokens of either side of a difference
_FEW = 16  # a rate that was measured over fewer tokens says nothing


def warm(
    engine: Engine,
    store: Store | None,
    identity: Identity,
    prefix: Prefix,
    *,
    labels: tuple[tuple[str, str], ...] = (),
    progress: Progress | None = None,
    fresh: bool = False,
    each: bool = False,
    keep: bool = False,
    prompt: tuple[int, ...] = (),
) -> WarmResult:
    """Bring the engine to the state after `prefix`, from the store as far as it has it, by prefill from there on, and store that.

    `labels` name things in the store for people. `fresh` ignores what is stored (and stores anew); without a store everything is
    evaluated. An engine without layers stores the whole state at the end, with `each` also at the end of every layer. With `keep`
    what the engine holds already counts, too. A `prompt` that begins with the prefix may be restored further than the prefix goes, to
    its last but one token. Raises PrefixTooLong and EngineProblem; never for a bad snapshot or a full disk, which end up in the
    result's `miss`.
    """
    if not (engine.info.layers or each):
        prefix = replace(prefix, layers=(Span("prefix", len(prefix.tokens)),))
    wanted = prompt[:-1] if len(prompt) > len(prefix.tokens) + 1 else prefix.tokens
    work = _Work(engine, store, identity, prefix, labels, fresh, wanted)
    if keep:
        work.keep()
    if store is not None and not fresh:
        work.restore(store)
    if not (work.kept or work.restored):
        engine.reset()
    work.complete(progress)
    return work.result()


@dataclass(slots=True)
class _Work:
    """One warm start as it goes on."""

    engine: Engine
    store: Store | None
    identity: Identity
    prefix: Prefix
    labels: tuple[tuple[str, str], ...]
    fresh: bool
    wanted: tuple[int, ...]  # tokens that may be restored; they begin with the prefix
    files: tuple[str, ...] = ()  # of the layers
    evaluated_before: int = 0
    kept: int = 0
    restored: int = 0
    plan: Plan = field(default_factory=Plan)
    closest: Closest | None = None
    rejected: list[str] = field(default_factory=list)
    not_stored: str = ""
    bytes_read: list[int] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=Clocks)

    def __post_init__(self) -> None:
        self.files = tuple(self._file(layer) for layer in self.prefix.layers)
        self.evaluated_before = self.engine.evaluated

    def _chain(self, last: Span) -> tuple[Span, ...]:
        """The layers of the snapshot that ends where this layer does: all up to it, or one where a state is whole."""
        if not self.engine.info.layers:
            return (last,)
        return self.prefix.layers[: self.prefix.layers.index(last) + 1]

    def _file(self, layer: Span) -> str:
        return names(self.identity, self.prefix.tokens, self._chain(layer))[-1]

    # --- from what is there ---

    def keep(self) -> None:
        """Use what the engine holds, as far as it is what is wanted."""
        held = self.engine.held
        same = shared_length(held, self.wanted)
        if same and (same == len(held) or self.engine.info.rollback):
            self.kept = same

    # --- from disk ---

    def restore(self, store: Store) -> None:
        """Load the best there is. A snapshot that fails is set aside, and the next best is tried."""
        bad: set[str] = set()
        target = self._target(store)
        while self.kept < len(target.tokens):
            plan, closest = store.plan(self.identity, target, rollback=self.engine.info.rollback, without=bad)
            self.closest = self.closest or closest
            if not plan.names or plan.tokens <= self.kept:
                break
            self.kept = 0  # what is loaded takes its place
            try:
                self._load(store, plan, bad)
            except SnapshotRejected as refused:
                self.rejected.append(refused.message)
                self.engine.reset()
                continue
            self.plan, self.restored = plan, plan.tokens
            break
        if self.kept and not self.engine.truncate(self.kept):
            self.kept = 0
        reached = self.kept or self.restored
        if (reached and self.engine.held != self.wanted[:reached]) or self.engine.evaluated != self.evaluated_before:
            raise CarbonError("the engine's state after a restore is not what was asked for", hint="please report this")
        for name in self.plan.names:
            store.used(name)

    def _target(self, store: Store) -> Prefix:
        """What is looked for: the prefix, if that is all that is wanted or is there as it is; else all that may be restored."""
        layers = self._chain(self.prefix.layers[-1])
        if len(self.wanted) == len(self.prefix.tokens):
            return Prefix(self.prefix.tokens, layers)
        return Prefix(self.wanted, (Span("prompt", len(self.wanted)),))

    def _load(self, store: Store, plan: Plan, bad: set[str]) -> None:
        self.bytes_read = []
        self.engine.reset()
        wanted = self.wanted[: plan.tokens]
        for name in plan.names:
            started = time.perf_counter()
            bad.add(name)  # until it is proved
            folder = self.engine.info.files
            into = folder / f"{os.urandom(16).hex()}.slot" if folder is not None else None
            snapshot = store.read(name, self.identity, wanted, into=into)
            read_s = time.perf_counter() - started
            header = snapshot.header
            started = time.perf_counter()
            try:
                self.engine.load(
                    State(header.tokens, snapshot.payload, header.pos_min, header.pos_max, header.start, snapshot.file)
                )
            except EngineProblem as refused:
                store.reject(name)
                raise SnapshotRejected(f"snapshot {name[:12]} was set aside: {refused.message}") from refused
            restore_s = time.perf_counter() - started
            bad.discard(name)
            self.bytes_read.append(snapshot.size)
            clocks = self.clocks
            self.clocks = replace(clocks, read_s=clocks.read_s + read_s, restore_s=clocks.restore_s + restore_s)
        if not self.engine.truncate(plan.tokens):
            bad.add(plan.names[-1])  # whole, but of no use here: planned again, it would be refused again
            raise SnapshotRejected(f"this model's state cannot be cut to {plan.tokens} tokens")

    # --- by evaluation ---

    def complete(self, progress: Progress | None) -> None:
        """Evaluate what is missing, layer by layer, and store each layer that is not stored."""
        tokens, done = self.prefix.tokens, 0
        total = max(len(tokens) - len(self.engine.held), 0)
        start = 0
        for index, layer in enumerate(self.prefix.layers):
            if missing := tokens[len(self.engine.held) : layer.end]:
                started = time.perf_counter()
                self.engine.prefill(missing, progress and _shifted(progress, done, total))
                self.clocks = replace(self.clocks, prefill_s=self.clocks.prefill_s + time.perf_counter() - started)
                done += len(missing)
            known = self.store is None or (self.store.has(self.files[index]) and not self.fresh)
            # A whole state that was cut to this length, and not evaluated, is in the store already, with more behind it.
            whole = not self.engine.info.layers
            if not known and not self.not_stored and len(self.engine.held) == layer.end and not (whole and not missing):
                self._save(self.files[index], 0 if whole else start, self._chain(layer))
            start = layer.end

    def _save(self, name: str, start: int, layers: tuple[Span, ...]) -> None:
        if self.store is None:
            return
        started = time.perf_counter()
        try:
            state = self.engine.save(start)
            self.not_stored = self._slower(len(state.data), layers[-1].end - start)
            if self.not_stored:
                return
            end = layers[-1].end
            header = Header(
                identity=self.identity,
                tokens=state.tokens,
                pos_min=state.pos_min,
                pos_max=state.pos_max,
                layers=layers,
                spans=tuple(Span(span.name, min(span.end, end)) for span in beginning_before(self.prefix.spans, end)),
                labels=self._labels(layers[-1].name, shared=start == 0),
            )
            self.written[name] = self.store.put(header, state.data, replace=self.fresh)[1]
        except StorageProblem as refused:
            self.not_stored = refused.message
        finally:
            self.clocks = replace(self.clocks, save_s=self.clocks.save_s + time.perf_counter() - started)

    def _labels(self, layer: str, *, shared: bool) -> tuple[tuple[str, str], ...]:
        """The first layer serves every repository, so it names none."""
        kept = tuple(label for label in self.labels if not (shared and label[0] == "repository"))
        return (*kept, ("layer", layer))

    def _slower(self, size: int, tokens: int) -> str:
        """The store's verdict: why this layer is better evaluated than restored, "" when it is not."""
        evaluated = self.engine.evaluated - self.evaluated_before
        speed = bandwidth(self.store.folder) if self.store is not None else None
        if speed is None or evaluated < _FEW:
            return ""
        restore_s, prefill_s = size / speed, tokens * self.clocks.prefill_s / evaluated
        if restore_s <= prefill_s:
            return ""
        return (
            f"reading {size / 1e6:,.1f} MB at {speed / 1e6:,.0f} MB/s takes longer ({restore_s:.3f} s) "
            f"than evaluating {tokens:,} tokens ({prefill_s:.3f} s)"
        )

    # --- what came of it ---

    def result(self) -> WarmResult:
        """The counts, and on a miss why."""
        evaluated = self.engine.evaluated - self.evaluated_before
        miss = None
        if evaluated:
            miss = self._miss()
        elif self.rejected or self.not_stored:
            miss = Miss(
                self.rejected[0] if self.rejected else "", rejected=tuple(self.rejected), not_stored=self.not_stored
            )
        return WarmResult(
            state=self._state(evaluated),
            tokens=self.kept + self.restored + evaluated,
            evaluated=evaluated,
            restored=self.restored,
            layers=self._layers(),
            clocks=self.clocks,
            miss=miss,
            kept=self.kept,
        )

    def _state(self, evaluated: int) -> WarmState:
        if not evaluated:
            return "restored" if self.restored else "hot"
        return "extended" if self.restored or self.kept else "prefilled"

    def _layers(self) -> tuple[Layer, ...]:
        found, start = [], 0
        for index, layer in enumerate(self.prefix.layers):
            file = self.files[index]
            there = self.store is not None and self.store.has(file)
            found.append(
                Layer(
                    name=layer.name,
                    tokens=layer.end - start,
                    restored=min(max(self.restored - start, 0), layer.end - start),
                    snapshot=file if there else "",
                    bytes_read=self.bytes_read[index] if index < len(self.plan.names) else 0,
                    bytes_written=self.written.get(file, 0),
                )
            )
            start = layer.end
        return tuple(found)

    def _miss(self) -> Miss:
        reason, difference = self._reason()
        return Miss(
            reason=reason,
            changes=self.closest.changes if self.closest is not None and not self.rejected else (),
            difference=difference,
            rejected=tuple(self.rejected),
            not_stored=self.not_stored,
        )

    def _reason(self) -> tuple[str, Difference | None]:
        closest = self.closest
        if self.store is None:
            return "there is no store", None
        if self.fresh:
            return "asked for", None
        if self.rejected:
            return self.rejected[0], None
        if closest is None:
            return "nothing has been stored yet", None
        if closest.changes:
            changed = {change.field for change in closest.changes}
            if "model" in changed and dict(closest.header.labels).get("model") != dict(self.labels).get("model"):
                return "nothing has been stored for this model yet", None
            shown = "; ".join(map(describe, closest.changes[:3]))
            more = f" and {len(closest.changes) - 3} more" if len(closest.changes) > 3 else ""
            return f"the stored state is of another setup: {shown}{more}", None
        header = closest.header
        difference = find_difference(header.tokens, header.spans, self.prefix, self.engine.detokenize)
        return tell(difference, len(self.prefix.tokens)), difference


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    """The progress of one layer as a part of that of all."""
    return lambda done, _total: progress(before + done, total)


def find_difference(
    stored: tuple[int, ...], spans: Sequence[Span], wanted: Prefix, detokenize: Callable[[Sequence[int]], str]
) -> Difference:
    """The first token in which two prefixes differ, what stands there, and how both go on."""
    at = shared_length(stored, wanted.tokens)
    where = name_at(wanted.spans, at) or name_at(spans, at)
    texts = (detokenize(tokens[at : at + SHOWN]) for tokens in (stored, wanted.tokens))
    return Difference(at, where, *texts)


def tell(difference: Difference, tokens: int) -> str:
    """A difference in one line."""
    where = f" ({difference.where})" if difference.where else ""
    if not difference.stored:
        return f"stored is the prefix up to token {difference.at} of {tokens}{where}"
    sides = f"stored {_quoted(difference.stored)}, now {_quoted(difference.wanted)}"
    return f"the prefix differs from token {difference.at} of {tokens} on{where}: {sides}"


def _quoted(text: str) -> str:
    return f'"{clean(text, limit=48)}"' if text else "nothing"


def proceed(engine: Engine, prompt: tuple[int, ...]) -> int:
    """Bring the engine behind `prompt`, with the scores of the next token at hand; returns how many tokens were reused.

    At least one token is evaluated, because a state holds no scores: of a prompt that is held already, the last one. Where the
    architecture cannot drop it, all are. Raises PrefixTooLong and EngineProblem.
    """
    if not prompt:
        raise EngineProblem("an empty prompt has no continuation")
    reused = min(shared_length(engine.held, prompt), len(prompt) - 1)
    if not engine.truncate(reused):
        engine.reset()  # honest and slow instead of fast and wrong
        reused = 0
    engine.prefill(prompt[reused:])
    return reused
