"""Text of a stranger, made safe to print and to put into a prompt.

Three things can go wrong with one line of a repository: it can hold characters that nobody sees (and that a model or a
terminal obeys), it can look like the structure around it (our markers, a code fence, the tag that encloses the digest),
and it can spell one of the model's control tokens. Each function here closes one of these doors.

The ranges are written out, not asked from `unicodedata`: that table differs between Python versions, and the same
input must give the same bytes on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["clean", "code", "escape_special"]

_ELLIPSIS = "..."

# White space of every kind, line and paragraph separators, and characters that are drawn as nothing but a gap.
_BLANK = "\t\v\f\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000"

# Controls (C0, DEL, C1), format characters (zero width, bidi, invisible operators, tags), fillers, variation selectors
# (256 of them: one hides a byte), surrogates that are no escaped byte, noncharacters.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udc7f\udd00-\udfff\ufdd0-\ufdef"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
) + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17))

_SUSPECT = re.compile(f"[\n\udc80-\udcff{_BLANK}{_INVISIBLE}<`~]|  |^ | $")
_HIDDEN = re.compile(f"[{_INVISIBLE}]+")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_BLANKS = re.compile(f"[ {_BLANK}]+")
_FENCE = re.compile("```+|~~~+")
_TAG = re.compile(r"<(?= ?/? ?repository-digest)", re.IGNORECASE)


def clean(text: str, *, limit: int | None = None) -> str:
    """`text` as one visible line that cannot be taken for a part of the digest's own structure.

    Invisible characters go, white space collapses to single spaces, a newline shows as `\\n` and a byte that was no
    UTF-8 (surrogateescape) as `\\xNN`. Comment openers (so every marker of ours), fences of three or more backticks or
    tildes, and the digest's own tag are broken. Longer than `limit` characters: cut, ending in "...". Idempotent.
    """
    if _SUSPECT.search(text):
        text = _HIDDEN.sub("", text)
        text = _ESCAPED_BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
        text = text.replace("\r\n", "\n").replace("\n", "\\n")
        text = _BLANKS.sub(" ", text).strip(" ")
        # Nothing is removed from here on, and each replacement puts a character where no pattern has one: what has
        # been broken stays broken, and nothing new comes together.
        text = text.replace("<!--", "<! --")
        text = _FENCE.sub(lambda found: "'" * len(found[0]) if found[0][0] == "`" else "~~", text)
        text = _TAG.sub("(", text)
    if limit is not None and len(text) > limit:
        text = text[: max(limit - len(_ELLIPSIS), 0)].rstrip(" ") + _ELLIPSIS[: max(limit, 0)]
    return text


def code(text: str) -> str:
    """`text`, cleaned, as Markdown inline code that nothing in it can end early.

    An exact command must stay exact, so backticks are kept wherever a delimiter of another length can enclose them
    (CommonMark 6.1); only where runs of one and of two occur together they become `'`.
    """
    text = clean(text) or " "
    runs = {len(run) for run in re.findall("`+", text)}
    if len(runs) > 1:
        text, runs = text.replace("`", "'"), set()
    fence = "``" if runs == {1} else "`"
    padding = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{padding}{text}{padding}{fence}"


# <|im_end|>, <|eot_id|>, and the full-width bars of DeepSeek; an operator such as `<|` or `<|>` is none.
_GENERIC = r"<[|\uff5c](?=[^|\uff5c<>\s]{1,64}[|\uff5c]>)"


def escape_special(text: str, special: Iterable[str]) -> str:
    """`text` without any of the model's control tokens: one space after the first character breaks each occurrence.

    `special` are the tokens' strings; forms like `<|...|>` are broken without being named. A string with fewer than two
    visible characters is no control token and is left alone. Idempotent; the order of `special` does not matter.
    """
    pattern = _pattern(tuple(sorted({word.strip() for word in special}, key=lambda word: (-len(word), word))))
    # Each round widens a gap inside an occurrence; no token has a gap wider than itself, so this ends.
    while pattern.search(text):
        text = pattern.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
    return text


@lru_cache(maxsize=8)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join([*(re.escape(word) for word in words if len(word) > 1), _GENERIC]))
