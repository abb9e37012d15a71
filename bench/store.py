"""What a restore costs beside the least it could cost: reading the same file and copying it once. In one run, interleaved.

    python bench/store.py [--model NAME] [--tokens 512,2048,7000] [--repeat 9] [--json FILE]

A restore reads the snapshot, verifies every byte of it (XXH3) and hands it to the engine; the plain way is `read()` into fresh memory and
one copy, of the same file, in the system's cache as it is for both. Ends with exit code 1 when a restore has less than 60 % of the
plain bandwidth in the median. Raw numbers go to --json.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from carbon_mind import __version__, opening, settings
from carbon_mind.cli import console
from carbon_mind.engine.base import State
from carbon_mind.machine import cpu, usable_cores
from carbon_mind.store.bandwidth import bandwidth
from carbon_mind.store.format import Header
from carbon_mind.store.states import Store
from carbon_mind.values import Span

REQUIRED = 0.6
TEXT = "A digest names files, commands and what leans on what; this line stands for one of them, number {}.\n"


@dataclass(frozen=True, slots=True)
class Sample:
    """One round over one snapshot, in seconds."""

    tokens: int
    size: int  # bytes of the file
    plain_s: float  # read and copied once
    read_s: float  # read and verified
    load_s: float  # handed to the engine
    save_s: float  # taken from the engine and written, synchronised
    prefill_s: float  # what evaluating the tokens took, once

    @property
    def share(self) -> float:
        """Bandwidth of the restore as a part of the plain one."""
        return self.plain_s / (self.read_s + self.load_s)


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _plain(path: Path) -> int:
    with path.open("rb", buffering=0) as file:
        return len(bytearray(file.readall()))


def _rounds(opened: opening.Opened, store: Store, tokens: tuple[int, ...], repeat: int) -> list[Sample]:
    engine, found = opened.engine, []
    engine.reset()
    prefill_s = _timed(lambda: engine.prefill(tokens))
    for number in range(repeat + 1):
        started = time.perf_counter()
        state = engine.save()
        header = Header(
            identity=opened.identity,
            tokens=tokens,
            pos_min=state.pos_min,
            pos_max=state.pos_max,
            layers=(Span("base", len(tokens)),),
        )
        name, size = store.put(header, state.data, replace=True)
        save_s = time.perf_counter() - started
        plain_s = _timed(lambda name=name: _plain(store.path(name)))  # type: ignore[misc]
        started = time.perf_counter()
        snapshot = store.read(name, opened.identity, tokens)
        read_s = time.perf_counter() - started
        kept = snapshot.header
        load_s = _timed(
            lambda snapshot=snapshot, kept=kept: engine.load(  # type: ignore[misc]
                State(kept.tokens, snapshot.payload, kept.pos_min, kept.pos_max, kept.start)
            )
        )
        if number:  # the first round touches memory that later ones have
            found.append(Sample(len(tokens), size, plain_s, read_s, load_s, save_s, prefill_s))
    if engine.evaluated == 0 or engine.held != tokens:
        raise SystemExit("the state after the last restore is not the one that was saved")
    return found


def _row(samples: list[Sample]) -> tuple[str, ...]:
    def middle(values: list[float]) -> str:
        return f"{statistics.median(values):,.1f} ({min(values):,.1f}-{max(values):,.1f})"

    size = samples[0].size
    return (
        f"{samples[0].tokens:,}",
        f"{size / 1e6:,.1f}",
        middle([1000 * sample.plain_s for sample in samples]),
        middle([1000 * sample.read_s for sample in samples]),
        middle([1000 * sample.load_s for sample in samples]),
        f"{size / statistics.median(sample.read_s + sample.load_s for sample in samples) / 1e9:,.2f}",
        f"{100 * statistics.median(sample.share for sample in samples):,.0f} %",
        middle([1000 * sample.save_s for sample in samples]),
        f"{1000 * samples[0].prefill_s:,.0f}",
    )


def run(model: str | None, lengths: list[int], repeat: int, output: Path | None) -> int:
    """Measure, print the table, write the raw numbers; 1 when a restore is too slow."""
    values = settings.load(None, {"model": model, "n_ctx": max(lengths) + 64})
    opened = opening.open_engine(values, console.Talk())
    words = opened.engine.tokenize("".join(TEXT.format(number) for number in range(max(lengths))))
    rounds = []
    with tempfile.TemporaryDirectory(dir=values.cache, prefix="bench-") as folder:
        store = Store(Path(folder) / "store", 64 << 30)
        disk = bandwidth(store.folder)
        for length in lengths:
            rounds.append(_rounds(opened, store, words[:length], repeat))
            console.step(f"{length:,} tokens: {repeat} rounds")
    here = cpu()
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "carbon": __version__,
        "engine": opened.identity.engine,
        "model": opened.model.name,
        "machine": f"{here.model}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "disk_bytes_per_s": disk,
        "command": "python bench/store.py"
        + (f" --model {model}" if model else "")
        + f" --tokens {','.join(map(str, lengths))} --repeat {repeat}",
    }
    titles = ("tokens", "MB", "read + copy", "read + verify", "to engine", "GB/s", "of plain", "save", "prefill")
    console.data(
        f"\n{facts['model']} on {facts['machine']}; milliseconds, median (min-max)\n\n"
        + console.table(titles, [_row(samples) for samples in rounds])
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        raw = [asdict(sample) | {"share": sample.share} for samples in rounds for sample in samples]
        output.write_text(json.dumps({**facts, "samples": raw}, indent=1) + "\n", encoding="utf-8")
        console.step(f"raw numbers: {output}")
    worst = min(statistics.median(sample.share for sample in samples) for samples in rounds)
    console.data(f"\nat least {100 * worst:.0f} % of the plain bandwidth; required are {100 * REQUIRED:.0f} %\n")
    return 0 if worst >= REQUIRED else 1


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", help="registry name or path (default: as `carbon warm`)")
    parser.add_argument("--tokens", default="512,2048,7000", help="lengths of the prefix (default: 512,2048,7000)")
    parser.add_argument("--repeat", type=int, default=9, help="rounds for each length (default: 9)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers")
    chosen = parser.parse_args()
    return run(chosen.model, [int(part) for part in chosen.tokens.split(",")], max(chosen.repeat, 1), chosen.json)


if __name__ == "__main__":
    sys.exit(main())
