"""What `carbon serve` makes of a real agent's first request: cold, after a restart of everything, and hot. One run, one body.

    python bench/serve.py --opencode BINARY [--model NAME] [--hot 200] [--clients 8] [--json FILE]
    python bench/serve.py --request FILE ...

The body is what the real OpenCode sends (caught by a server that answers one word), or a file. All times are a client's: from the request
to the first event with text or a tool call, as the server sends it (`--no-rescue`: text that may be a call would wait for its end). After a
restart the gateway has put the head into a slot; a second agent's comes from disk at its request. Overhead is a hot request through the
gateway against the same one asked of its llama-server itself, in turns. Ends with exit code 1 when a restart evaluated the head again, an
answer differs, a request failed or a head was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import http.server
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from carbon_mind import __version__, settings
from carbon_mind.cli import console
from carbon_mind.machine import cpu, usable_cores

PATIENCE_S = 1800


@dataclass(frozen=True, slots=True)
class Sample:
    """One request, as its client saw it."""

    phase: str
    ttft_s: float
    total_s: float
    head: str  # what the gateway did: prefilled, restored, hot
    cached: int  # tokens, by the server's own count
    evaluated: int  # likewise, the gateway's warming included
    text: str
    status: int


def catch(binary: Path, folder: Path) -> dict[str, Any]:
    """The first request of an OpenCode session in a small repository."""
    caught: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            caught.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            common = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            chunks: list[dict[str, Any]] = [
                {**common, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Yes."}}]},
                {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {**common, "choices": [], "usage": usage},
            ]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(
                "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"
            )

        def log_message(self, *_args: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    project, home = folder / "project", folder / "home"
    for place in (project, home / ".config" / "opencode"):
        place.mkdir(parents=True)
    (project / "AGENTS.md").write_text("# Rules\n\nRun the tests with pytest.\n")
    (project / "app.py").write_text("def add(a, b):\n    return a + b\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"http://127.0.0.1:{server.server_address[1]}/v1", "apiKey": "x"},
        "models": {"m": {"limit": {"context": 16384, "output": 512}}},
    }
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps({"provider": {"local": provider}}))
    names = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPENCODE")},
        **{f"OPENCODE_DISABLE_{name}": "1" for name in names},
        "HOME": str(home),
        "PWD": str(project),
    }
    command = [str(binary), "run", "--title", "t", "-m", "local/m", "Where is the function that adds two numbers?"]
    subprocess.run(
        command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=180, check=False
    )
    server.shutdown()
    if not caught:
        raise SystemExit(f"{binary} sent no request")
    return caught[-1]


@contextlib.contextmanager
def gateway(cache: Path, model: str | None) -> Iterator[tuple[str, int]]:
    """`carbon serve` while the context lasts: its address, and its process."""
    command = [sys.executable, "-m", "carbon_mind", "serve", "--port", "0", "--json", "--no-rescue"] + (
        ["--model", model] if model else []
    )
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "CARBON_CACHE_DIR": str(cache)},
    )
    try:
        told = ""
        while process.stdout is not None and not told.endswith("}\n"):
            line = process.stdout.readline()
            if not line:
                raise SystemExit("carbon serve did not start")
            told += line
        yield json.loads(told)["url"].removesuffix("/v1"), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(url: str, body: dict[str, Any], phase: str, session: str) -> Sample:
    """One streamed request."""
    headers = {"User-Agent": "opencode/bench", "x-session-affinity": session}
    started = time.perf_counter()
    first, head, warmed = 0.0, "", 0
    texts: list[str] = []
    timings: dict[str, Any] = {}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE_S) as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            timings = event.get("timings") or timings
            delta = event["choices"][0]["delta"] if event.get("choices") else {}
            said = (delta.get("content") or "") + json.dumps(delta.get("tool_calls") or "")
            if said != '""':
                first = first or time.perf_counter() - started
                calls = [(call.get("function") or {}) for call in delta.get("tool_calls") or ()]
                texts.append((delta.get("content") or "") + "".join(str(call.get("arguments") or "") for call in calls))
        head = answer.headers.get("x-carbon-head", "")
        warmed = int(answer.headers.get("x-carbon-evaluated-tokens", 0))
    total = time.perf_counter() - started
    evaluated = timings.get("prompt_n", 0) + warmed
    return Sample(phase, first, total, head, timings.get("cache_n", 0), evaluated, "".join(texts), answer.status_code)


def resident(pid: int) -> int:
    """Bytes of memory of a process; 0 where the system does not say."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS")), 0)


def overhead(url: str, body: dict[str, Any], rounds: int) -> tuple[list[float], list[float]]:
    """TTFT of hot requests through the gateway, and of the same ones asked of its server, in turns."""
    direct = httpx.get(f"{url}/carbon/status").json()["upstream"]["url"]
    slot = next(
        item["slot"] for item in httpx.get(f"{url}/carbon/status").json()["slots"] if item["session"].endswith("hot")
    )
    through, plain = [], []
    for _ in range(rounds):
        through.append(ask(url, body, "through", "hot").ttft_s)
        plain.append(ask(direct, {**body, "id_slot": slot, "cache_prompt": True}, "plain", "").ttft_s)
    return through, plain


def run(body: dict[str, Any], model: str | None, hot: int, clients: int, output: Path | None) -> int:
    """Measure, print, write the raw numbers."""
    body = {**body, "temperature": 0, "max_tokens": 24, "stream": True}
    short = {**body, "max_tokens": 2}
    values = settings.load(None, {"model": model})
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="carbon-bench-", dir=values.cache) as folder:
        cache = Path(folder)
        (cache / "models").symlink_to(values.models)
        with gateway(cache, model) as (url, _):
            samples.append(ask(url, body, "cold", "first"))
            head = httpx.get(f"{url}/carbon/status").json()["tokens"]["evaluated"]
            console.step(f"cold: first token after {samples[-1].ttft_s:.1f} s")
        for number in range(3):
            with gateway(cache, model) as (url, _):
                samples.append(ask(url, body, "restarted", f"again-{number}"))
                console.step(f"restarted: first token after {samples[-1].ttft_s:.2f} s")
                samples.append(ask(url, body, "other slot", f"other-{number}"))
                console.step(f"a second agent: first token after {samples[-1].ttft_s:.2f} s")
        with gateway(cache, model) as (url, pid):
            samples.append(ask(url, short, "restarted-short", "hot"))
            before = resident(pid)
            samples += [ask(url, short, "hot", "hot") for _ in range(hot)]
            after = resident(pid)
            console.step(f"hot: {hot} requests")
            through, plain = overhead(url, short, 40)
            with ThreadPoolExecutor(clients) as pool:
                found = pool.map(
                    lambda i: [ask(url, short, "at once", f"client-{i}") for _ in range(3)], range(clients)
                )
                samples += [sample for group in found for sample in group]
            status = httpx.get(f"{url}/carbon/status").json()
    cold, again = samples[0], [sample for sample in samples if sample.phase == "restarted"]
    other = [sample for sample in samples if sample.phase == "other slot"]
    here = cpu()
    over_ms = 1000 * (statistics.median(through) - statistics.median(plain))
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "carbon": __version__,
        "model": model or "default",
        "machine": f"{here.model}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        "command": " ".join(["python", "bench/serve.py", *(Path(part).name for part in sys.argv[1:])]),
        "head_tokens_evaluated_cold": head,
        "overhead_ms": over_ms,
        "resident_before": before,
        "resident_after": after,
        "status": {
            name: status[name] for name in ("requests", "hit_rate", "tokens", "lost_heads", "restarts", "cancelled")
        },
    }
    middle = statistics.median(sample.ttft_s for sample in again)
    hots = [sample for sample in samples if sample.phase == "hot"]
    crowd = [sample for sample in samples if sample.phase == "at once"]
    rows = [
        ("cold", f"{cold.ttft_s:.2f}", f"{head:,}", "1"),
        ("restarted", f"{middle:.2f}", f"{max(sample.evaluated for sample in again):,}", str(len(again))),
        (
            "a second agent then",
            f"{statistics.median(s.ttft_s for s in other):.2f}",
            f"{max(s.evaluated for s in other):,}",
            str(len(other)),
        ),
        (
            "hot",
            f"{statistics.median(s.ttft_s for s in hots):.3f}",
            f"{max(s.evaluated for s in hots):,}",
            str(len(hots)),
        ),
        (
            f"{clients} at once",
            f"{statistics.median(s.ttft_s for s in crowd):.2f}",
            f"{max(s.evaluated for s in crowd):,}",
            str(len(crowd)),
        ),
    ]
    console.data(console.table(("", "first token, s (median)", "evaluated (most)", "requests"), rows))
    console.data(
        f"\n{facts['machine']}; after a restart {cold.ttft_s / middle:,.0f} times sooner; overhead of a hot request {over_ms:.1f} ms; "
        f"resident {before / 1e6:.0f} -> {after / 1e6:.0f} MB; heads lost: {status['lost_heads']}\n"
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(
            json.dumps(
                {**facts, "through_s": through, "plain_s": plain, "samples": [asdict(sample) for sample in samples]},
                indent=1,
            )
            + "\n"
        )
    same = all(sample.text == cold.text for sample in (*again, *other))
    fine = same and all(sample.status == 200 for sample in samples) and not status["lost_heads"]
    if not same:
        console.step(f"the answers differ: {cold.text!r}, {[sample.text for sample in again]!r}")
    return 0 if fine and max(sample.evaluated for sample in (*again, *other)) <= 128 else 1


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--opencode", type=Path, metavar="BINARY", help="catch the request of this OpenCode")
    parser.add_argument("--request", type=Path, metavar="FILE", help="a body to send instead")
    parser.add_argument("--model", help="registry name or path (default: as `carbon serve`)")
    parser.add_argument("--hot", type=int, default=200, help="hot requests in sequence (default: 200)")
    parser.add_argument("--clients", type=int, default=8, help="clients at once (default: 8)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers")
    chosen = parser.parse_args()
    if chosen.request is not None:
        body = json.loads(chosen.request.read_text())
    elif chosen.opencode is not None:
        with tempfile.TemporaryDirectory() as folder:
            body = catch(chosen.opencode, Path(folder))
    else:
        parser.error("give --opencode or --request")
    return run(body, chosen.model, chosen.hot, chosen.clients, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
