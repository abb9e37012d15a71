"""The server behind the gateway: a llama-server of our own, somebody's llama-server, or anything else that speaks OpenAI's API.

Of our own we see the slot files, so its states can be stored and restored; it is started again when it died. Of somebody's llama-server we
do so only where its folder of slot files was named; otherwise a head is warmed by evaluating it. Anything else is passed through.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import httpx
import msgspec

from carbon_mind import opening
from carbon_mind.engine.server import PATIENCE_S, ServerEngine
from carbon_mind.engine.serving import Running
from carbon_mind.errors import EngineProblem, ModelProblem, UsageProblem
from carbon_mind.opening import Listener
from carbon_mind.prefix.assemble import Chat, prompt_policy
from carbon_mind.serve.wire import digest_of
from carbon_mind.settings import Settings
from carbon_mind.values import Identity

CONTEXT = 16384
"""Tokens of a slot where the settings leave it open: an agent's head and some turns."""
Kind = Literal["own", "llama-server", "other"]
_IDENTITY = ("build_info", "model_alias", "model_ftype", "model_path", "total_slots", "chat_template")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers now. `identity` is None where no state can be stored."""

    kind: Kind
    url: str
    engines: tuple[ServerEngine, ...] = ()  # one for each slot
    identity: Identity | None = None
    model: str = ""  # file name, or what the server calls it
    n_ctx: int = 0  # tokens of a slot
    rollback: bool = False
    running: Running | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs, as far as it is ours."""
        process = self.running.process if self.running is not None else None
        return process is None or process.poll() is None


class Upstream:
    """Gives the server, and starts it again when it is gone. Each method raises CarbonError."""

    def __init__(
        self,
        settings: Settings,
        report: Listener,
        *,
        url: str | None = None,
        slots: Path | None = None,
        key: str | None = None,
    ) -> None:
        """Nothing is started yet. `url` is somebody's server, `slots` the folder of its slot files, `key` what it wants to see."""
        self._settings = settings
        self._report = report
        self._url = url.rstrip("/").removesuffix("/v1") if url else None
        self._slots = slots
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._stack = contextlib.ExitStack()
        self._server: Server | None = None
        self._starting = anyio.Lock()
        self.starts = 0

    async def server(self) -> Server:
        """The server, started if it does not run."""
        async with self._starting:
            if self._server is None or not self._server.alive:
                if self._server is not None:
                    self._report.notice("llama-server has ended; it is started again")
                self._server = await anyio.to_thread.run_sync(self._start)
                self.starts += 1
            return self._server

    @property
    def now(self) -> Server | None:
        """The server as it was last seen."""
        return self._server

    def close(self) -> None:
        """End what is ours."""
        self._stack.close()
        self._server = None

    # --- starting ---

    def _start(self) -> Server:
        self._stack.close()
        if self._url is None:
            return self._own()
        running = Running(self._url, "", "", self._slots, {})
        props = self._props(self._url)
        if props is None:
            return Server("other", self._url)
        return self._attached(running, props)

    def _own(self) -> Server:
        from carbon_mind.models import model_sha256

        settings = self._settings
        model = opening.model_path(settings)
        header = opening.check_model(model)
        context = min(CONTEXT, header.context_length or CONTEXT)
        running, _ = opening.start_server(
            settings, model, self._report, self._stack, slots=settings.slots, context=context
        )
        engines = self._engines(running, settings.slots, rollback=header.rollback)
        sha256 = model_sha256(model, settings.cache / "model-hashes.json")
        return self._described("own", running, engines, sha256, model.name)

    def _attached(self, running: Running, props: dict[str, Any]) -> Server:
        from carbon_mind.models import check_header, model_sha256

        count = int(props.get("total_slots") or 1)
        model = Path(str(props.get("model_path") or ""))
        build = digest_of(*(props.get(name) for name in _IDENTITY))
        running = replace(running, engine=f"llama-server {props.get('build_info')}", build=build)
        rollback, sha256 = False, ""
        if model.is_file():
            with contextlib.suppress(ModelProblem):
                rollback = check_header(model).rollback
                sha256 = model_sha256(model, self._settings.cache / "model-hashes.json") if self._slots else ""
        if self._slots is not None and not (self._slots.is_dir() and sha256):
            raise UsageProblem(
                f"states of {self._url} cannot be stored: {self._slots} is no directory, or its model {model} cannot be read",
                hint="name the folder that the server was given as --slot-save-path, on this machine; or leave it out",
            )
        engines = self._engines(running, count, rollback=rollback)
        return self._described(
            "llama-server", running, engines, sha256, model.name or str(props.get("model_alias", ""))
        )

    def _engines(self, running: Running, count: int, *, rollback: bool) -> tuple[ServerEngine, ...]:
        found = []
        for slot in range(count):
            engine = ServerEngine(
                running, slot=slot, rollback=rollback, n_batch=self._settings.n_batch, headers=self.headers
            )
            self._stack.callback(engine.close)
            found.append(engine)
        return tuple(found)

    def _described(
        self, kind: Kind, running: Running, engines: tuple[ServerEngine, ...], sha256: str, model: str
    ) -> Server:
        info = engines[0].info
        identity = None
        if sha256 and running.slots is not None:
            chat = Chat(info.chat_template, info.bos_token, info.eos_token, info.special_tokens)
            identity = replace(engines[0].fingerprint(sha256), prompt=prompt_policy(chat))
        return Server(kind, running.url, engines, identity, model, info.n_ctx, info.rollback, running)

    def _props(self, url: str) -> dict[str, Any] | None:
        """What a llama-server says of itself; None for another kind. Raises EngineProblem where nobody answers."""
        try:
            answer = httpx.get(f"{url}/props", headers=self.headers, timeout=30, trust_env=False)
        except httpx.HTTPError as broken:
            raise EngineProblem(
                f"{url} does not answer: {str(broken) or type(broken).__name__}",
                hint="start it first, or correct --upstream",
            ) from broken
        try:
            props = msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            return None
        return props if answer.status_code == 200 and "default_generation_settings" in props else None


def client(headers: dict[str, str]) -> httpx.AsyncClient:
    """The HTTP client of the gateway. Nothing of the environment (proxies) gets between it and a server on this machine.

    Each request has a connection of its own: llama-server closes one after 5 seconds or 100 requests, and a request that is on its way
    then is lost.
    """
    return httpx.AsyncClient(
        timeout=httpx.Timeout(PATIENCE_S, connect=10),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        headers=headers,
        trust_env=False,
    )
