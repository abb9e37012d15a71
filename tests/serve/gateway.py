"""`carbon serve` in a process of its own, with a real llama-server behind it, and a client that counts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.cli.test_commands import CARBON

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a file. " * 12,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
RULES = "You are an agent that works on a repository. " + "Be exact, name files, and do not guess. " * 30


@dataclass
class Answer:
    """What came back, counted by the server itself."""

    status: int
    headers: dict[str, str]
    raw: bytes
    events: list[dict[str, Any]] = field(default_factory=list)
    cached: int = -1
    evaluated: int = -1  # behind the gateway's own work
    text: str = ""

    @property
    def head(self) -> str:
        """What became of the head."""
        return self.headers.get("x-carbon-head", "")

    @property
    def restored(self) -> int:
        """Tokens from disk."""
        return int(self.headers.get("x-carbon-restored-tokens", 0))

    @property
    def cost(self) -> int:
        """All tokens that were evaluated for it."""
        return self.evaluated + int(self.headers.get("x-carbon-evaluated-tokens", 0))


@dataclass
class Serving:
    """A gateway that runs."""

    url: str
    process: subprocess.Popen[str]
    log: list[str]

    def ask(
        self,
        *messages: dict[str, Any],
        session: str = "s",
        tools: list[dict[str, Any]] | None = None,
        agent: str = "opencode/1",
        stream: bool = True,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> Answer:
        """One chat request."""
        body = {"model": "m", "messages": list(messages), "tools": [TOOL] if tools is None else tools, "max_tokens": 4}
        body |= {"temperature": 0, "stream": stream, **fields}
        given = {"User-Agent": agent, **({"x-session-affinity": session} if session else {}), **(headers or {})}
        return self.post("/v1/chat/completions", body, given)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
        """Any POST."""
        answer = httpx.post(self.url + path, json=body, headers=headers, timeout=120)
        found = Answer(answer.status_code, dict(answer.headers), answer.content)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
            found.events = [json.loads(line) for line in lines]
        elif answer.status_code == 200:
            found.events = [answer.json()]
        for event in found.events:
            if timings := event.get("timings"):
                found.cached, found.evaluated = timings["cache_n"], timings["prompt_n"]
            for choice in event.get("choices") or ():
                said = choice.get("delta") or choice.get("message") or {}
                found.text += said.get("content") or ""
        return found

    def status(self) -> dict[str, Any]:
        """What it says of itself."""
        found: dict[str, Any] = httpx.get(f"{self.url}/carbon/status", timeout=30).json()
        return found

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(*args: str | Path, env: dict[str, str] | None = None, code: str = "") -> Iterator[Serving]:
    """`carbon serve` on a free port while the context lasts; `code` is run instead of the command's own."""
    process = subprocess.Popen(
        [*([sys.executable, "-c", code] if code else CARBON), "serve", "--port", "0", "--json", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    log: list[str] = []

    def listen() -> None:
        log.extend(line.rstrip() for line in process.stderr or ())

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        told = ""
        while not told.endswith("}\n"):
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                listener.join(10)
                raise AssertionError("\n".join(log))
            told += line
        yield Serving(json.loads(told)["url"].removesuffix("/v1"), process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        listener.join(10)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        assert not any("Traceback" in line for line in log), "\n".join(log)


def system(text: str = RULES) -> dict[str, Any]:
    """A system message."""
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, Any]:
    """A word of the user."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """An answer."""
    return {"role": "assistant", "content": text}


def eventually(check: Any, seconds: float = 20) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not become so"
        time.sleep(0.05)
