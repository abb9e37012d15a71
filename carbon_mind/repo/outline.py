"""The part of a test or an example that matters: what it imports. The rest is not worth parsing.

Nothing in the digest comes from the inside of such a file but a test that is switched off. So it is parsed only as far as its last
import at the left margin, and wholly where a word in it may switch a test off. Finding that place is a search for a few fixed words from
the end, at a hundredth of what a parse costs; a line that only looks like an import makes the part longer, never wrong.
"""

from __future__ import annotations

import re

__all__ = ["head", "may_switch_off"]

Starts = tuple[
    tuple[bytes, tuple[bytes, ...]], ...
]  # a word, and how a line of an import with that word in it may start

_ECMA: Starts = (
    (b"import", (b"import",)),
    (b"from", (b"export", b"}")),
    (b"require(", (b"const ", b"let ", b"var ", b"require(", b"}")),
)
_C: Starts = ((b"include", (b"#",)),)
_STARTS: dict[str, Starts] = {
    "bash": ((b"source ", (b"source ",)), (b". ", (b". ",))),
    "c": _C,
    "cpp": _C,
    "javascript": _ECMA,
    "lua": ((b"require", (b"local ", b"require")),),
    "php": (
        (b"use ", (b"use ",)),
        (b"namespace ", (b"namespace ",)),
        (b"require", (b"require",)),
        (b"include", (b"include",)),
    ),
    "python": ((b"import ", (b"import ", b"from ")),),
    "rust": (
        (b"use ", (b"use ", b"pub ")),
        (b"mod ", (b"mod ", b"pub ", b"#[path")),
        (b"extern crate ", (b"extern crate ", b"pub ", b"#[macro_use]")),
    ),
    "tsx": _ECMA,
    "typescript": _ECMA,
    "zig": ((b"@import(", (b"const ", b"pub ", b"usingnamespace ")),),
}
_OPEN = (b"(", b"{", b"[")
_CLOSE = re.compile(rb"^[)}\]][^\n]*", re.M)

_SKIPPED = (b".skip", b".fails", b".failing", b"xit(", b"xtest(", b"xdescribe(")
# Of what a query can find. A word too many costs a parse, a word too few a known bug.
_OFF: dict[str, tuple[bytes, ...]] = {
    "javascript": _SKIPPED,
    "php": (b"markTest",),
    "python": (b"mark.skip", b"mark.xfail", b"expectedFailure", b"@skip", b"@xfail", b".skip("),
    "rust": (b"#[ignore",),
    "tsx": _SKIPPED,
    "typescript": _SKIPPED,
}


def head(text: bytes, language: str) -> bytes:
    """`text` up to the end of its last import, an import of several lines included; empty when it has none."""
    end = max((_last(text, word, starts) for word, starts in _STARTS[language]), default=0)
    if text[:end].rstrip().endswith(_OPEN):
        close = _CLOSE.search(text, end)
        end = close.end() if close else len(text)
    return text[:end] + b"\n" if end else b""


def _last(text: bytes, word: bytes, starts: tuple[bytes, ...]) -> int:
    """Where the last line ends that has the word and starts so, at the left margin; 0 when there is none."""
    at = len(text)
    while (at := text.rfind(word, 0, at)) >= 0:
        start = text.rfind(b"\n", 0, at) + 1
        if text.startswith(starts, start):
            end = text.find(b"\n", at)
            return end if end >= 0 else len(text)
        at = start  # nothing else in this line can start it in another way
    return 0


def may_switch_off(text: bytes, language: str) -> bool:
    """Whether a word of `text` may switch a test off, or expect it to fail, in the language of that name."""
    return any(word in text for word in _OFF.get(language, ()))
