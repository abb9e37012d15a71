"""The managed block: only the bytes between the markers are ours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.safety.block import BEGIN, END, BlockProblem, put, strip

OTHERS = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="ab \n\r#-<!>", max_size=40).map(str.encode),
    st.sampled_from([b"# Rules\r\n", b"caf\xe9", b"\xef\xbb\xbfx\n\n\n", b"\xff\xfea\0"]),
).filter(lambda data: BEGIN not in data and END not in data)
CONTENT = st.text(alphabet="ab \n#", max_size=30).map(str.encode)


@settings(max_examples=300, deadline=None)
@given(before=OTHERS, one=CONTENT, two=CONTENT)
def test_everything_else_stays(before: bytes, one: bytes, two: bytes) -> None:
    first = put(before, one)
    assert first.startswith(before), "appended behind what was there"
    assert put(first, one) == first
    second = put(first, two)
    start, stop = first.index(BEGIN), first.index(END)
    assert second[: second.index(BEGIN)] == first[:start]
    assert second[second.index(END) :] == first[stop:]
    assert put(second, one) == first
    # The identity of what is not ours: the same with and without the block, but for final line ends.
    assert strip(first) == strip(second)
    assert strip(first).rstrip(b"\r\n") == before.rstrip(b"\r\n")
    assert strip(before) == before


@settings(max_examples=200, deadline=None)
@given(before=OTHERS, after=OTHERS, one=CONTENT, two=CONTENT)
def test_a_block_that_somebody_moved_is_replaced_where_it_is(
    before: bytes, after: bytes, one: bytes, two: bytes
) -> None:
    moved = before + BEGIN + b"old" + END + after
    result = put(moved, one)
    assert result.startswith(before + BEGIN)
    assert result.endswith(END + after)
    assert strip(result) == strip(put(result, two)) == strip(moved)


@pytest.mark.parametrize(
    "damaged",
    [
        BEGIN,
        END,
        END + BEGIN,
        BEGIN + BEGIN + END,
        BEGIN + END + END,
        BEGIN + b"a" + END + BEGIN + b"b" + END,
        b"x" + END + b"\n",
    ],
)
def test_damaged_markers_are_refused_and_read_as_they_are(damaged: bytes) -> None:
    with pytest.raises(BlockProblem):
        put(damaged, b"content")
    assert strip(damaged) == damaged


@pytest.mark.parametrize("content", [b"a" + BEGIN, END, BEGIN + END])
def test_content_with_a_marker_is_refused(content: bytes) -> None:
    with pytest.raises(BlockProblem):
        put(b"", content)
