"""Heads as the server itself renders and tokenizes them.

Where a head ends is measured, not assumed: the chat is rendered with words of the user that begin in very different ways, and the head is
what all of them share as tokens. In the same way the stable part in it ends where another digest or date would change a token.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import msgspec

from carbon_mind.errors import EngineProblem
from carbon_mind.prefix.spans import Region, label
from carbon_mind.serve.records import Records
from carbon_mind.serve.sessions import Place
from carbon_mind.serve.wire import RENDERING, Chat, digest_of, text_of, with_text
from carbon_mind.values import Identity, Prefix, Span, shared_length

_PROBES = ("Where", "\n42", "\u4f60\u597d")
_OTHER = ("Zebra \u00e9t\u00e9", "\t7 <x>")
_KNOWN = 64
"""Heads whose tokens are remembered."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head, to be rendered: the messages before the user's, the text told behind the stable part, and what else renders."""

    leading: tuple[dict[str, Any], ...]  # as they are without the told text
    told: str
    place: Place
    fields: Mapping[str, msgspec.Raw]  # those of RENDERING
    parts: tuple[tuple[str, str], ...] = ()  # (name, text) of pieces that have a name

    @property
    def key(self) -> str:
        """A hash of all that decides its tokens."""
        fields = {name: bytes(value).decode("utf-8", "replace") for name, value in sorted(self.fields.items())}
        return digest_of(list(self.leading), self.told, self.place, fields)


def head_fields(chat: Chat, tools: Sequence[msgspec.Raw] | None = None) -> dict[str, msgspec.Raw]:
    """The fields of a request that decide how it is rendered."""
    found = {name: chat.fields[name] for name in RENDERING if name in chat.fields}
    if tools is not None:
        found["tools"] = msgspec.Raw(b"[" + b",".join(map(bytes, tools)) + b"]")
    return found


def placed(
    leading: Sequence[dict[str, Any]], user: dict[str, Any], told: str, place: Place
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The messages with the told text where it belongs."""
    if not told:
        return list(leading), user
    if place == "system" and leading and (text := text_of(leading[-1])) is not None:
        return [*leading[:-1], with_text(leading[-1], f"{text}\n\n{told}")], user
    return list(leading), with_text(user, f"{told}\n\n{text_of(user) or ''}")


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens of a head, as one build of a server with one model gave them."""

    by: str
    prefix: Prefix


class Renderer:
    """Asks one server. Each method raises EngineProblem."""

    def __init__(
        self, client: httpx.AsyncClient, url: str, memory: Records[Measured], identity: Identity | None
    ) -> None:
        """What was measured is remembered in `memory` for the same build, model and template, where `identity` tells them."""
        self._client = client
        self._url = url
        self._memory = memory
        self._by = digest_of(msgspec.to_builtins(identity)) if identity is not None else ""
        self._heads: OrderedDict[str, Prefix] = OrderedDict()
        self._places: dict[bool, Place] = {}

    async def head(self, head: Head) -> Prefix:
        """The tokens of a head, with the ends of its stable part and of all of it as layers."""
        key = head.key
        if key in self._heads:
            self._heads.move_to_end(key)
            return self._heads[key]
        memory = self._memory.read(key) if self._by else None
        if memory is not None and memory.by == self._by:
            found = memory.prefix
        else:
            found = await self._measured(head)
            if self._by:
                self._memory.write(key, Measured(self._by, found))
        self._heads[key] = found
        if len(self._heads) > _KNOWN:
            self._heads.popitem(last=False)
        return found

    def known(self, key: str) -> Prefix | None:
        """The head of this key, if it has been measured lately."""
        return self._heads.get(key)

    async def place(self, fields: Mapping[str, msgspec.Raw]) -> Place:
        """Where text goes that must stand behind everything stable, by what this template does with tools."""
        tools = msgspec.json.decode(fields["tools"], type=list[msgspec.Raw] | None) if "tools" in fields else None
        known = bool(tools)
        if known not in self._places:
            system, user = {"role": "system", "content": "Mark-S."}, {"role": "user", "content": "Mark-U."}
            only = {"tools": msgspec.Raw(b"[" + bytes(tools[0]) + b"]")} if tools else {}
            text = await self._render([system, user], only)
            without = await self._render([system, user], {}) if tools else text
            tools_end = len(text) - _common(text[::-1], without[::-1])
            behind = text.find("Mark-S.") >= 0 and (not tools or tools_end <= text.find("Mark-S."))
            self._places[known] = "system" if behind else "user"
        return self._places[known]

    async def prompt(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, msgspec.Raw]) -> tuple[int, ...]:
        """The tokens of a whole prompt."""
        return await self._tokens(await self._render(messages, fields))

    # --- measuring ---

    async def _measured(self, head: Head) -> Prefix:
        async def variant(told: str, word: str) -> str:
            leading, user = placed(head.leading, {"role": "user", "content": word}, told, head.place)
            return await self._render([*leading, user], head.fields)

        texts = [await variant(head.told, probe) for probe in _PROBES]
        if head.told:
            texts += [await variant(other, _PROBES[0]) for other in _OTHER]
        found: list[tuple[int, ...]] = [()] * len(texts)
        pieces: dict[int, bytes] = {}

        async def tokenize(index: int) -> None:
            found[index] = await self._tokens(texts[index], pieces if index == 0 else None)

        async with anyio.create_task_group() as tasks:
            for index in range(len(texts)):
                tasks.start_soon(tokenize, index)
        whole = found[0]
        end = min(shared_length(whole, other) for other in found[1 : len(_PROBES)])
        stable = min((shared_length(whole, other) for other in found[len(_PROBES) :]), default=end)
        layers = [Span("head", stable)] if 0 < stable < end else []
        tokens = whole[:end]
        regions = await self._regions(head, texts[0])
        spans = label(texts[0], regions, tokens, lambda token: pieces.get(token, b""))
        return Prefix(tokens, (*layers, Span("mind" if layers else "head", end)), spans)

    async def _regions(self, head: Head, text: str) -> list[Region]:
        """Where tools, system text, instruction files and the told text are in the rendered text."""
        found: list[Region] = []
        named = [("system", text_of(message) or "") for message in head.leading]
        for name, content in (*named, *head.parts, ("told", head.told)):
            if content.strip() and (start := text.find(content.strip())) >= 0:
                found.append((name, start, start + len(content.strip())))
        if "tools" in head.fields:
            fields = {name: value for name, value in head.fields.items() if name not in ("tools", "tool_choice")}
            leading, user = placed(head.leading, {"role": "user", "content": _PROBES[0]}, head.told, head.place)
            without = await self._render([*leading, user], fields)
            start = _common(text, without)
            found.insert(
                0, ("tools", start, max(len(text) - _common(text[start:][::-1], without[start:][::-1]), start))
            )
        return found

    # --- HTTP ---

    async def _render(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, msgspec.Raw]) -> str:
        answer = await self._ask("/apply-template", msgspec.json.encode({"messages": list(messages), **fields}))
        return str(answer["prompt"])

    async def _tokens(self, text: str, pieces: dict[int, bytes] | None = None) -> tuple[int, ...]:
        body = {"content": text, "add_special": True, "parse_special": True, "with_pieces": pieces is not None}
        tokens = (await self._ask("/tokenize", msgspec.json.encode(body)))["tokens"]
        if pieces is None:
            return tuple(tokens)
        for token in tokens:
            piece = token["piece"]
            pieces[token["id"]] = piece.encode("utf-8", "replace") if isinstance(piece, str) else bytes(piece)
        return tuple(token["id"] for token in tokens)

    async def _ask(self, path: str, body: bytes) -> Any:
        try:
            answer = await self._client.post(
                self._url + path, content=body, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as broken:
            raise EngineProblem(f"llama-server does not answer: {str(broken) or type(broken).__name__}") from broken
        if answer.status_code != 200:
            raise EngineProblem(f"llama-server refused {path}: HTTP status {answer.status_code}")
        return msgspec.json.decode(answer.content)


def _common(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
