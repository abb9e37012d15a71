"""The OpenAI shapes that pass through the gateway, as far as it has to know them.

A body is taken apart no further than needed: values of its top level stay the bytes that came (`msgspec.Raw`), and so does every
message that is not changed. What is sent on is the body itself with a few fields put in front, or the same values with the changed
messages in place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

# What decides how messages are rendered, besides the messages: these are part of a head.
RENDERING = (
    *("tools", "tool_choice", "parallel_tool_calls", "response_format", "json_schema", "grammar", "functions"),
    *("chat_template", "chat_template_kwargs", "reasoning_effort", "reasoning_format", "enable_thinking"),
)
_SYSTEM = ("system", "developer")
_Message = dict[str, Any]


class NotChat(ValueError):
    """The body is no chat request that the gateway could read; the server behind it shall say what is wrong."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A request for a chat completion."""

    body: bytes
    fields: Mapping[str, msgspec.Raw]
    raw: tuple[msgspec.Raw, ...]  # messages as they came
    messages: tuple[_Message, ...]
    tools: tuple[msgspec.Raw, ...]

    @property
    def head(self) -> int:
        """How many messages stand before the first of the user: system text."""
        return next((i for i, message in enumerate(self.messages) if message.get("role") not in _SYSTEM), 0)

    @property
    def has_user(self) -> bool:
        """Whether the user speaks right behind the system text."""
        return self.head < len(self.messages) and self.messages[self.head].get("role") == "user"

    @property
    def continues(self) -> bool:
        """Whether the conversation has been answered before."""
        return any(message.get("role") == "assistant" for message in self.messages)

    @property
    def stream(self) -> bool:
        """Whether the answer is wanted in events."""
        return bytes(self.fields.get("stream", b"false")) == b"true"

    def text(self, key: str) -> str:
        """A field of the top level that is a text; "" for what is none."""
        try:
            return msgspec.json.decode(self.fields[key], type=str) if key in self.fields else ""
        except msgspec.ValidationError:
            return ""

    def tool_schemas(self) -> list[Any]:
        """The tools, decoded."""
        return [msgspec.json.decode(tool) for tool in self.tools]


def parse(body: bytes) -> Chat:
    """Take a body apart. Raises NotChat."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        raw = tuple(msgspec.json.decode(fields.get("messages", b""), type=list[msgspec.Raw]))
        messages = tuple(msgspec.json.decode(fields["messages"], type=list[dict[str, Any]]))
        listed = msgspec.json.decode(fields.get("tools", b"null"), type=list[msgspec.Raw] | None)
        found = Chat(body, fields, raw, messages, tuple(listed or ()))
        found.tool_schemas()
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise NotChat(str(wrong)) from wrong
    return found


def compose(
    chat: Chat,
    fields: Mapping[str, Any],
    messages: Mapping[int, _Message] | None = None,
    tools: Sequence[msgspec.Raw] | None = None,
) -> bytes:
    """The body with these fields set, these messages (by index) in the place of theirs, and the tools in this order."""
    changed = {name: bytes(msgspec.json.encode(value)) for name, value in fields.items()}
    if messages:
        parts = [msgspec.json.encode(messages[i]) if i in messages else bytes(raw) for i, raw in enumerate(chat.raw)]
        changed["messages"] = b"[" + b",".join(parts) + b"]"
    if tools is not None:
        changed["tools"] = b"[" + b",".join(map(bytes, tools)) + b"]"
    if not changed:
        return chat.body
    if not changed.keys() & chat.fields.keys():
        front = b",".join(msgspec.json.encode(name) + b":" + value for name, value in changed.items())
        return b"{" + front + b"," + chat.body.lstrip()[1:]
    merged = {**{name: bytes(value) for name, value in chat.fields.items()}, **changed}
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in merged.items()) + b"}"


def with_fields(body: bytes, fields: Mapping[str, Any]) -> bytes:
    """Any JSON object with these fields in it; a body that is none stays as it is."""
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
        return body
    merged = {name: bytes(value) for name, value in found.items()}
    merged |= {name: msgspec.json.encode(value) for name, value in fields.items()}
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in merged.items()) + b"}"


# --- text in messages ------------------------------------------------------------------------------------------


def text_of(message: Mapping[str, Any]) -> str | None:
    """The first text of a message: its content, or the first text among its parts; None where there is none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    part = _first_text(content)
    return None if part is None else part["text"]


def with_text(message: Mapping[str, Any], text: str) -> _Message:
    """The message with that text in the place of the one that `text_of` gives."""
    content = message.get("content")
    part = _first_text(content)
    if not isinstance(content, list):
        return {**message, "content": text}
    if part is None:  # pictures alone
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": [{**item, "text": text} if item is part else item for item in content]}


def _first_text(content: Any) -> dict[str, Any] | None:
    if not isinstance(content, list):
        return None
    for part in content:
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            return part
    return None


def digest_of(*parts: object) -> str:
    """A hex SHA-256 that tells these values apart."""
    digest = hashlib.sha256()
    for part in parts:
        data = bytes(part) if isinstance(part, (bytes, msgspec.Raw)) else msgspec.json.encode(part)
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


# --- events ----------------------------------------------------------------------------------------------------


class Events:
    """Cuts a byte stream into whole server-sent events, each with the blank line that ends it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The events that are complete now, as they came."""
        self._rest += data
        found = []
        while (end := _end(self._rest)) >= 0:
            found.append(self._rest[:end])
            self._rest = self._rest[end:]
        return found

    def close(self) -> bytes:
        """What is left: an event that was broken off, or nothing."""
        rest, self._rest = self._rest, b""
        return rest


def _end(data: bytes) -> int:
    """Behind the first blank line; -1 where there is none yet."""
    ends = [at + len(blank) for blank in (b"\n\n", b"\r\n\r\n") if (at := data.find(blank)) >= 0]
    return min(ends, default=-1)


def data_of(event: bytes) -> dict[str, Any] | None:
    """The JSON object that an event carries; None for comments, `[DONE]` and whatever is none."""
    lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    try:
        return msgspec.json.decode(b"\n".join(lines), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Counts:
    """What an answer says about itself: tokens of the prompt that were there already, evaluated, and generated."""

    cached: int = 0
    evaluated: int = 0
    generated: int = 0
    known: bool = False


def counts_of(answer: Mapping[str, Any]) -> Counts | None:
    """The counts in an answer or in one of its events: llama.cpp's `timings`, or else `usage`; None where there are none."""
    timings, usage = answer.get("timings"), answer.get("usage")
    try:
        if isinstance(timings, dict):
            return Counts(int(timings["cache_n"]), int(timings["prompt_n"]), int(timings["predicted_n"]), True)
        if isinstance(usage, dict):
            cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
            return Counts(cached, int(usage["prompt_tokens"]) - cached, int(usage.get("completion_tokens") or 0), True)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return None
