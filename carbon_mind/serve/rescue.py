"""Tool calls that a model wrote as text, delivered as tool calls.

Small coder models write a perfect call into the answer, fenced or bare, where the server does not look for it, and the agent shows text
instead of acting. What counts as a call is narrow: the whole answer, or the block that it ends with (in a fence, or in the tags of a
template), is one JSON object (or an array of such) that names a declared tool and gives arguments that fit its schema. Everything else
passes, byte for byte. In a stream, text waits only from where it may be the beginning of a call, and no longer than until that is certain.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from carbon_mind.serve.wire import data_of

HELD = 64 << 10
"""Characters that may wait; a longer text is no call."""
_TICKS = "```"
_TAGS = {"<tool_call>": "</tool_call>", "<tools>": "</tools>"}
_INDENT = 3  # spaces before a fence, as in CommonMark
_KEYS = frozenset(("name", "arguments", "parameters", "id", "type", "function"))
_BARE = re.compile(r"\[?\s*\{{0,2}\s*")


@dataclass(frozen=True, slots=True)
class Call:
    """A call; `arguments` are JSON."""

    name: str
    arguments: str


class Tools:
    """The tools that a request declares. What is malformed among them is no tool."""

    def __init__(self, tools: Iterable[Any]) -> None:
        self._schemas: dict[str, Any] = {}
        self._validators: dict[str, Any] = {}
        for tool in tools:
            function = tool.get("function") if isinstance(tool, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                self._schemas[function["name"]] = function.get("parameters")

    def calls(self, text: str) -> tuple[str, tuple[Call, ...]] | None:
        """The text before the calls, and the calls that an answer is or ends with; None where it is none."""
        if not self._schemas or len(text) > HELD:
            return None
        start, body = _candidate(text)
        if start < 0:
            return None
        for form in _forms(body):
            try:
                found = msgspec.json.decode(form)
            except (msgspec.MsgspecError, RecursionError):
                continue
            calls = [self._call(item) for item in (found if isinstance(found, list) else [found])]
            if calls and all(call is not None for call in calls):
                return text[:start], tuple(call for call in calls if call is not None)
        return None

    def _call(self, item: Any) -> Call | None:
        if not isinstance(item, dict) or not item.keys() <= _KEYS:
            return None
        inner = item.get("function")
        if isinstance(inner, dict):
            if "name" in item or not inner.keys() <= {"name", "arguments", "parameters"}:
                return None
            item = inner
        elif inner is not None:
            return None
        name, given = item.get("name"), [item[key] for key in ("arguments", "parameters") if key in item]
        if not isinstance(name, str) or name not in self._schemas or len(given) != 1:
            return None
        arguments = given[0]
        try:
            if isinstance(arguments, str):
                arguments = msgspec.json.decode(arguments)
            if not isinstance(arguments, dict) or not self._fits(name, arguments):
                return None
            return Call(name, msgspec.json.encode(arguments).decode())
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _fits(self, name: str, arguments: dict[str, Any]) -> bool:
        schema = self._schemas[name]
        if not isinstance(schema, dict):
            return True
        import jsonschema
        import referencing
        from referencing.exceptions import Unresolvable

        try:
            if name not in self._validators:
                kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
                kind.check_schema(schema)
                # A registry of its own, because the usual one fetches what a schema refers to.
                self._validators[name] = kind(schema, registry=referencing.Registry())
            return bool(self._validators[name].is_valid(arguments))
        except (jsonschema.SchemaError, Unresolvable, re.error, TypeError, ValueError, AttributeError):
            return True  # a schema that says nothing: that it is an object is all that can be asked


def _candidate(text: str) -> tuple[int, str]:
    """Where the text begins that may be a call, and what it is without fence or tags; -1 where there is none."""
    bare = text.strip()
    if bare.startswith(("{", "[")):
        return len(text) - len(text.lstrip()), bare
    block = _last_block(text)
    if block is None or (block.end < 0 and block.closing == _TICKS):
        return -1, ""
    return block.start, text[block.inside : block.end if block.end >= 0 else len(text)].strip()


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that a text ends with, in a fence or in tags."""

    start: int
    inside: int
    end: int  # of what is inside; -1 while it is open
    closing: str


def _last_block(text: str) -> _Block | None:
    """The block that the text ends with; None where there is none, or something follows it."""
    found: _Block | None = None
    at = 0
    for line in text.splitlines(keepends=True):
        after = at + len(line)
        if found is None or found.end >= 0:
            opened = _opened(line, at)
            if opened is None and found is not None and line.strip():
                found = None  # text behind it: it is an example, or the like
            found = opened or found
            if opened is not None and opened.closing == _TICKS:
                at = after
                continue
        if found is not None and found.end < 0:
            found = _closed(found, text, at, after)
        at = after
    return found


def _opened(line: str, at: int) -> _Block | None:
    mark = line.lstrip(" ")
    start = at + len(line) - len(mark)
    if start - at > _INDENT:
        return None
    if mark.startswith(_TICKS):
        return _Block(start, at + len(line), -1, _TICKS)
    for tag, closing in _TAGS.items():
        if mark.startswith(tag):
            return _Block(start, start + len(tag), -1, closing)
    return None


def _closed(block: _Block, text: str, at: int, after: int) -> _Block | None:
    """The block, closed if this line (from `at` to `after`) does so; None where text follows in the same line."""
    if block.closing == _TICKS:
        line = text[at:after].lstrip(" ")
        closes = line.startswith(_TICKS) and not line.strip("` \r\n")
        return replace(block, end=at) if closes else block
    end = text.find(block.closing, max(block.inside, at), after)
    if end < 0:
        return block
    return None if text[end + len(block.closing) : after].strip() else replace(block, end=end)


def _forms(body: str) -> Iterator[str]:
    yield body
    if body.startswith("{{") and body.endswith("}}"):  # as some templates write their example
        yield body[1:-1]


def _possible(text: str, sent: int) -> int | None:
    """From where on the text may still become a call; None where it cannot."""
    bare = text.lstrip()
    start = len(text) - len(bare)
    if bare and start >= sent and _may_be_bare(bare):
        return start
    block = _last_block(text)
    if block is not None:
        return block.start if block.start >= sent else None
    line = text.rfind("\n") + 1
    mark = text[line:].lstrip(" ")
    start = len(text) - len(mark)
    begins = bool(mark) and any(opening.startswith(mark) for opening in (_TICKS, *_TAGS))
    return start if begins and sent <= start <= line + _INDENT else None


def _may_be_bare(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    opening = _BARE.match(text)
    rest = text[opening.end() :] if opening else text
    if not rest:
        return True
    key = rest.split('"')[1] if rest.count('"') > 1 else rest[1:]
    whole = rest.count('"') > 1
    return rest[0] == '"' and (key in _KEYS if whole else any(name.startswith(key) for name in _KEYS))


# --- answers -----------------------------------------------------------------------------------------------------


def rescue_answer(body: bytes, tools: Tools) -> tuple[bytes, int]:
    """A whole answer with the calls delivered, and how many there are; the same bytes where there are none."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, Any])
        choices = answer.get("choices")
    except (msgspec.MsgspecError, RecursionError):
        return body, 0
    count = 0
    for index, choice in enumerate(choices if isinstance(choices, list) else ()):
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or message.get("tool_calls") or choice.get("finish_reason") != "stop":
            continue
        content = message.get("content")
        found = tools.calls(content) if isinstance(content, str) else None
        if found is None:
            continue
        before, calls = found
        message["content"] = before if before.strip() else None
        message["tool_calls"] = [_delivered(answer, index, i, call) for i, call in enumerate(calls)]
        choice["finish_reason"] = "tool_calls"
        count += len(calls)
    return (msgspec.json.encode(answer), count) if count else (body, 0)


def _delivered(answer: Mapping[str, Any], choice: int, index: int, call: Call) -> dict[str, Any]:
    told = f"{answer.get('id')}\0{choice}\0{index}\0{call.name}\0{call.arguments}"
    number = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:24]
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


class Stream:
    """The same for an answer that comes in events."""

    def __init__(self, tools: Tools) -> None:
        self.rescued = 0
        self._tools = tools
        self._text = ""
        self._sent = 0  # characters of the text that are with the client
        self._held: list[tuple[bytes, int]] = []  # event, end of the text with it
        self._off = False

    def feed(self, event: bytes) -> list[bytes]:
        """One event, with the blank line that ends it; returns those that go on now."""
        if self._off:
            return [event]
        data = data_of(event)
        if data is None:
            return [event] if event.startswith(b":") else [*self.close(), event]
        choices = data.get("choices")
        if not choices:
            return self._waits(event) if self._held else [event]
        choice = choices[0] if isinstance(choices, list) else None
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or len(choices) != 1 or choice.get("index", 0) != 0:
            return self._give_up(event)
        delta = delta if isinstance(delta, dict) else {}
        if delta.get("tool_calls") or delta.get("function_call"):
            return self._give_up(event)
        content = delta.get("content")
        self._text += content if isinstance(content, str) else ""
        if len(self._text) - self._sent > HELD:
            return self._give_up(event)
        if (reason := choice.get("finish_reason")) is not None:
            found = self._tools.calls(self._text) if reason == "stop" else None
            if found is not None and len(found[0]) >= self._sent:
                return self._deliver(data, choice, *found)
            return [*self.close(), event]
        start = _possible(self._text, self._sent)
        if start is None:
            out = [*self.close(), event]
            self._sent = len(self._text)
            return out
        if not content and not self._held:
            return [event]
        released = self._waits(event)
        while self._held and self._held[0][1] <= start:
            waited, self._sent = self._held.pop(0)
            released.append(waited)
        return released

    def close(self) -> list[bytes]:
        """What waits, as it came."""
        held, self._held = [event for event, _ in self._held], []
        self._sent = len(self._text)
        return held

    def _waits(self, event: bytes) -> list[bytes]:
        self._held.append((event, len(self._text)))
        return []

    def _give_up(self, event: bytes) -> list[bytes]:
        self._off = True
        return [*self.close(), event]

    def _deliver(
        self, last: dict[str, Any], choice: dict[str, Any], before: str, calls: tuple[Call, ...]
    ) -> list[bytes]:
        common = {name: value for name, value in last.items() if name not in ("choices", "usage", "timings")}
        rest = before[self._sent :]
        deltas: list[dict[str, Any]] = [{"content": rest}] if rest.strip() else []
        deltas += [{"tool_calls": [{"index": i, **_delivered(last, 0, i, call)}]} for i, call in enumerate(calls)]
        others = [event for event, _ in self._held if not (data_of(event) or {}).get("choices")]
        events = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        events.append({**last, "choices": [{**choice, "delta": {}, "finish_reason": "tool_calls"}]})
        self.rescued += len(calls)
        self._held, self._off = [], True
        return [*(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events), *others]
