"""One request on its way: an ASGI response that asks the server behind the gateway and relays what it says, byte for byte.

Three things go on at once: the work, the sending, and the watch for a client that goes away. When it does, the work is cancelled, which
closes the connection to the server, which stops. A head that is being evaluated stops at the end of a batch; what is done is done, and
the next request goes on from there.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping

import anyio
import httpx
import msgspec
from starlette.types import Message, Receive, Scope, Send

from carbon_mind.errors import CarbonError
from carbon_mind.safety.text import clean
from carbon_mind.serve.gateway import PING_S, Abandoned, Gateway, Work
from carbon_mind.serve.rescue import Stream, Tools, rescue_answer
from carbon_mind.serve.slots import Wish
from carbon_mind.serve.upstream import Server
from carbon_mind.serve.wire import Chat, Counts, Events, compose, counts_of, data_of, with_fields

HOP = frozenset(
    (
        *(
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
            "trailer",
            "transfer-encoding",
        ),
        *("upgrade", "host", "content-length", "accept-encoding", "date", "server"),
    )
)
"""Headers that concern one connection, or that each side sets by itself."""
_EVENTS = "text/event-stream"


class Turn:
    """A request that a model answers. As an ASGI application it is its own response."""

    def __init__(self, gateway: Gateway, path: str, headers: Mapping[str, str], body: bytes, chat: Chat | None) -> None:
        """`path` with its query; `chat` is the body where it is one."""
        self.gateway = gateway
        self.path = path
        self.headers = headers
        self.body = body
        self.chat = chat
        self.arrived = time.perf_counter()
        self.gone = threading.Event()
        self.told = [0, 0]  # tokens of the head that were evaluated, and how many there are to do
        self.status = 0
        self.answer_headers: list[tuple[str, str]] = []
        self._begun = anyio.Event()
        self._scope = anyio.CancelScope()
        self._watching = anyio.CancelScope()
        self._done = False
        self._early = False  # events were sent before the server had said anything
        self._out, self._in = anyio.create_memory_object_stream[bytes](32)
        self.first_s = math.nan
        self.counts = Counts()
        self.work: Work | None = None
        self.slot = -1

    # --- as a response -------------------------------------------------------------------------------------------

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, receive)
            tasks.start_soon(self._run)
            try:
                await self._send(send)
            finally:
                if not self._done:
                    self._leave()
            self._watching.cancel()

    async def _watch(self, receive: Receive) -> None:
        with self._watching:
            while True:
                message: Message = await receive()
                if message["type"] == "http.disconnect":
                    self._leave()
                    return

    def _leave(self) -> None:
        if not self._done:
            self.gone.set()
            self._scope.cancel()

    async def _send(self, send: Send) -> None:
        async with self._in:
            self._early = early = await self._silent()
            if early:
                self.answer_headers = [("content-type", _EVENTS), ("cache-control", "no-cache")]
            headers = [
                (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in self.answer_headers
            ]
            await send(
                {"type": "http.response.start", "status": 200 if early else self.status or 499, "headers": headers}
            )
            while early and not self._begun.is_set():
                done, total = self.told
                ping = f": evaluating the head, {done} of {total} tokens\n\n"
                await send({"type": "http.response.body", "body": ping.encode(), "more_body": True})
                with anyio.move_on_after(PING_S):
                    await self._begun.wait()
            async for chunk in self._in:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _silent(self) -> bool:
        """Whether the answer begins before the server has said anything: who waits for events is not left in silence."""
        if self.chat is None or not self.chat.stream:
            await self._begun.wait()
            return False
        with anyio.move_on_after(PING_S):
            await self._begun.wait()
        return not self._begun.is_set()

    async def _put(self, data: bytes) -> None:
        try:
            await self._out.send(data)
        except anyio.BrokenResourceError:  # nobody reads any more
            self._leave()

    # --- the work --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        totals = self.gateway.totals
        try:
            with self._scope:
                try:
                    await self._try()
                except Abandoned:
                    self._scope.cancel()
                except CarbonError as problem:
                    await self._fail(503, problem.message, problem.hint)
                except httpx.HTTPError as broken:
                    what = str(broken) or type(broken).__name__
                    await self._fail(502, f"llama-server broke off: {what}", "ask again: it is started anew")
                except Exception as unexpected:  # noqa: BLE001 - one request may fail, the gateway may not
                    await self._fail(500, f"unexpected: {unexpected!r}", "please report this")
            if self._scope.cancelled_caught or self.gone.is_set():
                totals.cancelled += 1
                self._log("the client went away")
        finally:
            self._done = True
            self._begun.set()
            self._out.close()

    async def _try(self) -> None:
        """Once more where the server was found dead before it had said anything."""
        for last in (False, True):
            server = await self.gateway.server()
            try:
                await self._ask(server)
                return
            except (CarbonError, httpx.HTTPError):
                if last or self._begun.is_set() or server.alive or server.kind != "own":
                    raise

    async def _ask(self, server: Server) -> None:
        gateway, chat = self.gateway, self.chat
        work = await gateway.work(chat, self.headers) if chat is not None else None
        self.work = work
        if server.kind == "other":
            body = compose(chat, {}, work.messages, work.tools) if chat is not None and work is not None else self.body
            await self._relay(server, body)
            return
        caller = work.caller if work is not None else gateway.beside(self.headers)
        head = work.head.key if work is not None and work.head is not None else ""
        async with gateway.slots.taken(Wish(caller.session, head, caller.side)) as slot:
            self.slot = slot.index
            async with gateway.aside(slot, caller, server):
                if work is not None:
                    await gateway.prepare(work, slot, server, self.gone, self.told)
                fields = {"id_slot": slot.index, "cache_prompt": True}
                if chat is not None and work is not None:
                    body = compose(chat, fields, work.messages, work.tools)
                else:
                    body = with_fields(self.body, fields)
                try:
                    await self._relay(server, body)
                finally:
                    slot.session, slot.side = caller.session, caller.side
                    gateway.answered(work, slot, server, self.counts)

    async def _relay(self, server: Server, body: bytes) -> None:
        gateway = self.gateway
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in HOP]
        if gateway.key or gateway.upstream.headers:
            headers = [(name, value) for name, value in headers if name.lower() != "authorization"]
        headers.append(("Accept-Encoding", "identity"))
        async with gateway.client.stream("POST", server.url + self.path, content=body, headers=headers) as answer:
            self.status = answer.status_code
            self.answer_headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP]
            self.answer_headers += self._own_headers()
            if answer.headers.get("content-type", "").startswith(_EVENTS) and answer.status_code == 200:
                self._begun.set()
                await self._events(answer)
            else:
                await self._whole(answer)
        self._log("")

    def _tools(self) -> Tools | None:
        wanted = self.gateway.settings.rescue_tool_calls == "auto" and self.chat is not None and self.chat.tools
        return Tools(self.chat.tool_schemas()) if wanted and self.chat is not None else None

    async def _whole(self, answer: httpx.Response) -> None:
        body = await answer.aread()
        if answer.status_code == 200:
            self._first()
        found = data_of(b"data: " + body) if answer.status_code == 200 else None
        if found is not None:
            self.counts = counts_of(found) or self.counts
            if (tools := self._tools()) is not None:
                body, rescued = rescue_answer(body, tools)
                self.gateway.totals.rescued += rescued
        self._begun.set()
        # Where events have begun already, a refusal is one as well.
        await self._put(b"data: " + body.strip() + b"\n\n" if self._early else body)

    async def _events(self, answer: httpx.Response) -> None:
        """Pass events on as they come; with tools, text that may be a call of one waits until that is certain."""
        events, tools = Events(), self._tools()
        rescue = Stream(tools) if tools is not None else None
        try:
            async for chunk in answer.aiter_raw():
                found = events.feed(chunk)
                for event in found:
                    self._note(event)
                if rescue is None:
                    await self._put(chunk)
                    continue
                for event in found:
                    for ready in rescue.feed(event):
                        await self._put(ready)
        finally:
            if rescue is not None and not self.gone.is_set():
                self.gateway.totals.rescued += rescue.rescued
                with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                    for ready in (*rescue.close(), events.close()):
                        if ready:
                            await self._put(ready)

    def _note(self, event: bytes) -> None:
        if math.isnan(self.first_s):
            found = data_of(event)
            choices = (found or {}).get("choices") or ()
            delta = choices[0].get("delta") if choices and isinstance(choices[0], dict) else None
            if (isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")) or (
                choices and isinstance(choices[0], dict) and choices[0].get("text")
            ):
                self._first()
        if b'"timings"' in event or b'"usage"' in event:
            found = data_of(event)
            self.counts = (counts_of(found) if found is not None else None) or self.counts

    def _first(self) -> None:
        if math.isnan(self.first_s):
            self.first_s = time.perf_counter() - self.arrived
            self.gateway.totals.first(self.first_s)

    async def _fail(self, status: int, message: str, hint: str) -> None:
        """Say what went wrong in the shape that clients of this API expect."""
        self.gateway.totals.requests["failed"] += 1
        text = f"{message} ({hint})" if hint else message
        error = msgspec.json.encode({"error": {"message": text, "type": "upstream_error", "code": status}})
        self._log(f"failed: {message}")
        if self._begun.is_set():
            await self._put(b"data: " + error + b"\n\n")
            return
        self.status = status
        self.answer_headers = [("content-type", "application/json")]
        self._begun.set()
        await self._put(b"data: " + error + b"\n\n" if self._early else error)

    # --- what is told ----------------------------------------------------------------------------------------------

    def _own_headers(self) -> list[tuple[str, str]]:
        work = self.work
        if work is None or not work.state:
            return []
        found = [("x-carbon-head", work.state)]
        clocks = {"gateway": time.perf_counter() - self.arrived}
        if (result := work.result) is not None:
            found += [
                ("x-carbon-restored-tokens", str(result.restored)),
                ("x-carbon-kept-tokens", str(result.kept)),
                ("x-carbon-evaluated-tokens", str(result.evaluated)),
            ]
            clocks |= {name: getattr(result.clocks, f"{name}_s") for name in ("read", "restore", "prefill", "save")}
        if work.miss:
            found.append(("x-carbon-miss", clean(work.miss, limit=200).encode("ascii", "replace").decode()))
        if work.rules:
            found.append(("x-carbon-moved", ", ".join(work.rules)))
        timing = ", ".join(f"{name};dur={seconds * 1000:.1f}" for name, seconds in clocks.items())
        return [*found, ("server-timing", timing)]

    def _log(self, ended: str) -> None:
        work, counts = self.work, self.counts
        who = f"{work.caller.client} {work.caller.mode}" if work is not None else self.path
        parts = []
        if work is not None and work.state:
            parts.append(f"head {work.state}")
            if (result := work.result) is not None:
                clocks = result.clocks
                parts.append(
                    f"{result.restored:,} tokens restored, {result.kept:,} kept, {result.evaluated:,} evaluated "
                    f"(read {clocks.read_s * 1000:.0f} ms, restore {clocks.restore_s * 1000:.0f} ms, prefill {clocks.prefill_s:.2f} s)"
                )
            if work.miss:
                parts.append(work.miss)
            if work.rules:
                parts.append(f"moved: {', '.join(work.rules)}")
        if counts.known:
            parts.append(
                f"answer: {counts.cached:,} tokens cached, {counts.evaluated:,} evaluated, {counts.generated:,} generated"
            )
        if not math.isnan(self.first_s):
            parts.append(f"first token {self.first_s:.2f} s")
        if ended:
            parts.append(ended)
        slot = f" slot {self.slot}" if self.slot >= 0 else ""
        self.gateway.log(clean(f"{who}{slot}: {'; '.join(parts)}", limit=600))
