"""How long until the first token: prefilled from nothing, or restored from disk? In one run, with one model, interleaved.

    python bench/ttft.py [REPOSITORY] [--model NAME] [--repeat 5] [--json FILE]

Three clocks, because they answer three questions: reading and verifying the snapshot file, handing it to the engine, and the first
token of an answer at the client (everything after the model is loaded, the question's own tokens included). The counts of evaluated
tokens prove which of the two happened. Raw numbers go to --json; medians and spread are printed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from carbon_mind import __version__, opening, pipeline, settings
from carbon_mind.cli import console
from carbon_mind.machine import cpu, usable_cores

QUESTION = "Which command runs the tests?"


@dataclass(frozen=True, slots=True)
class Sample:
    """One start, in seconds and tokens."""

    state: str  # cold | restored
    read_s: float
    restore_s: float
    prefill_s: float
    ttft_s: float  # from the first byte read or token evaluated to the first generated token
    evaluated: int  # tokens, prefix and question
    restored: int
    first_text: str


def measure(
    where: Path, values: settings.Settings, opened: opening.Opened, *, fresh: bool
) -> tuple[Sample, pipeline.Warmed]:
    """One start: the mind is current and the model loaded; what is timed is what a session start pays."""
    engine = opened.engine
    engine.reset()
    warmed = pipeline.warm(where, values, pipeline.Silent(), fresh=fresh, opened=opened)
    clocks = warmed.result.clocks
    answer, pieces = pipeline.ask(warmed, QUESTION, 8)
    text = "".join(pieces)
    ready = clocks.read_s + clocks.restore_s + clocks.prefill_s
    sample = Sample(
        state="cold" if fresh else "restored",
        read_s=clocks.read_s,
        restore_s=clocks.restore_s,
        prefill_s=clocks.prefill_s,
        ttft_s=ready + answer.ttft_s,
        evaluated=warmed.result.evaluated + answer.evaluated,
        restored=warmed.result.restored,
        first_text=text,
    )
    return sample, warmed


def _spread(samples: list[Sample], name: str) -> str:
    found = [getattr(sample, name) * 1000 for sample in samples]
    return f"{statistics.median(found):,.1f} ({min(found):,.1f}-{max(found):,.1f})"


def run(where: Path, model: str | None, repeat: int, output: Path | None) -> int:
    """Measure, print the table, write the raw numbers. Returns the exit code: 1 when a restore was not one."""
    values = settings.load(where, {"model": model})
    opened = opening.open_engine(values, console.Talk())
    samples: list[Sample] = []
    # Once unmeasured: the first pass through a freshly mapped model reads its weights from disk.
    _, warmed = measure(where, values, opened, fresh=True)
    for i in range(repeat):
        for fresh in (True, False):
            samples.append(measure(where, values, opened, fresh=fresh)[0])
            console.step(f"{i + 1}/{repeat} {samples[-1].state}: first token after {samples[-1].ttft_s * 1000:,.1f} ms")
    cold = [sample for sample in samples if sample.state == "cold"]
    restored = [sample for sample in samples if sample.state == "restored"]
    rows = [
        (
            name,
            _spread(found, "read_s"),
            _spread(found, "restore_s"),
            _spread(found, "prefill_s"),
            _spread(found, "ttft_s"),
        )
        + (str(found[0].evaluated),)
        for name, found in (("cold", cold), ("restored", restored))
    ]
    ratio = statistics.median(s.ttft_s for s in cold) / statistics.median(s.ttft_s for s in restored)
    size = sum((values.snapshots / layer.snapshot).stat().st_size for layer in warmed.result.layers if layer.snapshot)
    here = cpu()
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "carbon": __version__,
        "engine": opened.identity.engine,
        "model": opened.model.name,
        "machine": f"{here.model}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "repository": json.loads(warmed.mind.json)["digest"]["name"],
        "prefix_tokens": len(warmed.prefix.tokens),
        "snapshot_bytes": size,
        "repeat": repeat,
        "command": "python bench/ttft.py" + (f" --model {model}" if model else "") + f" --repeat {repeat}",
        "ratio": ratio,
    }
    console.data(
        f"\n{facts['model']} on {facts['machine']}; prefix {facts['prefix_tokens']:,} tokens, snapshot {size / 1e6:.1f} MB\n"
        "milliseconds, median (min-max):\n\n"
        + console.table(("start", "read file", "restore state", "prefill", "first token", "tokens evaluated"), rows)
        + f"\nfirst token {ratio:,.1f} times sooner when restored\n"
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(
            json.dumps({**facts, "samples": [asdict(s) for s in samples]}, indent=1) + "\n", encoding="utf-8"
        )
        console.step(f"raw numbers: {output}")
    proved = all(s.restored == len(warmed.prefix.tokens) for s in restored) and all(s.restored == 0 for s in cold)
    same = len({sample.first_text for sample in samples}) == 1
    if not proved or not same:
        console.step("a restore was no restore, or the answers differ: the numbers above prove nothing")
        return 1
    return 0


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("where", nargs="?", type=Path, default=Path(), help="the repository (default: this directory)")
    parser.add_argument("--model", help="registry name or path (default: as `carbon warm`)")
    parser.add_argument("--repeat", type=int, default=5, help="starts of each kind (default: 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers")
    chosen = parser.parse_args()
    return run(chosen.where, chosen.model, max(chosen.repeat, 1), chosen.json)


if __name__ == "__main__":
    started = time.perf_counter()
    code = main()
    console.step(f"took {time.perf_counter() - started:.1f} s")
    sys.exit(code)
