"""What the text of a file says about itself: known faults in comments, tests that are switched off, and that a program wrote it."""

from __future__ import annotations

import re

from carbon_mind.values import Marker

__all__ = ["cut", "generated", "markers"]

MAX_MARKER = 200


def cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 3] + "..."


# --- markers -------------------------------------------------------------------------------------------------

_TAG = rb"(FIXME|BUG|HACK|XXX)"
_ANY_TAG = re.compile(_TAG)
_LEAD = re.compile(rb"[\s/*#;!<>=|-]*@?")
_FIRST = re.compile(_TAG + rb"(?![\w./\x80-\xff-])")
_FURTHER = re.compile(rb"(?<![\w./\x80-\xff-])" + _TAG + rb"(?=[:(])")
_AUTHOR = re.compile(rb"\([^()]*\)")
_CLOSING = re.compile(rb"\s*(?:\*+/|-->)\s*$")


def markers(text: bytes, comments: dict[int, int]) -> tuple[Marker, ...]:
    if not _ANY_TAG.search(text):
        return ()
    found = []
    position, line = 0, 1
    for start in sorted(comments):
        comment = text[start : comments[start]]
        if not _ANY_TAG.search(comment):
            continue
        line += text.count(b"\n", position, start)
        position = start
        for offset, content in enumerate(comment.split(b"\n")):
            mark = _marker(content)
            if mark is not None:
                found.append(Marker(mark[0], line + offset, mark[1]))
    return tuple(sorted(found, key=lambda marker: (marker.line, marker.tag)))


def _marker(line: bytes) -> tuple[str, str] | None:
    """The tag of a comment's line and what follows it."""
    lead = _LEAD.match(line)
    found = _FIRST.match(line, lead.end() if lead else 0) or _FURTHER.search(line)
    if found is None:
        return None
    rest = line[found.end() :]
    author = _AUTHOR.match(rest)
    rest = _CLOSING.sub(b"", rest[author.end() :] if author else rest)
    words = " ".join(rest.decode("utf-8", "replace").split()).lstrip(" :,;.!-\N{EN DASH}\N{EM DASH}")
    return found[1].decode(), cut(words, MAX_MARKER)


# --- a program wrote it --------------------------------------------------------------------------------------

_HEAD = 8_192  # bytes, and lines, in which a file says so
_HEAD_LINES = 40
_HASH = rb"|\#(?!\[)[^\n]*+(?:\n|\Z)"
_SLASH = rb"|//[^\n]*+(?:\n|\Z)|/\*.*?(?:\*/|\Z)|\A\#![^\n]*+|(['\"])use strict\1;?"
_LEADING = {  # what may stand before the first line of code
    "": re.compile(rb"(?>\s" + _SLASH + rb")*+", re.DOTALL),
    "bash": re.compile(rb"(?>\s" + _HASH + rb")*+"),
    "php": re.compile(rb"(?>\s|<\?php\b" + _HASH + _SLASH + rb")*+", re.DOTALL),
    "python": re.compile(rb"(?>\s" + _HASH + rb")*+"),
    "ruby": re.compile(rb"(?>\s" + _HASH + rb")*+"),
}
_SAYS_SO = re.compile(
    rb"(?im)^[\s/*#!;<=-]*(?:"
    rb"code generated .*\bdo not edit\b"
    rb"|(?:this file is |[\w.-]+\.\w+ )?@generated\b(?![\w./-])"
    rb"|<auto-?generated\b)"
)
_THIS = rb"(?:this|the following) (?:source |header |code )?(?:file|code|source|header|class|module|program|script)"
_AUTO = rb"(?:auto(?:matically)?[ -]?|machine[ -])?"
_GENERATED = re.compile(
    rb"(?i)(?:^|[.!:;,*-] ?)(?:(?:please )?note:? )?(?:"
    rb"(?:" + _THIS + rb" (?:is|was|has been|were) (?:[\w'`\"./-]+ ){0,2}?)?" + _AUTO + rb"generated"
    rb"(?: (?:automatically|by|from|with|using|via|on|at|code|file)\b|[,.;:!-]|$)"
    rb"|this is an? " + _AUTO + rb"generated (?:source |header |code )?file\b)"
)
_HANDS_OFF = re.compile(
    rb"(?i)\b(?:do not|don't|never) (?:\w+ ){0,2}(?:edit|modify|change|alter)\b|\bnot be (?:\w+ )?(?:edited|modified|changed)\b"
    rb"|\binstead of (?:editing|modifying)\b|\b(?:changes|edits|modifications)\b.{0,80}\b(?:lost|overwritten|discarded)\b"
)
_LEADS = re.compile(rb"(?m)^[\s/*#!;<=-]+([A-Z]|$)?")


def generated(text: bytes, language: str) -> bool:
    """Whether the comments before the first line of code say that a program wrote this file.

    One of the marks that tools look for, alone on its line; or a sentence that says so, and one that asks to leave the file alone.
    """
    head = text[:_HEAD]
    if b"enerated" not in head and b"ENERATED" not in head:
        return False
    leading = _LEADING.get(language, _LEADING[""]).match(head)
    comments = b"\n".join(leading[0].split(b"\n")[:_HEAD_LINES]) if leading else b""
    if _SAYS_SO.search(comments):
        return True
    # A sentence may go on in the next line; where that starts in upper case, or is empty, a new one does.
    prose = b" ".join(_LEADS.sub(lambda lead: b" " if lead[1] is None else b". " + lead[1], comments).split())
    return _HANDS_OFF.search(prose) is not None and _GENERATED.search(prose) is not None
