"""Bodies and events pass as they came, but for what is changed on purpose."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbon_mind.serve.wire import Events, NotChat, compose, counts_of, data_of, parse, text_of, with_fields, with_text

BODY = b' {"model":"m",  "messages": [ {"role":"system", "content":"s"}, {"role":"user","content":"u"} ], "n": 1.10 , "tools":[{"a" :1}]}'


def test_fields_are_put_in_front_and_the_rest_stays() -> None:
    chat = parse(BODY)
    assert (chat.head, chat.has_user, chat.continues, chat.stream) == (1, True, False, False)
    assert compose(chat, {}) == BODY
    assert compose(chat, {"id_slot": 1}) == b'{"id_slot":1,' + BODY.strip()[1:]


def test_a_changed_message_leaves_the_others_as_they_are() -> None:
    chat = parse(BODY)
    found = compose(chat, {"n": 2}, {1: {"role": "user", "content": "v"}}, [])
    assert b'{"role":"system", "content":"s"}' in found
    assert json.loads(found) == {
        "model": "m",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "v"}],
        "n": 2,
        "tools": [],
    }
    assert with_fields(b'{"a":1.10}', {"b": 2}) == b'{"a":1.10,"b":2}'
    assert with_fields(b"[1]", {"b": 2}) == b"[1]"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"messages":1}',
        b'{"messages":[1]}',
        b'{"messages":[],"tools":1}',
        b"\xff",
        b'{"messages":' + b"[" * 99999,
    ],
)
def test_what_is_no_chat(body: bytes) -> None:
    with pytest.raises(NotChat):
        parse(body)


def test_texts_of_messages() -> None:
    parts = {
        "role": "user",
        "content": [{"type": "image_url"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    assert text_of(parts) == "a"
    assert with_text(parts, "c")["content"][1:] == [{"type": "text", "text": "c"}, {"type": "text", "text": "b"}]
    picture = {"role": "user", "content": [{"type": "image_url"}]}
    assert text_of(picture) is None
    assert with_text(picture, "c")["content"] == [{"type": "text", "text": "c"}, {"type": "image_url"}]
    assert text_of({"content": None}) is None


@given(
    st.lists(st.sampled_from([b"data: {}\n\n", b": ping\n\n", b"data: a\r\n\r\n", b"data: [DONE]\n\n"])),
    st.lists(st.integers(0, 60)),
)
def test_events_come_whole_however_they_are_cut(events: list[bytes], cuts: list[int]) -> None:
    data = b"".join(events) + b"data: half"
    ends = sorted({*(min(cut, len(data)) for cut in cuts), 0, len(data)})
    found, cutter = [], Events()
    for start, end in itertools.pairwise(ends):
        found += cutter.feed(data[start:end])
    assert (found, cutter.close()) == (events, b"data: half")


def test_counts_of_an_answer() -> None:
    timings = counts_of({"timings": {"cache_n": 1, "prompt_n": 2, "predicted_n": 3}})
    assert timings is not None
    assert (timings.cached, timings.evaluated, timings.generated) == (1, 2, 3)
    usage = counts_of(
        {"usage": {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}}
    )
    assert usage is not None
    assert (usage.cached, usage.evaluated) == (4, 6)
    assert counts_of({"usage": {"prompt_tokens": "x"}}) is counts_of({"timings": {}}) is counts_of({}) is None
    assert data_of(b"data: [DONE]\n\n") is data_of(b": x\n\n") is None
