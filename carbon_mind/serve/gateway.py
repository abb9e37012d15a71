"""One request, from a client to llama-server and back.

    parse -> settle + pin -> a slot -> restore, or prefill and snapshot -> answer, relayed as it comes

`Gateway` holds what outlives a request. A `Turn` is one request: a task of its own, so that whoever asked may go away at any time.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import msgspec

from carbon_mind.engine.base import State
from carbon_mind.errors import CarbonError, EngineProblem, StorageProblem
from carbon_mind.opening import Listener
from carbon_mind.safety.files import read_regular
from carbon_mind.serve import rewrite
from carbon_mind.serve.minds import Minds
from carbon_mind.serve.records import Records
from carbon_mind.serve.render import Head, Measured, Renderer, head_fields, placed
from carbon_mind.serve.sessions import Now, Place, Session, begin, go_on, look
from carbon_mind.serve.slots import Slot, Slots, Wish
from carbon_mind.serve.totals import Totals
from carbon_mind.serve.upstream import Server, Upstream, client
from carbon_mind.serve.wire import Chat, Counts, compose, digest_of, parse, text_of, with_text
from carbon_mind.settings import Settings
from carbon_mind.store import notes
from carbon_mind.store.background import BackgroundStore
from carbon_mind.store.format import Header
from carbon_mind.store.states import Entry, names
from carbon_mind.values import Identity, RepoPath, Span, WarmResult
from carbon_mind.warm import warm

SMALL = 64
"""Tokens of a head below which it is not worth a snapshot."""
LONG = 4000
"""Characters of a system text from which on an agent that offers no tools may still be the main one."""
WORTH = 256
"""Tokens of a history from which on it is worth a snapshot when its slot is taken."""
SPARE = 16
"""Tokens by which the server may reuse less than a head and still have used it: a sliding window goes on from a checkpoint."""
PING_S = 10.0
"""Seconds of silence after which a client that waits for events is told that it is not forgotten."""
_INSTRUCTIONS = 256 << 10  # bytes of an instruction file
_DAY_S = 86400.0
_NOBODY = Identity(engine="", build="", model="", context=())


_JSON = {"Content-Type": "application/json"}


class Learned(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A head that a client sent, as it came: enough to warm it on another day without the client."""

    client: str
    mode: str
    directory: str
    model: str
    seen: int  # seconds since the epoch
    leading: list[dict[str, Any]]
    fields: dict[str, msgspec.Raw]
    parts: tuple[tuple[str, str], ...]  # instruction files: path, text then


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as far as the request tells."""

    client: str
    session: str
    side: bool
    mode: str
    directory: str


@dataclass(slots=True)
class Work:
    """A chat as it goes to the server, and what is known of its head."""

    chat: Chat
    caller: Caller
    head: Head | None = None
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    tools: list[msgspec.Raw] | None = None
    rules: tuple[str, ...] = ()
    root: Path | None = None
    result: WarmResult | None = None
    state: str = ""  # hot, restored, extended, prefilled, side, plain
    miss: str = ""


class Abandoned(Exception):
    """The client went away while its head was being evaluated."""


class Gateway:
    """What outlives a request."""

    def __init__(
        self,
        settings: Settings,
        report: Listener,
        upstream: Upstream,
        *,
        repo: Path | None = None,
        key: str = "",
        log: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Nothing is started. `repo` is told to agents that name no directory, `key` is what clients must show.

        `log` gets a line for each request. Raises RepositoryProblem and StorageProblem.
        """
        folder = settings.cache / "gateway"
        self.settings = settings
        self.report = report
        self.upstream = upstream
        self.key = key
        self.totals = Totals()
        self.minds = Minds(report, repo)
        self.sessions = Records(folder / "sessions", Session, most=512, age_s=14 * _DAY_S)
        self.heads = Records(folder / "heads", Learned, most=64, age_s=30 * _DAY_S)
        self._measured = Records(folder / "tokens", Measured, most=64, age_s=30 * _DAY_S)
        self.store: BackgroundStore | None = None
        with contextlib.suppress(StorageProblem):
            self.store = BackgroundStore(settings.snapshots, settings.store_budget_mib << 20, self._not_stored)
        self.client = client(upstream.headers)
        self.slots = Slots(())
        self._started = 0
        self._renderer: Renderer | None = None
        # Heads of models that cannot go back, whose histories the server does not find again: restored at each turn.
        self._lost: set[str] = set()
        self._learned: dict[str, float] = {}
        self.log = log
        self.warming = [0, 0]  # tokens done and to do of the head that is being warmed without a client
        self._lock = anyio.Lock()

    def _not_stored(self, reason: str) -> None:
        self.report.notice(f"not stored: {reason}")

    async def server(self) -> Server:
        """The server; when it was started again, nothing is known of its slots. Raises CarbonError."""
        async with self._lock:
            server = await self.upstream.server()
            if self.upstream.starts != self._started:
                self.totals.restarts += self._started > 0
                self._started = self.upstream.starts
                self.slots = Slots(server.engines)
                self._renderer = Renderer(self.client, server.url, self._measured, server.identity)
            return server

    @property
    def renderer(self) -> Renderer:
        """Of the server that runs."""
        if self._renderer is None:
            raise EngineProblem("no server has been started")
        return self._renderer

    def status(self) -> dict[str, Any]:
        """What there is, and what has been done."""
        server = self.upstream.now
        slots = [
            {
                "slot": slot.index,
                "busy": slot.busy,
                "session": slot.session,
                "beside": slot.side,
                "head": slot.head[:12],
            }
            for slot in self.slots.all
        ]
        heads = [
            {
                "client": head.client,
                "mode": head.mode,
                "directory": head.directory,
                "model": head.model,
                "seen": head.seen,
            }
            for head in self.heads.all()
        ]
        entries = self._entries()
        return {
            "upstream": None
            if server is None
            else {
                "kind": server.kind,
                "url": server.url,
                "model": server.model,
                "n_ctx": server.n_ctx,
                "alive": server.alive,
                "stores": server.identity is not None,
                "engine": server.running.engine if server.running is not None else "",
            },
            "slots": slots,
            "heads": heads,
            "warming": {"done": self.warming[0], "total": self.warming[1]},
            "snapshots": {"count": len(entries), "bytes": sum(entry.size for entry in entries)},
            "normalize": self.settings.normalize,
            **self.totals.as_json(),
        }

    def _entries(self) -> list[Entry]:
        try:
            return self.store.entries() if self.store is not None else []
        except OSError:  # the folder was removed meanwhile
            return []

    def gauges(self) -> dict[str, float]:
        """Numbers that go up and down, for Prometheus."""
        entries = self._entries()
        return {
            "slots": len(self.slots.all),
            "slots_busy": sum(slot.busy for slot in self.slots.all),
            "snapshots": len(entries),
            "snapshot_bytes": sum(entry.size for entry in entries),
            "upstream_alive": float(self.upstream.now is not None and self.upstream.now.alive),
        }

    async def close(self) -> None:
        """End everything that is ours; what is to be stored is stored first, what live sessions hold as well."""
        server = self.upstream.now
        if server is not None and server.identity is not None and server.alive:
            for slot in self.slots.all:
                if slot.live and slot.head and slot.beyond >= WORTH and slot.engine is not None:
                    with contextlib.suppress(CarbonError):
                        self._park(await anyio.to_thread.run_sync(slot.engine.whole), server)
        await self.client.aclose()
        if self.store is not None:
            await anyio.to_thread.run_sync(self.store.close)
        await anyio.to_thread.run_sync(self.upstream.close)

    # --- who asks ---

    def caller(self, chat: Chat, headers: Mapping[str, str]) -> Caller:
        """Client, session and mode of a request; what is asked beside is told by its lack of tools or its parent."""
        agent = _agent(headers)
        texts = _leading_texts(chat)
        first = text_of(chat.messages[chat.head]) if chat.has_user else None
        given = headers.get("x-session-affinity") or headers.get("x-session-id") or chat.text("prompt_cache_key")
        where = rewrite.directory(texts)
        session = f"{agent}:{given}" if given else f"{agent}:{digest_of(where, first or '')[:24]}"
        toolless = not chat.tools and (sum(map(len, texts)) < LONG or f"{agent}:tools" in self._learned)
        side = toolless or "x-parent-session-id" in headers or not chat.has_user
        names = {rewrite.tool_name(tool) for tool in chat.tool_schemas()}
        planning = any("Plan Mode - System Reminder" in part for part in _texts(chat.messages))
        mode = "plan" if planning else "tui" if "question" in names else "run"
        return Caller(agent, session, side, mode if agent == "opencode" else "run", where)

    def beside(self, headers: Mapping[str, str]) -> Caller:
        """Who asks for something that is no chat."""
        agent = _agent(headers)
        return Caller(agent, f"{agent}:beside", True, "run", "")

    # --- what is sent on ---

    async def work(self, chat: Chat, headers: Mapping[str, str]) -> Work:
        """The request with its day-to-day lines moved and the digest put in, as its session is used to. Raises CarbonError."""
        caller = self.caller(chat, headers)
        if caller.side:
            return Work(chat, caller)
        known = self.sessions.read(caller.session)
        if known is not None and (known.normalize != self.settings.normalize or not chat.continues):
            known = None  # it begins (again): there is no history that could be lost
        work, session = await self._settled(chat, caller, known)
        if session != known and (session.told or session.normalize):
            self.sessions.write(caller.session, session)
        self._learn(chat, caller)
        return work

    async def _settled(self, chat: Chat, caller: Caller, known: Session | None) -> tuple[Work, Session]:
        server = self.upstream.now
        tools = rewrite.by_name(chat.tools) if self.settings.normalize else None
        fields = head_fields(chat, tools)
        place: Place = "user"
        if server is not None and server.kind != "other":
            with contextlib.suppress(EngineProblem):  # it does not render this: it shall say so itself
                place = await self.renderer.place(fields)
        root = await anyio.to_thread.run_sync(self.minds.root, caller.directory)
        digest = ""
        if root is not None and self.settings.inject_mind:
            special = server.engines[0].info.special_tokens if server is not None and server.engines else ()
            ask = self.minds.digest if known is None else self.minds.recent
            digest = await anyio.to_thread.run_sync(ask, root, special)
        leading = list(chat.messages[: chat.head])
        now, rules = await anyio.to_thread.run_sync(self._look, _leading_texts(chat), digest, place)
        session = begin(now) if known is None else go_on(known, now, _word(chat))
        if session.normalize:
            leading = [
                with_text(message, text) if text != text_of(message) else message
                for message, text in zip(leading, session.texts, strict=False)
            ]
        named = tuple((Path(path).name, text) for path, text in session.parts)
        work = Work(
            chat,
            caller,
            Head(tuple(leading), session.told, session.place, fields, named),
            _changed(chat, leading, session),
            tools,
            (*rules, *(("tools",) if tools is not None else ()), *(("digest",) if session.digest else ())),
            root,
        )
        return work, session

    def _look(self, texts: list[str], digest: str, place: Place) -> tuple[Now, tuple[str, ...]]:
        return look(texts, normalize=self.settings.normalize, read=read_instructions, digest=digest, place=place)

    def _learn(self, chat: Chat, caller: Caller) -> None:
        """Remember the head for `carbon warm --client`: once a day is enough, or when it is another."""
        if chat.tools:
            self._learned[f"{caller.client}:tools"] = 0.0
        server = self.upstream.now
        model = server.model if server is not None else ""
        key = f"{caller.client}\0{caller.mode}\0{caller.directory}\0{model}"
        fields = head_fields(chat)
        content = digest_of(*chat.raw[: chat.head], fields.get("tools", b""))
        if time.monotonic() - self._learned.get(key + content, -math.inf) < _DAY_S:
            return
        self._learned[key + content] = time.monotonic()
        texts = _leading_texts(chat)
        quoted = [(text, part) for text in texts for part in rewrite.instructions(text, read_instructions)]
        learned = Learned(
            client=caller.client,
            mode=caller.mode,
            directory=caller.directory,
            model=model,
            seen=int(time.time()),
            leading=list(chat.messages[: chat.head]),
            fields={name: value.copy() for name, value in fields.items()},
            parts=tuple((part.path, text[part.start : part.end]) for text, part in quoted),
        )
        self.heads.write(key, learned)

    async def warm_heads(self, client: str | None = None, mode: str | None = None) -> list[dict[str, Any]]:
        """Warm the heads that clients sent, as they would send them now; what became of each. Raises CarbonError."""
        server = await self.server()
        wanted = [
            learned
            for learned in self.heads.all()
            if client in (None, learned.client) and mode in (None, learned.mode) and learned.model == server.model
        ]
        return [await self._warm_head(learned, server) for learned in wanted]

    async def preload(self) -> int:
        """Put the heads that were seen last into slots as far as they are stored, one slot left free; returns how many.

        Nothing is evaluated, so it costs no more than reading them. Raises CarbonError.
        """
        server = await self.server()
        wanted = [learned for learned in self.heads.all() if learned.model == server.model]
        ready = 0
        for learned in wanted[: max(len(server.engines) - 1, 1)] if server.identity is not None else ():
            with contextlib.suppress(Abandoned):
                ready += (await self._warm_head(learned, server, stored=True))["state"] in ("restored", "hot")
        return ready

    async def _warm_head(self, learned: Learned, server: Server, *, stored: bool = False) -> dict[str, Any]:
        today = datetime.now().astimezone().date()
        leading = [
            with_text(message, rewrite.freshen(text_of(message) or "", learned.parts, today, read_instructions))
            for message in learned.leading
        ]
        body = {"messages": [*leading, {"role": "user", "content": "?"}], **learned.fields}
        chat = parse(msgspec.json.encode(body))
        caller = Caller(learned.client, "", True, learned.mode, learned.directory)
        work, _ = await self._settled(chat, caller, None)
        if server.kind == "other":
            await self._replay(server, work)
        elif work.head is not None and any(slot.head == work.head.key for slot in self.slots.all):
            work.state = "hot"
        elif work.head is not None and (not stored or await self._is_stored(work.head, server)):
            async with self.slots.taken(Wish("", work.head.key, True)) as slot, self.aside(slot, caller, server):
                evaluate = threading.Event()
                if stored:
                    evaluate.set()  # what would have to be evaluated is left
                await self.prepare(work, slot, server, evaluate, self.warming)
                slot.session, slot.side = "", False
            self.warming[:] = [0, 0]
        return {
            "client": learned.client,
            "mode": learned.mode,
            "directory": learned.directory,
            "state": work.state,
            "result": work.result,
            "volatile": [] if self.settings.normalize else _volatile(chat),
        }

    async def _is_stored(self, head: Head, server: Server) -> bool:
        prefix = await self.renderer.head(head)
        if self.store is None or server.identity is None or not prefix.layers:
            return False
        return self.store.has(names(server.identity, prefix.tokens, prefix.layers[-1:])[-1])

    async def _replay(self, server: Server, work: Work) -> None:
        """Warm a server that has a prefix cache of its own: the head, and one token."""
        body = compose(work.chat, {"max_tokens": 1, "model": server.model or "default"}, work.messages, work.tools)
        try:
            answer = await self.client.post(f"{server.url}/v1/chat/completions", content=body, headers=_JSON)
        except httpx.HTTPError as broken:
            raise EngineProblem(f"{server.url} does not answer: {str(broken) or type(broken).__name__}") from broken
        work.state = "replayed" if answer.status_code == 200 else f"refused (HTTP status {answer.status_code})"

    # --- the head ---

    async def prepare(self, work: Work, slot: Slot, server: Server, gone: threading.Event, told: list[int]) -> None:
        """See to it that the slot begins with the head. Raises CarbonError, and Abandoned when the client went away."""
        engine, head = slot.engine, work.head
        if engine is None or head is None:
            work.state = "side" if work.caller.side else "plain"
            return
        key = head.key
        same = slot.head == key and (server.rollback or (slot.session == work.caller.session and key not in self._lost))
        strange = work.chat.continues and slot.session != work.caller.session
        if same and not (strange and server.identity is not None):
            work.state = "hot"
            return
        try:
            prefix = await self.renderer.head(head)
        except EngineProblem as refused:  # the request goes on, and what is wrong with it is the server's to say
            work.state, work.miss = "plain", refused.message
            return
        if not SMALL <= len(prefix.tokens) < server.n_ctx - 1:  # too long: the server says so itself
            work.state = "plain"
            return
        prompt: tuple[int, ...] = ()
        if work.chat.continues:
            messages = [work.messages.get(i, message) for i, message in enumerate(work.chat.messages)]
            with contextlib.suppress(EngineProblem):
                prompt = await self.renderer.prompt(messages, head.fields)
            if prompt[: len(prefix.tokens)] != prefix.tokens:
                prompt = ()
        slot.session, slot.side = work.caller.session, False  # also of what may be left half done
        identity = server.identity
        store = self.store if identity is not None else None

        def progress(done: int, total: int) -> None:
            told[:] = [done, total]
            if gone.is_set():
                raise Abandoned

        def run() -> WarmResult:
            labels: tuple[tuple[str, str], ...] = (("client", work.caller.client), ("model", server.model))
            if work.root is not None:
                labels = (*labels, ("repository", work.root.name))
            return warm(
                engine,
                store,
                identity or _NOBODY,
                prefix,
                labels=labels,
                progress=progress,
                each=True,
                keep=True,
                prompt=prompt,
            )

        try:
            work.result = await anyio.to_thread.run_sync(run)
        except BaseException:
            slot.head = ""
            if not server.rollback:
                engine.assume(())
            raise
        slot.head = key
        self._count(work, server)

    def _count(self, work: Work, server: Server) -> None:
        result = work.result
        if result is None:
            return
        work.state = result.state
        if result.miss is not None:
            work.miss = result.miss.reason or result.miss.not_stored
        totals = self.totals
        totals.restored += result.restored
        totals.kept += result.kept
        totals.evaluated += result.evaluated
        totals.head_evaluated += result.evaluated
        totals.head_s += result.clocks.prefill_s
        if self.store is not None and server.identity is not None:
            where = str(work.root or work.caller.directory or work.caller.client)
            before = notes.read_record(self.store, where)
            rate = before.tokens_per_s if before is not None and before.model == server.model else 0.0
            if result.evaluated and result.clocks.prefill_s:
                rate = result.evaluated / result.clocks.prefill_s
            record = notes.Record(
                when=int(time.time()),
                command=f"serve ({work.caller.client})",
                repository=where,
                model=server.model,
                result=result,
                tokens_per_s=rate,
            )
            notes.write_record(self.store, record)

    @contextlib.asynccontextmanager
    async def aside(self, slot: Slot, caller: Caller, server: Server) -> AsyncIterator[None]:
        """While another request runs in a slot that somebody would miss: its state is kept, and put back behind a request beside."""
        owner = replace(slot)  # as it was
        others = slot.live and slot.session != caller.session
        missed = slot.engine is not None and (others or (caller.side and bool(slot.head)))
        state: State | None = None
        worth = caller.side or slot.beyond >= WORTH
        if missed and worth and slot.engine is not None and server.identity is not None:
            with contextlib.suppress(EngineProblem):
                state = await anyio.to_thread.run_sync(slot.engine.whole)
        if state is not None and not caller.side:
            self._park(state, server)
        if caller.side:
            slot.forget()
        elif others:
            slot.session = ""
        try:
            yield
        finally:
            if caller.side and missed and server.alive:
                with anyio.CancelScope(shield=True):
                    await self._put_back(slot, owner, state, server)

    def _park(self, state: State, server: Server) -> None:
        """Store the state of a session whose slot is needed: it comes back to it with its next request."""
        if self.store is None or server.identity is None:
            return
        count = len(state.tokens)
        header = Header(
            identity=server.identity,
            tokens=state.tokens,
            pos_min=0,
            pos_max=count - 1,
            layers=(Span("session", count),),
            spans=(Span("conversation", count),),
            labels=(("model", server.model), ("layer", "session")),
        )
        with contextlib.suppress(CarbonError):
            self.store.put(header, state.data)

    async def _put_back(self, slot: Slot, owner: Slot, state: State | None, server: Server) -> None:
        engine = slot.engine
        if engine is None:
            return
        try:
            if state is not None:
                await anyio.to_thread.run_sync(engine.load, state)
                if not server.rollback:
                    engine.assume(())
            elif (prefix := self.renderer.known(owner.head)) is not None:
                engine.assume(())
                await anyio.to_thread.run_sync(engine.prefill, prefix.tokens)
            else:
                return
        except CarbonError:
            slot.forget()
            return
        slot.session, slot.side, slot.head, slot.beyond = owner.session, owner.side, owner.head, owner.beyond

    # --- behind the answer ---

    def answered(self, work: Work | None, slot: Slot, server: Server, counts: Counts) -> None:
        """Note what the slot holds now, by the server's own counts."""
        totals = self.totals
        totals.requests[(work.state if work is not None else "") or "side"] += 1
        totals.evaluated += counts.evaluated
        totals.generated += counts.generated
        if slot.engine is None or not slot.head:
            return
        head = self.renderer.known(slot.head)
        if head is not None and counts.known:
            slot.beyond = max(counts.cached + counts.evaluated + counts.generated - len(head.tokens), 0)
        if head is not None and counts.known and counts.cached + SPARE < len(head.tokens):
            totals.lost += 1
            self._lost.add(slot.head)
            slot.head = ""
            slot.engine.assume(())
        elif not server.rollback:
            slot.engine.assume(())


def read_instructions(path: str) -> str | None:
    """The text of an instruction file that a head quotes; None for what is none of those, too large, or not there."""
    file = Path(path)
    if not file.is_absolute() or file.suffix.lower() not in (".md", ".mdc", ".txt"):
        return None
    try:
        return read_regular(file.parent, RepoPath(file.name), _INSTRUCTIONS).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _agent(headers: Mapping[str, str]) -> str:
    name = headers.get("user-agent", "").split("/")[0].split(" ")[0].lower()
    return (
        "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-"))[:40]
        or "unknown"
    )


def _leading_texts(chat: Chat) -> list[str]:
    return [text_of(message) or "" for message in chat.messages[: chat.head]]


def _texts(messages: tuple[dict[str, Any], ...]) -> list[str]:
    found = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            found.append(content)
        elif isinstance(content, list):
            found += [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return found


def _volatile(chat: Chat) -> list[str]:
    """The rules that would take something out of a head."""
    rules = {rule for text in _leading_texts(chat) for rule in rewrite.settle(text).rules}
    return [rule for rule in rewrite.RULES if rule in rules]


def _word(chat: Chat) -> int | None:
    """The number of the user's word that a request ends with, from 0; None where it ends with something else."""
    if not chat.messages or chat.messages[-1].get("role") != "user":
        return None
    return sum(1 for message in chat.messages if message.get("role") == "user") - 1


def _changed(chat: Chat, leading: list[dict[str, Any]], session: Session) -> dict[int, dict[str, Any]]:
    """The messages that are not sent on as they came, by index."""
    first = chat.messages[chat.head]
    settled, user = placed(leading, first, session.told, session.place)
    messages = [*settled, user, *chat.messages[chat.head + 1 :]]
    word = -1
    for i, message in enumerate(messages):
        if message.get("role") == "user":
            word += 1
            if word in session.notes:
                messages[i] = with_text(message, f"{session.notes[word]}\n\n{text_of(message) or ''}")
    return {i: message for i, message in enumerate(messages) if message is not chat.messages[i]}
