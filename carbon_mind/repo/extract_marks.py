"""What the text of a file says about itself: known faults in comments, tests that are switched off, and that a program wrote it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from carbon_mind.values import Marker

__all__ = ["MAX_MARKER", "Said", "cut", "generated", "markers", "perhaps_off", "switched_off"]

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
    rest = line[found.end() :][: 8 * MAX_MARKER]
    author = _AUTHOR.match(rest)
    rest = _CLOSING.sub(b"", rest[author.end() :] if author else rest)
    words = " ".join(rest.decode("utf-8", "replace").split()).lstrip(" :,;.!-\N{EN DASH}\N{EM DASH}")
    return found[1].decode(), words


# --- tests that do not run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Off:
    """A row of the table: what, in which words, switches a test off."""

    tag: str
    how: str  # expression for the function, decorator or attribute; "()" behind it for arguments, "{}" for a block of its own
    test: str = ""  # expression for what is a test: its name, or the function that it is given to
    within: bool = False  # a statement of the test's body
    sure: tuple[str, ...] = ()  # one of these must be imported, because others use the word too
    unless: str = ""  # expression for arguments that make it depend on something
    told: bool = False  # only with its reason


_ECMA = (
    Off("SKIP", r"(?:it|test|describe|suite|context|specify)(?:\.\w+)*\.(?:skip|fixme)"),
    Off("SKIP", r"x(?:it|test|describe|context|specify)"),
    Off("XFAIL", r"(?:it|test)(?:\.\w+)*\.(?:fails|failing)"),
)
_CONDITION = r"\(\s*(?![\w\s]+=(?!=))[^\s)]|.*\bcondition\s*="
_EXAMPLE = r"it|specify|example|scenario|test|should|test_\w+"
_NUNIT = ("NUnit.Framework", "Microsoft.VisualStudio.TestTools.UnitTesting")

_OFF: dict[str, tuple[Off, ...]] = {
    "c_sharp": (
        Off("SKIP", r"(?:Fact|Theory)\(\)", told=True),
        Off("SKIP", r"Ignore(?:\(\))?", sure=_NUNIT),
    ),
    "go": (Off("SKIP", r"\w+\.Skip(?:f|Now)?\(\)", test=r"(?:Test|Benchmark|Fuzz).*", within=True),),
    "java": (Off("SKIP", r"(?:Disabled|Ignore)(?:\(\))?", sure=("org.junit.", "org.testng.")),),
    "javascript": _ECMA,
    "php": (Off("SKIP", r"(?:markTestSkipped|markTestIncomplete)\(\)", within=True),),
    "python": (
        Off("SKIP", r"(?:pytest\.)?mark\.skip(?:\(\))?|unittest\.skip(?:\(\))?"),
        Off("SKIP", r"skip\(\)", told=True),
        Off("XFAIL", r"(?:pytest\.)?mark\.xfail(?:\(\))?", unless=_CONDITION),
        Off("XFAIL", r"(?:unittest\.)?expectedFailure"),
    ),
    "ruby": (
        Off("SKIP", r"x(?:it|describe|context|specify|example|feature|scenario)"),
        Off("SKIP", r"skip\{\}"),
        Off("XFAIL", r"pending\{\}"),
        Off("SKIP", r"skip(?:\(\))?", test=_EXAMPLE, within=True),
        Off("XFAIL", r"pending(?:\(\))?", test=_EXAMPLE, within=True),
    ),
    "rust": (Off("SKIP", "ignore"),),
    "tsx": _ECMA,
    "typescript": _ECMA,
}
_FORKS = re.compile(r"\b(?:if|unless|else|case|switch|select|for|foreach|while|until|try|return|next|goto|match)\b")


_QUOTED = r'''(?:"""(?:[^"\\]|\\.|"(?!""))*+"""|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`[^`]*+`)'''
_REASON = re.compile(
    rf"(?s)(?:^\(\s*|\b(?:reason|Skip|value)\s*=\s*)[@rRuU]?({_QUOTED}(?:\s*+(?:\+\s*+)?{_QUOTED})*+)\s*+[,)]"
)
_PIECE = re.compile(f"(?s){_QUOTED}")
_ESCAPED = re.compile(r"\\([\"'`\\])")


_PERHAPS = re.compile(rb"\Ax|[Ss]kip|[Ii]gnore|fail|Fail|fixme|Disabled|Incomplete|pending|Fact|Theory")


def perhaps_off(how: bytes) -> bool:
    """A cheap answer for the many calls and attributes that have nothing to do with it."""
    return _PERHAPS.search(how) is not None


@dataclass(frozen=True, slots=True)
class Said:
    """A function, decorator or attribute near a test."""

    how: str  # as in `Off`
    name: str  # of the test
    arguments: str = ""
    outer: str = ""  # what holds the statement: the test itself, or the function that it is given to
    before: str | None = None  # what the test's body has in front of the statement; None for what is said from outside


def switched_off(language: str, said: Said, imports: Collection[str]) -> tuple[str, str] | None:
    """The tag and the text of a test that does not run, or must fail; None for what is no such test or depends on something."""
    for row in _OFF.get(language, ()):
        if row.within != (said.before is not None) or not re.fullmatch(row.how, said.how):
            continue
        reason = _reason(said.arguments)
        if (
            (row.test and not re.fullmatch(row.test, said.outer))
            or (said.before is not None and _FORKS.search(said.before))
            or (row.sure and not any(text.startswith(row.sure) for text in imports))
            or (row.unless and re.match(row.unless, said.arguments, re.DOTALL))
            or (row.told and not reason)
        ):
            return None
        return row.tag, f"{said.name}: {reason}" if reason else said.name
    return None


def _reason(arguments: str) -> str:
    """The text of a reason that is written out; one with holes in it (`%s`) is none."""
    found = _REASON.search(arguments)
    if found is None:
        return ""
    words = "".join(
        _ESCAPED.sub(r"\1", piece[3:-3] if piece.startswith('"""') and len(piece) > 5 else piece[1:-1])
        for piece in _PIECE.findall(found[1])
    )
    return "" if re.search(r"%[\w+#.-]", words) else " ".join(words.split())


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
