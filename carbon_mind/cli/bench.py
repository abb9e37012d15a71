"""`carbon bench`: what a benchmark measured, with the machine and the command."""

from __future__ import annotations

import datetime as dt
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from carbon_mind import __version__, pipeline
from carbon_mind.bench import commands, history, ttft
from carbon_mind.bench.commands import Check
from carbon_mind.bench.history import Line, Report, Share
from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json, settings_only
from carbon_mind.digest.render import from_json
from carbon_mind.errors import NoEngine, UsageProblem
from carbon_mind.machine import cpu, usable_cores
from carbon_mind.safety.text import clean

_ABSOLUTE = re.compile(r"(?<![\w.~])(?:/[^\s/=]+)*/([^\s/=]+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """What `carbon bench mind` was told."""

    where: Path
    commits: int
    budget: int | None
    peers: tuple[str, ...]
    seed: int
    run_commands: bool


def run_mind(asked: Asked, *, json: bool) -> None:
    """Measure and print. Raises CarbonError."""
    given = dict(_peer(peer) for peer in asked.peers)
    place, settings = place_and_settings(asked.where, budget=asked.budget)
    talk = console.Talk()
    try:
        report = history.measure(
            place.root,
            settings,
            commits=asked.commits,
            seed=asked.seed,
            peers=given,
            progress=talk.progress("commits"),
        )
    finally:
        talk.close()
    printed = from_json(pipeline.build(place, settings, talk).json).digest.commands
    checks = commands.check(
        place.root, printed, run=asked.run_commands, before=lambda command: console.step(f"running: {clean(command)}")
    )
    facts = _facts()
    if json:
        import msgspec

        print_json({**facts, **msgspec.to_builtins(report), "commands": msgspec.to_builtins(checks)})
    else:
        console.data(f"{_table(report)}\n{_commands(checks)}\n{facts['machine']}; {facts['command']}\n")


def _commands(checks: Sequence[Check]) -> str:
    """The commands of the digest, and what became of each."""
    if not checks:
        return "the digest prints no command\n"

    def told(check: Check) -> str:
        if not check.ran:
            return "yes" if check.found else f"no {check.program}"
        return "runs on" if check.status is None else f"exit {check.status}"

    ran = checks[0].ran
    rows = [
        (clean(check.command, limit=60), check.source, "yes" if check.shown else "no", told(check)) for check in checks
    ]
    return console.table(("command", "shown at", "there", "started" if ran else "program here"), rows)


@dataclass(frozen=True, slots=True)
class AskedTtft:
    """What `carbon bench ttft` was told."""

    model: str | None
    engine: str | None
    lengths: str | None
    repeat: int
    quick: bool
    threads: int | None
    plot: Path | None


def run_ttft(asked: AskedTtft, *, json: bool) -> None:
    """Measure and print; exit code 1 when the figures prove nothing. Raises CarbonError."""
    settings = settings_only(model=asked.model, threads=asked.threads)
    lengths: tuple[int, ...] = ttft.QUICK if asked.quick else ttft.LENGTHS
    if asked.lengths is not None:
        lengths = _numbers(asked.lengths)
    if asked.plot is not None:
        _plotter()
    talk = console.Talk()
    report = ttft.measure(settings, _engines(asked.engine), lengths, asked.repeat, talk, console.step)
    facts = _facts()
    if json:
        import msgspec

        print_json({**facts, **msgspec.to_builtins(report)})
    else:
        console.data(f"{_starts(report)}\n{_states(report)}\n{facts['machine']}; {facts['command']}\n")
    if asked.plot is not None:
        _draw(report, facts["machine"], asked.plot)
    if problems := ttft.wrong(report):
        for problem in problems:
            console.step(f"worth nothing: {problem}")
        sys.exit(1)


def _numbers(given: str) -> tuple[int, ...]:
    try:
        found = tuple(sorted({int(part) for part in given.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1:
        raise UsageProblem(f"{given!r} are no lengths", hint="give numbers of tokens, as in --lengths 256,1024")
    return found


def _engines(given: str | None) -> tuple[str, ...]:
    import importlib.util

    packages = {"llama": "llama_cpp", "server": "xllamacpp"}
    wanted = tuple(given.split(",")) if given else tuple(packages)
    if unknown := sorted(set(wanted) - packages.keys()):
        raise UsageProblem(f"there is no engine {', '.join(unknown)}", hint="known: llama, server")
    found = tuple(name for name in wanted if importlib.util.find_spec(packages[name]) is not None)
    if not found or (given and found != wanted):
        raise NoEngine("no engine is installed that could be measured", hint="pip install 'carbon-mind[llama,server]'")
    return found


def _starts(report: ttft.Report) -> str:
    rows = []
    for engine in report.engines:
        for length in report.lengths:
            cold = ttft.medians(report, engine.name, "cold", length)
            for start in ttft.START:
                found = ttft.medians(report, engine.name, start, length)
                if found is None or cold is None:
                    continue
                rows.append(
                    (
                        f"{engine.name} {length:,}",
                        start,
                        f"{found.read_s * 1000:,.1f}",
                        f"{found.restore_s * 1000:,.1f}",
                        f"{found.ttft_s * 1000:,.1f}",
                        f"{cold.ttft_s / found.ttft_s:,.1f}",
                        f"{found.evaluated:,}",
                    )
                )
    titles = ("engine, tokens", "start", "read", "to engine", "first token", "times sooner", "evaluated")
    return f"{report.model}; milliseconds, medians of {report.repeat}\n\n" + console.table(titles, rows)


def _states(report: ttft.Report) -> str:
    longest = max(report.lengths)
    rows = []
    for engine in report.engines:
        size = next(size for size in report.sizes if size.engine == engine.name and size.length == longest)
        kept = size.per_token
        rows.append(
            (
                engine.name,
                f"{kept:,.0f}",
                f"{kept * 1500 / 1e6:,.1f} / {kept * 1500 * 17 / 32 / 1e6:,.1f}",
                f"{engine.restore_bytes_per_s / 1e9:,.2f}",
                f"{report.disk_bytes_per_s / 1e9:,.2f}",
                f"{engine.prefill_per_s:,.0f}",
                f"{engine.breaks_even_at:,.0f}",
            )
        )
    # q8_0 keeps 32 values in 34 bytes where f16 takes 64 (block_q8_0 in ggml).
    titles = (
        *("engine", "KV bytes/token", "digest of 1,500, MB f16 / q8_0", "restored, GB/s", "disk, GB/s"),
        *("prefill, tokens/s", "restoring pays below, tokens/s"),
    )
    return console.table(titles, rows)


def _plotter() -> Any:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise UsageProblem("a plot needs matplotlib", hint="pip install matplotlib, or leave out --plot") from missing
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "carbon"
    import matplotlib.pyplot as plt

    return plt


def _draw(report: ttft.Report, machine: str, file: Path) -> None:
    plt = _plotter()
    figure, axes = plt.subplots(figsize=(8, 5))
    for engine in report.engines:
        for start, style in zip(ttft.START, ("-o", "--s", ":^", "-.x"), strict=True):
            found = [ttft.medians(report, engine.name, start, length) for length in report.lengths]
            points = [(sample.length, sample.ttft_s) for sample in found if sample is not None]
            if points:
                axes.plot(*zip(*points, strict=True), style, label=f"{engine.name}, {start}")
    axes.set(xscale="log", yscale="log", xlabel="tokens of the prefix", ylabel="seconds to the first token")
    axes.set_title(f"{report.model}\n{machine}", fontsize=9)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    for suffix, metadata in ((".svg", {"Date": None}), (".png", None)):
        figure.savefig(file.with_suffix(suffix), metadata=metadata)
    console.step(f"plot: {file.with_suffix('.svg')}, {file.with_suffix('.png')}")


def _peer(given: str) -> tuple[str, str]:
    name, equals, command = given.partition("=")
    if not equals or not name.strip() or not command.strip():
        raise UsageProblem(
            f"{given!r} is no peer", hint='give NAME=COMMAND, as in --peer "map=their-tool --tokens 1500 ."'
        )
    if name.strip() in (history.DIGEST, history.FREQUENT, history.RANDOM):
        raise UsageProblem(f"{name.strip()!r} is taken", hint="choose another name")
    return name.strip(), command


def _facts() -> dict[str, str]:
    here = cpu()
    # What is kept and shown names no path of this machine.
    words = [Path(sys.argv[0]).name, *(_ABSOLUTE.sub(r"\1", word) for word in sys.argv[1:])]
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "carbon": __version__,
        "machine": f"{here.model}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "command": shlex.join(words),
    }


def _share(share: Share) -> str:
    return f"{100 * share.mean:.1f} ({100 * share.low:.1f}-{100 * share.high:.1f})"


def _row(line: Line) -> tuple[str, ...]:
    ahead = (
        ""
        if line.ahead is None
        else f"{100 * line.ahead.mean:+.1f} ({100 * line.ahead.low:+.1f} to {100 * line.ahead.high:+.1f})"
    )
    return (
        line.name,
        f"{line.tokens:,.0f}",
        f"{line.names:,.1f}",
        _share(line.covered),
        _share(line.component),
        ahead,
    )


def _table(report: Report) -> str:
    titles = (
        "",
        "tokens",
        "files named",
        "changed files named, %",
        "or in a component named, %",
        "digest ahead by, points",
    )
    heading = f"{report.repository}: {report.commits} commits, mean (95 % of the bootstrap)\n\n"
    return heading + console.table(titles, [_row(line) for line in report.lines])
