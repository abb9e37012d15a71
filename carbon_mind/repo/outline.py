"""The part of a test or an example that matters: what it imports. The rest is not worth parsing.

Nothing in the digest comes from the inside of such a file but a test that is switched off, so it is parsed only as far as its last import
at the left margin, and wholly where a word in it may switch a test off.
"""

from __future__ import annotations

import re

__all__ = ["head", "may_switch_off"]

_IMPORT = re.compile(
    rb"^(?:(?:pub|export|global|static|const|let|var|local)[ (][^\n]*?)?"
    rb"(?:import|from|use|using|require|require_relative|require_once|include|include_once|#[ \t]*include|package|namespace|mod"
    rb"|extern crate|source|load|autoload|\.(?= )|[^\n(]*[ (]require\(|[^\n(]*@import\()(?=[ \t({\"'<;.])[^\n]*",
    re.M,
)
_OPEN = (b"(", b"{", b"[")
_CLOSE = re.compile(rb"^[)}\]][^\n]*", re.M)

_ECMA = re.compile(rb"\.(?:skip|fails|failing)\b|\bx(?:it|test|describe)\(")
# What a query can find; a word too many costs a parse, a word too few a known bug.
_OFF = {
    "c_sharp": re.compile(rb"\bSkip *=|\bIgnore\b"),
    "go": re.compile(rb"\.Skip(?:f|Now)?\("),
    "java": re.compile(rb"@(?:Disabled|Ignore)\b"),
    "javascript": _ECMA,
    "php": re.compile(rb"markTest(?:Skipped|Incomplete)"),
    "python": re.compile(rb"\bmark\.(?:skip|xfail)\b|\bexpectedFailure\b|@(?:\w+\.)*(?:skip|xfail)\b"),
    "ruby": re.compile(rb"\b(?:xit|xdescribe|xcontext|skip|pending)\b"),
    "rust": re.compile(rb"#\[ignore"),
    "tsx": _ECMA,
    "typescript": _ECMA,
}


def head(text: bytes) -> bytes:
    """`text` up to the end of its last import, an import of several lines included; empty when it has none.

    Only what starts at the left margin counts: all languages put imports there, and a body that mentions one does not.
    """
    last = None
    for last in _IMPORT.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    if last is None:
        return b""
    end = last.end()
    if last[0].rstrip().endswith(_OPEN):
        close = _CLOSE.search(text, end)
        end = close.end() if close else len(text)
    return text[:end] + b"\n"


def may_switch_off(text: bytes, language: str) -> bool:
    """Whether a word of `text` may switch a test off, or expect it to fail, in the language of that name."""
    return language in _OFF and _OFF[language].search(text) is not None
