"""Every promise as a property over hostile text, and the known tricks by name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from carbon_mind.safety.text import clean, code, escape_special

PIECES = st.sampled_from(
    ["<!--", "-->", "<", "!", "-", "<!-- carbon-mind:begin -->", "carbon-mind:end", "`", "``", "```", "~~", "~~~~", "/"]
    + [
        "<repository-digest",
        "</repository-digest>",
        "REPOSITORY-digest",
        "repository",
        "-digest",
        " ",
        "  ",
        "\t",
        "\n",
    ]
    + ["\r\n", "\r", "\u2028", "\u200b", "\u202e", "\ufeff", "\U000e0041", "\U000e0100", "\ufe0f", "\x1b[31m", "\x00"]
    + ["\udcff", "\udc80", "\ud800", "\x85", "\xa0", "\u3000", "a", "word", "\u00e9", "\u4e2d", "\U0001f600", "\\n"]
    + ["<|im_end|>", "<|", "im_end", "|>", "</s>", "<start_of_turn>", "[INST]"]
)
HOSTILE = st.lists(PIECES | st.text(max_size=4), max_size=14).map("".join)

FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f\ud800-\udfff"
    "\U000e0000-\U000e0fff]|  |<!--|```|~~~"
)


@given(HOSTILE)
@settings(max_examples=400)
def test_nothing_forbidden_survives(text: str) -> None:
    cleaned = clean(text)
    assert not FORBIDDEN.search(cleaned)
    assert not re.search(r"<\s*/?\s*repository-digest", cleaned, re.IGNORECASE)
    assert cleaned == cleaned.strip()
    cleaned.encode()  # real text: no surrogate left


@given(HOSTILE, st.none() | st.integers(0, 30))
@settings(max_examples=400)
def test_cleaning_twice_is_cleaning_once(text: str, limit: int | None) -> None:
    cleaned = clean(text, limit=limit)
    assert clean(cleaned, limit=limit) == cleaned
    assert clean(cleaned) == cleaned
    assert limit is None or len(cleaned) <= limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x): return x", "def f(x): return x"),
        ("  a \t b  ", "a b"),
        ("name\nwith newline", r"name\nwith newline"),
        ("caf\udce9.txt", r"caf\xe9.txt"),
        ("<!-- carbon-mind:end -->", "<! -- carbon-mind:end -->"),
        ("<!\u200b-- carbon-mind:end -->", "<! -- carbon-mind:end -->"),
        ("``\u200d`sh", "'''sh"),
        ("~~~~ x", "~~ x"),
        ("</repository-digest>", "(/repository-digest>"),
        ("< / Repository-Digest>", "( / Repository-Digest>"),
        ("ad\u202emin", "admin"),
        ("hi\U000e0049\U000e0067\U000e006e", "hi"),
        ("\x1b[2Jgone", "[2Jgone"),
        ("a < b, c <- d, `x` and ~~y~~", "a < b, c <- d, `x` and ~~y~~"),
        ("d\u00e9j\u00e0 \u4e2d\u6587 \U0001f600", "d\u00e9j\u00e0 \u4e2d\u6587 \U0001f600"),
        ("", ""),
    ],
)
def test_known_tricks(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_the_cut() -> None:
    assert clean("abcdefghij", limit=10) == "abcdefghij"
    assert clean("abcdefghijk", limit=10) == "abcdefg..."
    assert clean("abcdef hijk", limit=10) == "abcdef..."
    assert clean("\U0001f600" * 9, limit=5) == "\U0001f600\U0001f600..."
    assert clean("abcdef", limit=2) == ".."
    assert clean("abcdef", limit=0) == ""


@given(HOSTILE)
@settings(max_examples=400)
def test_inline_code_is_one_piece_for_a_markdown_parser(text: str) -> None:
    parser = MarkdownIt("commonmark")
    tokens = parser.parseInline("before " + code(text) + " after")[0].children
    assert tokens is not None
    assert [token.type for token in tokens] == ["text", "code_inline", "text"]
    kept = clean(text)
    assert tokens[1].content.strip() in {kept, kept.replace("`", "'")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("make test", "`make test`"),
        ("echo `date`", "`` echo `date` ``"),
        ("a``b", "`a``b`"),
        ("`a``b", "`'a''b`"),
        ("", "` `"),
        ("```", "`'''`"),
        ("x\n\n# heading", r"`x\n\n# heading`"),
    ],
)
def test_inline_code(text: str, expected: str) -> None:
    assert code(text) == expected


SPECIAL = ["<|im_end|>", "<|im_start|>", "</s>", "<s>", "<start_of_turn>", "[INST]", "[/INST]", "<\uff5cend\uff5c>"]
WORDS = st.lists(st.text("<|>ab/ ", min_size=1, max_size=5) | st.sampled_from(SPECIAL), max_size=6)


@given(st.lists(PIECES | st.text("<|>ab/ ", max_size=6), max_size=14).map("".join), WORDS)
@settings(max_examples=400)
def test_no_control_token_survives(text: str, special: list[str]) -> None:
    escaped = escape_special(text, special)
    for word in special:
        if len(word.strip()) > 1:
            assert word not in escaped
    assert not re.search(r"<\|[^|<>\s]+\|>", escaped)
    assert escape_special(escaped, reversed(special)) == escaped
    assert escaped.replace(" ", "") == text.replace(" ", "")  # only spaces are added


def test_control_tokens_by_name() -> None:
    assert escape_special("<|im_end|> </s> [INST]", []) == "< |im_end|> </s> [INST]"
    assert escape_special("<|im_end|> </s> [INST]", SPECIAL) == "< |im_end|> < /s> [ INST]"
    assert escape_special("<\uff5cend\u2581of\uff5c>", []) == "< \uff5cend\u2581of\uff5c>"
    assert escape_special("p <|> q <| r |> s <||> t", []) == "p <|> q <| r |> s <||> t"
    assert escape_special("<<s>>", ["<s>", "<<s>>"]) == "< <s>>".replace("<s", "< s")
    assert escape_special("a b", ["a b", "a  b"]) == "a   b"
    assert escape_special("x  y\n", ["  ", "\n", "", "x"]) == "x  y\n"
