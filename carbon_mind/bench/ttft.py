"""How long until the first token: evaluated from nothing, restored from disk, or still there? By length of the prefix, for each engine.

    cold       nothing is held: the prefix is evaluated
    restored   nothing is held: the stored state is read, verified and handed to the engine
    hot        the prefix is held
    by hand    llama-server's own slot file, restored as it lies there, without a look at it (what one would do without us)

All in one run, in turns, so that what else the machine does hits all of them. Three clocks: reading and verifying, handing over, and the
first token of the answer to a short question at whoever asked, its tokens included; the model is loaded before. The engine's own count of
evaluated tokens proves which of them happened. The text is made up and the same everywhere; only its length matters.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbon_mind import opening
from carbon_mind.engine.base import State
from carbon_mind.errors import EngineProblem, UsageProblem
from carbon_mind.settings import Settings
from carbon_mind.store.bandwidth import bandwidth
from carbon_mind.store.format import Header
from carbon_mind.store.states import Store
from carbon_mind.values import Span

if TYPE_CHECKING:
    from carbon_mind.engine.server import ServerEngine

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
QUICK = (256, 1024)
START = ("cold", "restored", "hot", "by hand")
_LINE = "A prefix names files, commands and what leans on what; this line stands for one of them, number {}.\n"
_QUESTION = "\nWhich command runs the tests?\n"
_ROOM = 64  # tokens for question and answer


@dataclass(frozen=True, slots=True)
class Sample:
    """One start."""

    engine: str
    start: str
    length: int  # tokens of the prefix
    read_s: float  # file to verified bytes
    restore_s: float  # bytes to state
    ttft_s: float  # everything, to the first token
    evaluated: int  # tokens, by the engine's own count
    said: str


@dataclass(frozen=True, slots=True)
class Size:
    """What the state of a prefix takes."""

    engine: str
    length: int
    bytes: int

    @property
    def per_token(self) -> float:
        """Bytes of KV for each token."""
        return self.bytes / self.length


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine that was measured."""

    name: str
    identity: str
    prefill_per_s: float  # tokens, at the longest prefix
    restore_bytes_per_s: float  # read, verified and handed over, at the longest prefix
    breaks_even_at: float  # tokens a second of prefill from which on restoring from this disk does not pay


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured."""

    model: str
    lengths: tuple[int, ...]
    repeat: int
    disk_bytes_per_s: float
    engines: tuple[Engine, ...]
    sizes: tuple[Size, ...]
    samples: tuple[Sample, ...]


def measure(
    settings: Settings,
    kinds: Sequence[str],
    lengths: Sequence[int],
    repeat: int,
    report: opening.Listener,
    step: Callable[[str], None] = lambda _text: None,
) -> Report:
    """Measure each engine (`llama`, `server`). Raises ModelProblem, EngineProblem, StorageProblem, UsageProblem."""
    model = opening.model_path(settings)
    header = opening.check_model(model)
    usable = tuple(length for length in lengths if length + _ROOM <= (header.context_length or length + _ROOM))
    if not usable:
        raise UsageProblem(
            f"the model's context of {header.context_length:,} tokens holds none of these prefixes",
            hint=f"choose --lengths of at most {header.context_length - _ROOM:,}",
        )
    samples: list[Sample] = []
    sizes: list[Size] = []
    engines: list[Engine] = []
    disk = 0.0
    for kind in kinds:
        own = msgspec.structs.replace(settings, engine=kind, n_ctx=max(usable) + _ROOM)
        opened = opening.open_engine(own, report)
        try:
            with tempfile.TemporaryDirectory(prefix="carbon-bench-") as folder:
                store = Store(Path(folder) / "store", 256 << 30)
                disk = bandwidth(store.folder) or 0.0
                run = _Run(kind, opened, store)
                found, took = run.all(usable, repeat, step)
        finally:
            opened.engine.close()
        samples += found
        sizes += took
        engines.append(_engine(kind, opened.identity.engine, found, took, disk))
    return Report(model.name, usable, repeat, disk, tuple(engines), tuple(sizes), tuple(samples))


def _engine(kind: str, identity: str, samples: Sequence[Sample], sizes: Sequence[Size], disk: float) -> Engine:
    longest = max(sizes, key=lambda size: size.length)

    def middle(start: str, clock: Callable[[Sample], float]) -> float:
        return statistics.median(clock(s) for s in samples if s.start == start and s.length == longest.length)

    restore_s = middle("restored", lambda sample: sample.read_s + sample.restore_s)
    return Engine(
        kind,
        identity,
        longest.length / middle("cold", lambda sample: sample.ttft_s),
        longest.bytes / restore_s,
        disk / longest.per_token,
    )


class _Run:
    """All starts of one engine."""

    def __init__(self, kind: str, opened: opening.Opened, store: Store) -> None:
        self._kind, self._opened, self._store = kind, opened, store
        self._engine = opened.engine
        self._question = self._engine.tokenize(_QUESTION)
        self._names: dict[int, str] = {}

    def all(self, lengths: Sequence[int], repeat: int, step: Callable[[str], None]) -> tuple[list[Sample], list[Size]]:
        """Each length once unmeasured (weights come from disk, memory is touched), then `repeat` rounds over all."""
        words: tuple[int, ...] = ()
        text = ""
        for number in range(max(lengths)):
            text += _LINE.format(number)
            if len(text) > 12 * max(lengths):
                break
        words = self._engine.tokenize(text)
        if len(words) < max(lengths):
            raise EngineProblem("the text for the benchmark has too few tokens", hint="please report this")
        sizes = [self._kept(words[:length]) for length in lengths]
        samples: list[Sample] = []
        for number in range(repeat):
            for length in lengths:
                for start in START:
                    sample = self._one(start, words[:length])
                    if sample is not None:
                        samples.append(sample)
            step(f"{self._kind}: round {number + 1} of {repeat}")
        return samples, sizes

    def _kept(self, tokens: tuple[int, ...]) -> Size:
        engine = self._engine
        engine.reset()
        engine.prefill(tokens)
        state = engine.save()
        header = Header(
            identity=self._opened.identity,
            tokens=tokens,
            pos_min=state.pos_min,
            pos_max=state.pos_max,
            layers=(Span("prefix", len(tokens)),),
        )
        self._names[len(tokens)], _ = self._store.put(header, state.data)
        if engine.info.files is not None:
            (engine.info.files / f"{len(tokens)}.hand").write_bytes(state.data)
        return Size(self._kind, len(tokens), len(state.data))

    def _one(self, start: str, tokens: tuple[int, ...]) -> Sample | None:
        engine = self._engine
        if start == "by hand" and engine.info.files is None:
            return None
        if start == "hot":
            self._restore(tokens)  # not timed: however it came there
        else:
            engine.reset()
        before, began = engine.evaluated, time.perf_counter()
        read_s = restore_s = 0.0
        if start == "cold":
            engine.prefill(tokens)
        elif start == "restored":
            read_s, restore_s = self._restore(tokens)
        elif start == "by hand":
            restore_s = self._by_hand(tokens)
        engine.prefill(self._question)
        said = "".join(piece.text for piece in engine.generate(1))
        ttft_s = time.perf_counter() - began
        return Sample(self._kind, start, len(tokens), read_s, restore_s, ttft_s, engine.evaluated - before, said)

    def _restore(self, tokens: tuple[int, ...]) -> tuple[float, float]:
        engine, began = self._engine, time.perf_counter()
        engine.reset()
        folder = engine.info.files
        into = folder / "restored.slot" if folder is not None else None
        found = self._store.read(self._names[len(tokens)], self._opened.identity, tokens, into=into)
        read_s = time.perf_counter() - began
        header = found.header
        engine.load(State(header.tokens, found.payload, header.pos_min, header.pos_max, header.start, found.file))
        return read_s, time.perf_counter() - began - read_s

    def _by_hand(self, tokens: tuple[int, ...]) -> float:
        began = time.perf_counter()
        server: ServerEngine = self._engine  # type: ignore[assignment] # it has a folder of slot files
        server.restore_file(f"{len(tokens)}.hand", tokens)
        return time.perf_counter() - began


def medians(report: Report, engine: str, start: str, length: int) -> Sample | None:
    """The medians of all samples of one kind; None where there are none."""
    found = [s for s in report.samples if (s.engine, s.start, s.length) == (engine, start, length)]
    if not found:
        return None

    def middle(clock: Callable[[Sample], float]) -> float:
        return statistics.median(map(clock, found))

    return replace(
        found[0],
        read_s=middle(lambda s: s.read_s),
        restore_s=middle(lambda s: s.restore_s),
        ttft_s=middle(lambda s: s.ttft_s),
        evaluated=max(s.evaluated for s in found),
    )


def wrong(report: Report) -> list[str]:
    """What makes the figures worthless: a start that was none, or answers that differ."""
    found = []
    for sample in report.samples:
        few = sample.evaluated < sample.length
        if few == (sample.start == "cold"):
            found.append(
                f"{sample.engine}, {sample.length} tokens, {sample.start}: {sample.evaluated} tokens were evaluated"
            )
    for engine in report.engines:
        for length in report.lengths:
            said = {s.said for s in report.samples if s.engine == engine.name and s.length == length}
            if len(said) > 1:
                found.append(f"{engine.name}, {length} tokens: the answers differ: {sorted(said)}")
    return found
