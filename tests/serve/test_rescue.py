"""Calls that were written as text: what counts as one, and that nothing else is touched, whole or in events."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("jsonschema", reason="the gateway extra is not installed")

from carbon_mind.serve.rescue import HELD, Call, Stream, Tools, rescue_answer
from carbon_mind.serve.wire import data_of

READ = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
}
LIST = {"type": "function", "function": {"name": "list"}}
TOOLS = [READ, LIST]
CALL = '{"name": "read", "arguments": {"path": "a.py"}}'
EXPECTED = (Call("read", '{"path":"a.py"}'),)


def calls(text: str, tools: Any = None) -> tuple[str, tuple[Call, ...]] | None:
    return Tools(TOOLS if tools is None else tools).calls(text)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (CALL, ""),
        (f"\n  {CALL}  \n", "\n  "),
        (f"```json\n{CALL}\n```", ""),
        (f"```\n{CALL}\n```\n", ""),
        (f"I look at it.\n\n```json\n{CALL}\n```\n\n", "I look at it.\n\n"),
        (f"As in\n```py\nx = 1\n```\nso:\n```json\n{CALL}\n```", "As in\n```py\nx = 1\n```\nso:\n"),
        ('{{"name": "read", "arguments": {"path": "a.py"}}}', ""),
        ('{"name": "read", "parameters": {"path": "a.py"}}', ""),
        ('{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}', ""),
        (f"<tool_call>\n{CALL}\n</tool_call>", ""),
        (f"<tools>{CALL}</tools>", ""),
        (f"<tool_call>{CALL}", ""),
        (f"I search for it. \n\n<tools>\n{CALL}\n</tools>", "I search for it. \n\n"),
        (f"So:\n  <tool_call>{CALL}</tool_call>\n", "So:\n  "),
        (f"So:\n<tools>\n{CALL}\n", "So:\n"),
        ('{"type": "function", "function": {"name": "read", "arguments": {"path": "a.py"}}}', ""),
        (f"[{CALL}]", ""),
    ],
)
def test_what_is_a_call(text: str, before: str) -> None:
    assert calls(text) == (before, EXPECTED)


def test_several_calls_in_an_array() -> None:
    found = calls(f'[{CALL}, {{"name": "list", "arguments": {{}}}}]')
    assert found == ("", (*EXPECTED, Call("list", "{}")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is in a.py.",
        '{"answer": 42}',
        "[1, 2]",
        "[]",
        '{"name": "write", "arguments": {"path": "a.py"}}',
        '{"name": "read", "arguments": {}}',
        '{"name": "read", "arguments": {"path": 1}}',
        '{"name": "read", "arguments": {"path": "a", "more": 1}}',
        '{"name": "read", "arguments": {"path": "a.py"}, "why": "x"}',
        '{"name": "read", "arguments": [1]}',
        '{"name": "read", "arguments": "none"}',
        '{"name": "read"}',
        '{"name": "read", "arguments": {"path": "a"}, "parameters": {"path": "a"}}',
        '{"name": ["read"], "arguments": {}}',
        f"{CALL}\n{CALL}",
        f"{CALL} and then",
        f"Say {CALL}",
        f"```json\n{CALL}\n```\nThis is how it looks.",
        f"```json\n{CALL}",
        f"<tools>\n{CALL}\n</tools> and then",
        f"<tools>\n{CALL}\n</tools>\nand then",
        f"in a line <tools>{CALL}</tools>",
        f"```json\n{CALL}\n{CALL}\n```",
        f"[{CALL}, 1]",
        "[" * 100_000,
        '{"name": "list", "arguments": ' + '{"a":' * 20_000 + "1" + "}" * 20_001,
    ],
)
def test_what_is_none(text: str) -> None:
    assert calls(text) is None


def test_tools_that_are_malformed_are_none_and_schemas_that_are_broken_ask_for_an_object() -> None:
    assert calls(CALL, [1, None, {}, {"function": 1}, {"function": {"name": 1}}]) is None
    for schema in ({"type": 7}, {"$ref": "https://example.invalid/schema.json"}, "x", {"pattern": "("}):
        tool = {"type": "function", "function": {"name": "read", "parameters": schema}}
        assert calls(CALL, [tool]) == ("", EXPECTED)
        assert calls('{"name": "read", "arguments": [1]}', [tool]) is None


# --- whole answers -----------------------------------------------------------------------------------------------


def answer(text: str | None, reason: str = "stop", **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": reason}
    return json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice], "usage": {"n": 1}}).encode()


def test_an_answer_is_delivered_as_calls() -> None:
    body, count = rescue_answer(answer(f"So:\n```json\n{CALL}\n```"), Tools(TOOLS))
    found = json.loads(body)
    assert count == 1
    assert found["usage"] == {"n": 1}
    (choice,) = found["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "So:\n"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "read", "arguments": '{"path":"a.py"}'}
    assert call["id"].startswith("call_")
    assert json.loads(rescue_answer(answer(CALL), Tools(TOOLS))[0])["choices"][0]["message"]["content"] is None


@pytest.mark.parametrize(
    "body",
    [
        answer("no call"),
        answer(CALL, "length"),
        answer(CALL, tool_calls=[{"id": "x"}]),
        answer(None),
        b"no json",
        b'{"choices": 1}',
        b'{"choices": [1]}',
    ],
)
def test_any_other_answer_is_the_same_bytes(body: bytes) -> None:
    assert rescue_answer(body, Tools(TOOLS)) == (body, 0)


# --- events ------------------------------------------------------------------------------------------------------


def event(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return f"data: {json.dumps({'id': 'c1', 'model': 'm', 'choices': [choice], **more})}\n\n".encode()


FIRST = event({"role": "assistant", "content": None})
LAST = event({}, "stop", timings={"cache_n": 1, "prompt_n": 2, "predicted_n": 3})
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 1}}\n\n'
DONE = b"data: [DONE]\n\n"


def stream(parts: list[str], last: bytes = LAST) -> list[bytes]:
    return [FIRST, *(event({"content": part}) for part in parts), last, USAGE, DONE]


def passed(events: list[bytes]) -> tuple[list[bytes], Stream]:
    found = Stream(Tools(TOOLS))
    out = [ready for item in events for ready in found.feed(item)]
    return out + found.close(), found


def told(events: list[bytes]) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Text, calls and reasons to finish in events."""
    text = ""
    found: list[dict[str, Any]] = []
    reasons: list[str] = []
    for item in events:
        for choice in (data_of(item) or {}).get("choices") or ():
            text += choice["delta"].get("content") or ""
            found += choice["delta"].get("tool_calls") or ()
            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
    return text, found, reasons


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(ends)]


_PIECES = st.sampled_from(
    [
        "```",
        "`",
        "``",
        "```json\n",
        "\n",
        " ",
        "{",
        "}",
        "[",
        "{{",
        '"',
        "text",
        CALL,
        "<tool_call>",
        "</tool_call>",
        "<tools>",
        "</tools>",
        "<to",
        '{"name"',
        "x\n",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("".join), st.lists(st.integers(0, 200), max_size=30))
@example(f"Look:\n```json\n{CALL}\n```", list(range(100)))
@example(f"  ```json\n{CALL}\n```\n", [1, 2, 3, 4, 5])
def test_however_it_is_cut_it_is_the_same(text: str, places: list[int]) -> None:
    events = stream(cut(text, places))
    out, found = passed(events)
    whole, count = rescue_answer(answer(text), Tools(TOOLS))
    assert found.rescued == count
    if not count:
        assert out == events
        return
    said, given_calls, reasons = told(out)
    (choice,) = json.loads(whole)["choices"]
    assert reasons == ["tool_calls"]
    assert said.strip() == (choice["message"]["content"] or "").strip()
    assert [call["function"] for call in given_calls] == [call["function"] for call in choice["message"]["tool_calls"]]
    assert out[-2:] == [USAGE, DONE]


def test_the_end_of_a_rescued_stream_keeps_its_counts() -> None:
    out, _ = passed(stream([CALL]))
    last = next(data for item in out if (data := data_of(item)) and "timings" in data)
    assert last["timings"]["predicted_n"] == 3
    assert last["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    assert {data["id"] for data in map(data_of, out) if data is not None and "id" in data} == {"c1"}


def test_text_waits_only_where_it_may_be_a_call() -> None:
    found = Stream(Tools(TOOLS))
    assert found.feed(FIRST) == [FIRST]
    for text in ("It is", " a `name` here.\n", "More"):
        assert found.feed(event({"content": text})) == [event({"content": text})]
    opening, body, closing, behind = (event({"content": text}) for text in ("\n``", "`\nx\n", "```\n", "done"))
    assert found.feed(opening) == found.feed(body) == found.feed(closing) == []
    assert found.feed(behind) == [opening, body, closing, behind]
    brace = event({"content": "{ not json"})
    other = Stream(Tools(TOOLS))
    assert other.feed(brace) == [brace], "no call begins like that"


@pytest.mark.parametrize(
    "events",
    [
        stream([CALL], event({}, "length")),
        stream(["{", '"na'])[:-3],
        [FIRST, event({"tool_calls": [{"index": 0, "id": "x"}]}), LAST],
        [event({"content": "{"}), event({"tool_calls": [{"index": 0}]}), event({"content": CALL}), LAST],
        [b": ping\n\n", *stream(["plain"])],
        [item.replace(b"\n", b"\r\n") for item in stream(["plain"])],
        [b'data: {"choices": [{"index": 1, "delta": {"content": "{"}}]}\n\n', *stream([CALL])],
        stream(["```json\n" + '{"name": "read' + "x" * HELD, "y", '"}\n```']),
        stream([f"```json\n{CALL}\n```", "\nLike that."]),
    ],
)
def test_whatever_is_no_call_passes_as_it_came(events: list[bytes]) -> None:
    out, found = passed(events)
    assert out == events
    assert found.rescued == 0


def test_a_comment_overtakes_what_waits() -> None:
    found = Stream(Tools(TOOLS))
    assert found.feed(event({"content": "{"})) == []
    assert found.feed(b": ping\n\n") == [b": ping\n\n"]
