"""Find out in a child process whether the engine survives its first decode on this machine.

A native build on a CPU that advertises AMX to a guest which may not use it dies with SIGSEGV in the first matrix product; no
`try` helps against that. So, once per (engine build, CPU, kind of model), a child loads the model and evaluates one batch. If it
dies, a second child tries without llama.cpp's extra buffer types, which is where the AMX kernels live. The verdict is kept in the
user's cache folder; `carbon doctor` shows it.

    python -m carbon_mind.engine.probe MODEL 0|1      the child: exit 0 = survived (0|1: extra buffer types off or on)
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from carbon_mind.errors import EngineCrashes, StorageProblem
from carbon_mind.machine import cpu
from carbon_mind.safety.files import atomic_write

Outcome = Literal["full", "without-extra-buffers", "crashes"]
TIMEOUT_S = 600.0
BATCH = 64
"""Tokens in the child's batch: more than 32, below which llama.cpp may take another kernel than in a real prefill."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the probe found. `detail` says how the first child ended, "" when it survived."""

    outcome: Outcome
    detail: str = ""


def verdict_key(build: str, model_kind: str) -> str:
    """Names everything a verdict depends on: engine build, CPU, and kind of model (architecture and quantisation)."""
    here = cpu()
    text = "\n".join((build, here.model, " ".join(here.features), model_kind))
    return hashlib.sha256(text.encode()).hexdigest()


def read_verdicts(path: Path) -> dict[str, Verdict]:
    """The cached verdicts; a file that cannot be read or understood is as good as none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Verdict])
    except (OSError, msgspec.MsgspecError):
        return {}


def _child(model: Path, extra_buffers: bool) -> list[str]:
    return [sys.executable, "-m", "carbon_mind.engine.probe", str(model), "1" if extra_buffers else "0"]


def _run(argv: Sequence[str]) -> str:
    """How the child ended: "" when it survived."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        try:
            return f"killed by {signal.Signals(-done.returncode).name}"
        except ValueError:
            return f"killed by signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"exit status {done.returncode}" + (f": {lines[-1]}" if lines else "")


def probe(
    model: Path, key: str, cache: Path, *, command: Callable[[Path, bool], Sequence[str]] = _child, again: bool = False
) -> Verdict:
    """The verdict for `key`, from the cache or by running up to two children; only clear verdicts are remembered.

    A child that ends by itself with an error (a damaged model, no memory) says nothing about the CPU: the verdict is then
    "full" with the detail, uncached, and the parent meets the same error with its full message. `command` makes the child's
    argv; `again` probes although a verdict is known.
    """
    known = read_verdicts(cache)
    if key in known and not again:
        return known[key]
    first = _run(command(model, True))
    if not first:
        verdict = Verdict("full")
    elif not first.startswith("killed by"):
        return Verdict("full", first)
    else:
        verdict = Verdict("crashes" if _run(command(model, False)) else "without-extra-buffers", first)
    with contextlib.suppress(StorageProblem):  # a cache that cannot be written costs another probe
        atomic_write(cache, msgspec.json.encode(known | {key: verdict}), mode=0o600)
    return verdict


def require(verdict: Verdict) -> bool:
    """Whether extra buffer types may be used. Raises EngineCrashes when the engine dies either way."""
    if verdict.outcome == "crashes":
        raise EngineCrashes(
            f"llama.cpp dies in its first decode on this machine ({verdict.detail}), also without extra buffer types",
            hint="rebuild it for a plainer CPU: CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-binary "
            "llama-cpp-python llama-cpp-python; then `carbon doctor --probe`",
        )
    return verdict.outcome == "full"


def main(argv: Sequence[str]) -> int:
    """The child: load, evaluate one batch, leave."""
    from carbon_mind.engine.base import EngineOptions
    from carbon_mind.engine.llama import LlamaEngine
    from carbon_mind.errors import CarbonError

    try:
        engine = LlamaEngine(EngineOptions(model=Path(argv[0]), n_ctx=512), extra_buffers=argv[1] == "1")
        engine.prefill(engine.tokenize("probe " * BATCH)[:BATCH])
        engine.close()
    except CarbonError as problem:
        print(problem.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
