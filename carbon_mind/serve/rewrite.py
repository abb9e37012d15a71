"""What changes from day to day in an agent's system text, found by rules that have names, and moved behind what stays the same.

Nothing is dropped: a line that leaves the system text is told further behind, where the render shows that nothing stable follows.
The rules:

    crlf    line ends become those of Unix
    date    a line that tells today's date or time
    nonce   a line with an id of a session, a request or a billing header
    mind    the managed block of an AGENTS.md: the digest, which changes with the repository
    tools   an order of tools other than by name

Everything here is a function of its arguments. Text comes from a client: data.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec

from carbon_mind.safety.block import BEGIN, END
from carbon_mind.safety.text import clean

RULES = ("crlf", "date", "nonce", "mind", "tools")
MOVED = "Told here because it changes from session to session:"
"""First line above what was moved."""
_DAY = (
    r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|"
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:\d{1,2} +)?"
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? +\d{1,2}(?:,? +\d{4})?|\d{1,2}:\d{2})"
)
_DATE = re.compile(
    rf"^(?=.{{4,160}}$)(?:.*\b(?:current|today(?:'|\u2019)?s?)\b.*\b(?:date|day|time)\b.*|\W*(?:date|time|timestamp|now)\b.*).*{_DAY}.*$",
    re.IGNORECASE | re.MULTILINE,
)
_NONCE = re.compile(
    r"^\W*(?:(?:session|request|conversation|trace|run|message|thread)[ _-]?id|nonce|cache[ _-]?bust(?:er)?|x-[a-z-]*billing-header)\b"
    r"\W*[:=>].{1,200}$",
    re.IGNORECASE | re.MULTILINE,
)
_DIRECTORY = re.compile(
    r"^[ \t]*(?:(?:current )?working directory(?: is)?|cwd|workspace(?: root)?)\s*[:=]\s*`?([^\n`]{1,1024}?)`?[ \t]*$"
    r"|<cwd>\s*([^<\n]{1,1024}?)\s*</cwd>",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = re.compile(
    r"^Instructions from: ([^\n]{1,1024})\n|<project_instructions path=\"([^\"\n]{1,1024})\">\n", re.MULTILINE
)
_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_WORDS = re.compile(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{2} \d{4}\b"
)
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NOTE = 300  # characters of a note on what changed


@dataclass(frozen=True, slots=True)
class Settled:
    """A text without what changes: what was taken out (rule, text), in order, and the rules that did something."""

    text: str
    moved: tuple[tuple[str, str], ...] = ()
    rules: tuple[str, ...] = ()


def settle(text: str) -> Settled:
    """Take out what changes from day to day."""
    moved: list[tuple[str, str]] = []
    rules: list[str] = []
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        rules.append("crlf")
    text, block = take_block(text)
    if block:
        moved.append(("mind", block))
        rules.append("mind")
    for rule, pattern in (("nonce", _NONCE), ("date", _DATE)):
        lines = [found[0].strip() for found in pattern.finditer(text)]
        if lines:
            moved += [(rule, line) for line in lines]
            rules.append(rule)
            text = pattern.sub("\0", text).replace("\0\n", "").replace("\n\0", "").replace("\0", "")
    return Settled(text, tuple(moved), tuple(rules))


def take_block(text: str) -> tuple[str, str]:
    """The text without the managed block, and the block, markers included; "" where there is none, or not exactly one."""
    begin, end = BEGIN.decode(), END.decode()
    start, stop = text.find(begin), text.find(end)
    if text.count(begin) != 1 or text.count(end) != 1 or stop < start:
        return text, ""
    stop += len(end)
    block, after = text[start:stop], text[stop:]
    before = text[:start]
    if before.endswith("\n\n") and after.startswith("\n"):
        after = after[1:]  # the blank line that was put before the block goes with it
        before = before[:-1]
        after = "\n" + after if not before.endswith("\n") else after
    return before + after, block


def has_block(text: str) -> bool:
    """Whether the text carries the managed block of an AGENTS.md."""
    return BEGIN.decode() in text


def by_name(tools: Sequence[msgspec.Raw]) -> list[msgspec.Raw] | None:
    """The tools in the order of their names; None where they are so already, or one has no name."""
    names = [tool_name(msgspec.json.decode(tool)) for tool in tools]
    if None in names or names == sorted(names, key=str):
        return None
    return [tool for _, tool in sorted(zip(names, tools, strict=True), key=lambda pair: str(pair[0]))]


def tool_name(tool: Any) -> str | None:
    """The name of a tool as the chat API has it; None where it has none."""
    try:
        name = tool["function"]["name"]
    except (KeyError, TypeError):
        return None
    return name if isinstance(name, str) else None


def told(moved: Sequence[tuple[str, str]], digest: str) -> str:
    """The text that goes behind the stable part: the digest first, as it changes least; "" where there is nothing to tell."""
    blocks = [text for rule, text in moved if rule == "mind"]
    lines = [text for rule, text in moved if rule != "mind"]
    parts = [*blocks, *([digest.strip()] if digest and not blocks else [])]
    if lines:
        parts.append("\n".join((MOVED, *lines)))
    return "\n\n".join(parts)


# --- what a head says about its client ---------------------------------------------------------------------------


def directory(texts: Sequence[str]) -> str:
    """The absolute directory that the agent says it works in; "" where it says none."""
    for text in texts:
        for found in _DIRECTORY.finditer(text):
            path = (found[1] or found[2]).strip()
            if path.startswith("/") or re.match(r"[A-Za-z]:[\\/]", path):
                return path
    return ""


Read = Callable[[str], str | None]
"""Text of the file at an absolute path; None for what is not to be read."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Where the text of an instruction file (AGENTS.md) stands in a system text."""

    path: str
    start: int
    end: int


def instructions(text: str, read: Read) -> list[Instructions]:
    """The instruction files that the text quotes: behind their header, exactly what the file holds now (settled like the text)."""
    found = []
    for header in _HEADER.finditer(text):
        path = header[1] or header[2]
        content = read(path)
        for form in _forms(content):
            if form and text.startswith(form, header.end()):
                found.append(Instructions(path, header.end(), header.end() + len(form)))
                break
    return found


def _forms(content: str | None) -> list[str]:
    if content is None:
        return []
    settled = settle(content).text
    return [content, content.strip(), settled, settled.strip()]


def skeleton(text: str, parts: Sequence[Instructions]) -> str:
    """The text without what its instruction files say: what must be the same for only those to have changed."""
    for part in reversed(parts):
        text = text[: part.start] + "\0" + text[part.end :]
    return text


def freshen(text: str, parts: Sequence[tuple[str, str]], today: date, read: Read) -> str:
    """A text that was learned another day, as its client would write it now: today's date, instruction files as they are now.

    `parts` are the paths of those files with their text of that day.
    """
    for path, before in parts:
        now = read(path)
        if before and now is not None and before in text:
            text = text.replace(before, now.strip() if before == before.strip() else now, 1)
    words = f"{_DAYS[today.weekday()]} {_NAMES[today.month - 1]} {today.day:02} {today.year}"

    def renew(line: re.Match[str]) -> str:
        return _WORDS.sub(words, _ISO.sub(today.isoformat(), line[0]))

    return _DATE.sub(renew, text)


def changed(title: str, before: str, now: str) -> str:
    """What is another between two texts, in one short line; "" where nothing is."""
    if before == now:
        return ""
    lines = list(difflib.ndiff(before.splitlines(), now.splitlines()))
    added = [clean(line[2:]).strip() for line in lines if line.startswith("+ ") and line[2:].strip()]
    removed = [clean(line[2:]).strip() for line in lines if line.startswith("- ") and line[2:].strip()]
    parts = [f"now: {' | '.join(added)}"] if added else []
    parts += [f"no longer: {' | '.join(removed)}"] if removed else []
    told = "; ".join(parts) or "only its layout"
    if len(told) > _NOTE:
        told = f"{told[:_NOTE].rstrip()} ... ({len(added)} lines are new, {len(removed)} are gone)"
    return f"{title} changed since this session began. {told}"
