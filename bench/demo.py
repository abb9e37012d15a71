"""The whole product on this repository, step by step: `make demo` runs it once everything is installed.

Each step is a command that a person could type; it is shown before it runs.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARBON = str(Path(sys.executable).parent / "carbon")

STEPS = (
    ("distil this repository into a digest: about a second, and nothing the second time", [CARBON, "mind", "--print"]),
    ("prefill the digest and store the KV state: some seconds, once for each digest and model", [CARBON, "warm"]),
    ("the same again: nothing changed, so what is stored is verified and no model is loaded", [CARBON, "warm"]),
    ("the proof, as the next session would: restored, 0 tokens evaluated", [CARBON, "warm", "--prove"]),
    (
        "ask from the restored state: some seconds, with a very small model",
        [CARBON, "ask", "Which command runs the tests?", "--max-tokens", "48"],
    ),
    (
        "compare the first token, cold and restored, three times each: about half a minute",
        [sys.executable, "bench/ttft.py", "--repeat", "3"],
    ),
)


def main() -> int:
    """Run the steps; stop at the first that fails."""
    for why, command in STEPS:
        shown = shlex.join([Path(command[0]).name, *command[1:]])
        print(f"\n--- {why}\n$ {shown}", file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode != 0:
            print(f"--- that step failed with exit code {done.returncode}", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
