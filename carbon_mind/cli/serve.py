"""`carbon serve`, `carbon status`, and `carbon warm --client`: the gateway, and what is asked of one that runs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import msgspec

from carbon_mind.cli import console
from carbon_mind.cli.common import print_json, settings_only
from carbon_mind.errors import CarbonError, EngineProblem, UsageProblem
from carbon_mind.safety.files import atomic_write, private_dir, read_regular
from carbon_mind.safety.text import clean
from carbon_mind.settings import Settings
from carbon_mind.values import RepoPath

if TYPE_CHECKING:
    import uvicorn
    from anyio.abc import TaskStatus

    from carbon_mind.serve.gateway import Gateway
    from carbon_mind.serve.upstream import Server

INSTALL_HINT = "install it with `pip install 'carbon-mind[server]'` (prebuilt, nothing is compiled)"
PORT = 8137
_RUNNING = "running.json"
_SETTINGS = "settings.json"
_DECIDING = (
    "model",
    "n_ctx",
    "slots",
    "normalize",
    "type_k",
    "type_v",
    "flash_attention",
    "gpu_layers",
    "llama_server",
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Running(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a gateway that runs is reached, for the other commands of the same user."""

    url: str
    pid: int
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What `carbon serve` was told."""

    settings: Settings
    repo: Path | None
    host: str
    port: int
    key: str
    upstream: str | None
    upstream_key: str | None
    slots_dir: Path | None
    warm: bool
    json: bool


def run_serve(wanted: Wanted) -> None:
    """Serve until interrupted. Raises CarbonError before anything is served."""
    if wanted.host not in _LOOPBACK and not wanted.key:
        raise UsageProblem(
            f"listening on {wanted.host} lets others in, so clients have to show a key",
            hint="set --api-key (or CARBON_API_KEY), or leave out --host",
        )
    gateway = _gateway(wanted.settings, wanted.repo, wanted.upstream, wanted.upstream_key, wanted.slots_dir, wanted.key)
    listening = _listen(wanted.host, wanted.port)
    anyio.run(_serve, gateway, listening, wanted)


def _gateway(
    settings: Settings,
    repo: Path | None,
    upstream: str | None,
    upstream_key: str | None = None,
    slots_dir: Path | None = None,
    key: str = "",
) -> Gateway:
    try:
        import starlette  # noqa: F401 - whether it is there
        import uvicorn  # noqa: F401

        from carbon_mind.serve.gateway import Gateway
        from carbon_mind.serve.upstream import Upstream
    except ModuleNotFoundError as missing:
        raise UsageProblem(f"the gateway needs the package {missing.name}", hint=INSTALL_HINT) from missing
    talk = console.Talk()
    source = Upstream(settings, talk, url=upstream, slots=slots_dir, key=upstream_key)
    return Gateway(settings, talk, source, repo=repo, key=key, log=console.step)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as refused:
        raise UsageProblem(
            f"cannot listen on {host}, port {port}: {refused.strerror}",
            hint="choose another --port; 0 takes a free one",
        ) from refused


async def _serve(gateway: Gateway, listening: socket.socket, wanted: Wanted) -> None:
    try:
        console.step("starting the server and loading the model")
        server = await gateway.server()
        ready = await gateway.preload()
        await _answer(gateway, server, ready, listening, wanted)
    finally:
        listening.close()
        with anyio.CancelScope(shield=True):
            await gateway.close()
    console.step("stopped")


async def _answer(gateway: Gateway, server: Server, ready: int, listening: socket.socket, wanted: Wanted) -> None:
    import uvicorn

    from carbon_mind.serve.http import application

    host, port = listening.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    config = uvicorn.Config(
        application(gateway, host=wanted.host),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        lifespan="off",
    )
    http = uvicorn.Server(config)
    with _announced(gateway.settings, url, wanted.key):
        async with anyio.create_task_group() as tasks:
            if sys.platform != "win32":
                http.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment] # we receive them
                await tasks.start(_end_on_signal, http)
            if wanted.json:
                print_json({"url": f"{url}/v1", "model": server.model, "kind": server.kind, "n_ctx": server.n_ctx})
            stored = (
                "" if server.identity is not None else "; its states cannot be stored: a head is evaluated to warm it"
            )
            console.step(
                f"serving {server.model or server.url} on {url}/v1: {len(server.engines)} slots of {server.n_ctx:,} tokens{stored}"
                + (f"; {ready} head{'s' * (ready != 1)} restored" if ready else "")
            )
            if wanted.warm:
                tasks.start_soon(_warm_first, gateway)
            await http.serve(sockets=[listening])
            tasks.cancel_scope.cancel()


async def _end_on_signal(http: uvicorn.Server, *, task_status: TaskStatus[None]) -> None:
    """End as Ctrl-C and service managers want it, whenever they do: answers under way get a moment, a second signal takes it."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            http.force_exit = http.should_exit
            http.should_exit = True


async def _warm_first(gateway: Gateway) -> None:
    try:
        for done in await gateway.warm_heads():
            console.step(_told(msgspec.to_builtins(done)))
    except CarbonError as problem:
        console.notice(f"not warmed: {problem.message}")


@contextlib.contextmanager
def _announced(settings: Settings, url: str, key: str) -> Iterator[None]:
    """Leave a private note where the other commands look for a gateway."""
    folder = private_dir(settings.cache / "gateway")
    atomic_write(folder / _RUNNING, msgspec.json.encode(Running(url, os.getpid(), key)), mode=0o600)
    atomic_write(folder / _SETTINGS, msgspec.json.encode(settings), mode=0o600)
    try:
        yield
    finally:
        found = running(settings)
        if found is not None and found.pid == os.getpid():
            (folder / _RUNNING).unlink(missing_ok=True)


def running(settings: Settings) -> Running | None:
    """The note of the gateway that was started last; None where there is none."""
    try:
        return msgspec.json.decode(read_regular(settings.cache / "gateway", RepoPath(_RUNNING), 4096), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None


def ask(
    settings: Settings, method: str, path: str, body: dict[str, Any] | None = None, *, patience_s: float = 10
) -> Any:
    """What the gateway that runs answers; None where none does. Raises EngineProblem for what it refuses."""
    found = running(settings)
    if found is None:
        return None
    try:
        answer = httpx.request(
            method,
            found.url + path,
            json=body,
            headers={"Authorization": f"Bearer {found.key}"} if found.key else None,
            timeout=httpx.Timeout(patience_s, connect=2),
            trust_env=False,
        )
    except httpx.ConnectError:
        return None
    except httpx.HTTPError as broken:
        raise EngineProblem(
            f"the gateway at {found.url} does not answer: {str(broken) or type(broken).__name__}"
        ) from broken
    if answer.status_code != 200:
        raise EngineProblem(f"the gateway at {found.url} refused: {_message(answer)}")
    return answer.json()


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP status {answer.status_code}"


def _last(folder: Path) -> dict[str, Any]:
    """How the gateway was set that ran last: states are kept for each setting, and those shall be found again."""
    try:
        found = msgspec.json.decode(read_regular(folder, RepoPath(_SETTINGS), 65536), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return {}
    return {name: found[name] for name in _DECIDING if found.get(name) is not None}


# --- carbon status -----------------------------------------------------------------------------------------------


def run_status(*, json: bool) -> None:
    """Say what the gateway does and did. Raises CarbonError."""
    found = ask(settings_only(), "GET", "/carbon/status")
    if found is None:
        raise EngineProblem("no gateway runs", hint="start one: carbon serve")
    if json:
        print_json(found)
        return
    upstream, tokens = found["upstream"] or {}, found["tokens"]
    rate = f"{found['hit_rate'] * 100:.0f} %" if found["hit_rate"] is not None else "no request with a head yet"
    rows = [
        (
            "server",
            f"{upstream.get('engine') or upstream.get('kind')}, {upstream.get('model')}, {upstream.get('n_ctx', 0):,} tokens a slot",
        ),
        ("requests", ", ".join(f"{name} {count}" for name, count in found["requests"].items()) or "none"),
        ("hit rate", rate),
        ("tokens", ", ".join(f"{name} {count:,}" for name, count in tokens.items())),
        ("saved", f"about {found['seconds_saved']:,.0f} s"),
        (
            "first token",
            f"{found['ttft_median_s']:.2f} s (median)" if found["ttft_median_s"] is not None else "none yet",
        ),
        ("snapshots", f"{found['snapshots']['count']}, {found['snapshots']['bytes'] / 1e6:,.0f} MB"),
        ("tool calls", f"{found['rescued_tool_calls']} rescued"),
        (
            "trouble",
            f"{found['lost_heads']} heads lost, {found['restarts']} restarts, {found['cancelled']} clients gone",
        ),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    for slot in found["slots"]:
        whose = clean(slot["session"], limit=80) or "nobody's"
        what = "beside" if slot["beside"] else f"head {slot['head']}" if slot["head"] else "no head"
        lines.append(f"slot {slot['slot']}".ljust(width) + f"  {whose}, {what}{', busy' if slot['busy'] else ''}")
    label = "head".ljust(width)
    lines += [
        f"{label}  {head['client']} {head['mode']} {clean(head['directory']) or '(no directory)'}, {clean(head['model'])}"
        for head in found["heads"]
    ]
    console.data("\n".join(lines) + "\n")


# --- carbon warm --client ------------------------------------------------------------------------------------------


def run_warm(client: str, mode: str | None, given: dict[str, Any], *, json: bool) -> None:
    """Warm the heads of a client, in the gateway that runs or else in one of our own, as the last one was set. Raises CarbonError."""
    folder = settings_only().cache / "gateway"
    settings = settings_only(**{**_last(folder), **{name: value for name, value in given.items() if value is not None}})
    talk = console.Talk()
    wanted = {"client": None if client == "all" else client, "mode": mode}
    done = _asked(settings, wanted, talk) if running(settings) is not None else None
    if done is None:
        done = msgspec.to_builtins(anyio.run(_alone, settings, wanted, talk))
    talk.close()
    if not done:
        raise UsageProblem(
            f"no head of {client} is known{f' in mode {mode}' if mode else ''}",
            hint="let it work through `carbon serve` once; `carbon status` lists the heads that are known",
        )
    if json:
        print_json(done)
        return
    for item in done:
        console.data(_told(item) + "\n")
    if volatile := sorted({rule for item in done for rule in item["volatile"]}):
        console.step(
            f"what changes by the day stands before what does not ({', '.join(volatile)}): with --normalize, here and for "
            "`carbon serve`, it moves behind it and costs nothing"
        )


def _asked(settings: Settings, wanted: dict[str, str | None], talk: console.Talk) -> Any:
    """Ask the gateway; meanwhile, look how far it is."""
    import threading

    ended = threading.Event()
    progress = talk.progress("prefill")

    def look() -> None:
        while not ended.wait(1):
            with contextlib.suppress(EngineProblem):
                state = (ask(settings, "GET", "/carbon/status") or {}).get("warming") or {}
                if state.get("total"):
                    progress(state["done"], state["total"])

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        return ask(settings, "POST", "/carbon/warm", wanted, patience_s=3600)
    finally:
        ended.set()
        watcher.join()


async def _alone(settings: Settings, wanted: dict[str, str | None], talk: console.Talk) -> list[dict[str, Any]]:
    gateway = _gateway(settings, None, None)
    if not any(True for head in gateway.heads.all() if wanted["client"] in (None, head.client)):
        return []
    progress = talk.progress("prefill")

    async def look() -> None:
        while True:
            await anyio.sleep(0.5)
            if gateway.warming[1]:
                progress(*gateway.warming)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            done = await gateway.warm_heads(wanted["client"], wanted["mode"])
            tasks.cancel_scope.cancel()
        return done
    finally:
        with anyio.CancelScope(shield=True):
            await gateway.close()


def _told(item: dict[str, Any]) -> str:
    result = item["result"] or {}
    counts = ""
    if result:
        took = result["clocks"]["prefill_s"]
        counts = f", {result['restored']:,} tokens restored, {result['kept']:,} kept, {result['evaluated']:,} evaluated in {took:.1f} s"
    return f"{item['client']} {item['mode']} {clean(item['directory']) or '(no directory)'}: {item['state']}{counts}"


def refreshed(settings: Settings) -> str:
    """After the digest of a repository changed: have a gateway that runs warm its heads; what came of it, "" where none runs."""
    started = time.perf_counter()
    try:
        done = ask(settings, "POST", "/carbon/warm", {}, patience_s=3600)
    except EngineProblem as problem:
        return f"not warmed: {problem.message}"
    return "" if done is None else f"warmed {len(done)} heads in {time.perf_counter() - started:.1f} s"
