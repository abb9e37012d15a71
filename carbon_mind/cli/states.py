"""`carbon warm` and `carbon ask`: what a warm start did, said in one line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from carbon_mind import pipeline
from carbon_mind.cli import console
from carbon_mind.cli.common import place_and_settings, print_json
from carbon_mind.errors import UsageProblem
from carbon_mind.repo.scan import Place
from carbon_mind.settings import Settings
from carbon_mind.values import Miss, WarmResult


@dataclass(frozen=True, slots=True)
class Start:
    """What both commands are told."""

    where: Path
    model: str | None
    budget: int | None
    ctx: int | None
    threads: int | None

    def settings(self) -> tuple[Place, Settings]:
        """The repository and its settings. Raises CarbonError."""
        return place_and_settings(
            self.where, model=self.model, budget=self.budget, n_ctx=self.ctx, threads=self.threads
        )


def run_warm(start: Start, *, fresh: bool, prove: bool, json: bool) -> None:
    """Prepare and report. Raises CarbonError."""
    place, settings = start.settings()
    talk = console.Talk()
    try:
        prepared = pipeline.prepare(place, settings, talk, fresh=fresh, prove=prove)
    finally:
        talk.close()
    if prepared.warmed is not None:
        prepared.warmed.opened.engine.close()
    result = prepared.result
    if json:
        print_json(as_json(result))
        return
    for line in complaints(result.miss):
        console.step(line)
    console.data(f"warm: {describe(result)}\n")


def run_ask(start: Start, question: str, *, max_tokens: int, json: bool) -> None:
    """Answer, streaming. Raises CarbonError."""
    if not question.strip():
        raise UsageProblem("the question is empty", hint='try: carbon ask "How do I run the tests?"')
    place, settings = start.settings()
    talk = console.Talk()
    try:
        warmed = pipeline.warm(place, settings, talk, command="ask")
    finally:
        talk.close()
    answer, pieces = pipeline.ask(warmed, question.strip(), max_tokens)
    for piece in pieces:
        if not json:
            console.data(piece)
    warmed.opened.engine.close()
    result = warmed.result
    ready_s = result.clocks.read_s + result.clocks.restore_s + result.clocks.prefill_s
    if json:
        counts = {name: getattr(answer, name) for name in ("reused", "evaluated", "generated", "ttft_s", "seconds")}
        print_json({"answer": answer.text, "prefix": as_json(result), **counts})
    else:
        console.data("\n")
    for line in complaints(result.miss):
        console.step(line)
    console.step(
        f"prefix: {result.state} {result.tokens:,} tokens in {ready_s:.3f} s; TTFT {ready_s + answer.ttft_s:.3f} s "
        f"(engine opened in {warmed.opened.seconds:.2f} s); prompt tokens evaluated {answer.evaluated + result.evaluated}, "
        f"reused {min(answer.reused, result.restored)}; {answer.generated} generated"
    )


def as_json(result: WarmResult) -> dict[str, Any]:
    """The result with its sums."""
    import msgspec

    sums = {"bytes_read": result.bytes_read, "bytes_written": result.bytes_written}
    return {**msgspec.to_builtins(result), **sums}


def complaints(miss: Miss | None) -> list[str]:
    """Why something had to be evaluated, and why it was not kept, a line each."""
    if miss is None:
        return []
    found = [f"not restored: {miss.reason}"] if miss.reason else []
    return found + ([f"not stored: {miss.not_stored}"] if miss.not_stored else [])


def describe(result: WarmResult) -> str:
    """One line: tokens restored and evaluated, bytes, clocks."""
    clocks = result.clocks
    read = f"read {clocks.read_s * 1000:.1f} ms, restore {clocks.restore_s * 1000:.1f} ms"
    stored = f"stored {result.bytes_written:,} bytes in {clocks.save_s * 1000:.1f} ms"
    if result.state == "ready":
        return (
            f"ready, {result.tokens:,} tokens are stored in {len(result.layers)} layer{'s' * (len(result.layers) != 1)} "
            f"(verified in {clocks.read_s * 1000:.1f} ms, no model loaded, 0 tokens evaluated, 0 bytes written)"
        )
    if result.state == "restored":
        wrote = stored if result.bytes_written else "0 bytes written"
        return f"restored {result.tokens:,} tokens, evaluated 0 ({read}, {wrote})"
    if result.state == "extended":
        return (
            f"restored {result.restored:,} of {result.tokens:,} tokens ({read}), "
            f"evaluated {result.evaluated:,} in {clocks.prefill_s:.2f} s, {stored}"
        )
    return f"prefilled {result.evaluated:,} tokens in {clocks.prefill_s:.2f} s, {stored}"
