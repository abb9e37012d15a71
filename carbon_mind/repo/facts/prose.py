"""Reading prose: the sentences of Markdown (or reStructuredText) paragraphs and list items, and the lines of its code.

No full Markdown: whatever could be something else than plain prose (headings, quotes, tables, comments, HTML, literal
blocks) is passed over, because a sentence taken from an example would be a statement that nobody made.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from carbon_mind.repo.facts.text import clean, numbered

MAX_PARAGRAPH = 2000
CODE = "§"

_FENCE = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])(\s+)(?:\[[ xX]\]\s+)?(?=\S)")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|\Z)")
_RULE = re.compile(
    r"\s*([=\-~^\"'`#*+_.:])(?:\s?\1)+\s*\Z"
)  # also the underline that makes the text above it a heading
_QUOTE = re.compile(r"\s*(?:>|\|)")  # tables too
_TABLE = re.compile(r"\s*[|+:]?\s*:?[-=]{2,}:?\s*(?:[|+]\s*:?[-=]+:?\s*)+[|+]?\s*\Z|\s*(?:={2,}\s+)+={2,}\s*\Z")
_HTML = re.compile(r"\s*</?[A-Za-z][^>]*(?:>|\Z)")
_HTML_CODE = re.compile(r"<(pre|script|style|textarea|code)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\s*(?:\[[^\]]+\]:|\.\. |\.\.\Z|:[\w-]+:(?:\s|\Z))")  # link targets, directives, fields

_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)")
_ROLE = re.compile(r":[\w:-]+:(?=`)")
_RST_LINK = re.compile(r"(?<![`\w])`([^`<>]+?)\s*(?:<[^`<>]*>)?`__?(?!\w)")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\s[^()]*)?\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_STRONG = re.compile(
    r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]+?)(?<=\S)\1(?!\*)|(?<!\w)(_{1,3})(?=[^\s_])(.{1,200}?)(?<=\S)\3(?!\w)"
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_END = re.compile(r"[.!?]{1,3}[)\"'*_’”]{0,4}(?=\s[\"'“(\[*_`<]*[A-Z0-9`]|\s*\Z)")  # noqa: RUF001
_SHORT = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|incl|approx|resp|no|fig|eg|ie)|\b[A-Z])\.\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence without its markup, the line it starts at, what stood in it as code, and the rest: CODE instead."""

    line: int
    text: str
    code: tuple[str, ...]
    prose: str


@dataclass(slots=True)
class _Paragraph:
    offsets: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    text: str = ""

    def add(self, line: int, text: str) -> None:
        if self.text:
            self.text += " "
        self.offsets.append(len(self.text))
        self.lines.append(line)
        self.text += text

    def line_at(self, offset: int) -> int:
        return self.lines[bisect_right(self.offsets, offset) - 1]


def sentences(text: str, *, rst: bool = False) -> list[Sentence]:
    """The sentences of all paragraphs and list items, in order."""
    paragraphs, _ = _read(text, rst)
    return [sentence for paragraph in paragraphs for sentence in _split(paragraph)]


def code_lines(text: str) -> list[str]:
    """The lines of fenced and indented code, stripped."""
    return _read(text, rst=False)[1]


def _read(text: str, rst: bool) -> tuple[list[_Paragraph], list[str]]:
    reader = _Reader(rst)
    for number, row in numbered(text):
        reader.feed(number, row)
    reader.end()
    return reader.paragraphs, reader.code


class _Reader:
    """A line at a time; anything that is no prose ends the paragraph, and some of it swallows what follows."""

    def __init__(self, rst: bool) -> None:
        self.paragraphs: list[_Paragraph] = []
        self.code: list[str] = []
        self._rst = rst
        self._current = _Paragraph()
        self._fence = ""
        self._closing = ""  # what ends a comment, front matter or a piece of HTML
        self._skip = False  # to the next blank line
        self._literal = -1  # reStructuredText: what is indented more than this belongs to a directive
        self._blank = True
        self._indent = 0  # where the text of the current list item starts

    def feed(self, number: int, row: str) -> None:
        if self._swallowed(number, row):
            return
        if "<!--" in row:
            before, _, after = row.partition("<!--")
            self._closing = "" if "-->" in after else "-->"
            row = before + after.partition("-->")[2] if "-->" in after else before
            if "<!--" in row:
                row = ""
        if not row.strip():
            self.end()
            self._skip, self._blank = False, True
            return
        blank, self._blank = self._blank, False
        indent = len(row.expandtabs(4)) - len(row.expandtabs(4).lstrip())
        if self._literal >= 0:
            if indent > self._literal:
                return
            self._literal = -1
        if self._skip:
            return
        if not self._rst and (match := _FENCE.match(row)) and "`" not in match[2]:
            self.end()
            self._fence = match[1]
            return
        item = _ITEM.match(row)
        if blank and indent < self._indent and not item:
            self._indent = 0
        if blank and indent >= self._indent + (1 if self._rst else 4):
            self.code.append(row.strip())
            self._blank = True  # the next line of the block is code as well
            return
        if self._no_prose(row, indent):
            return
        if item:
            self.end()
            self._indent = indent + len(item[2]) + len(item[3])
            row = row[item.end() :]
        self._current.add(number, " ".join(row.split()).rstrip("\\"))

    def end(self) -> None:
        """Close the paragraph, and keep it when it is one."""
        paragraph, self._current = self._current, _Paragraph()
        if self._rst and paragraph.text.endswith("::"):
            self._literal = max(self._indent - 1, 0)
        elif paragraph.text and len(paragraph.text) <= MAX_PARAGRAPH:
            self.paragraphs.append(paragraph)

    def _swallowed(self, number: int, row: str) -> bool:
        if self._fence:
            stripped = row.strip(" \t>")
            if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
                self._fence = ""
            else:
                self.code.append(row.strip())
            return True
        if self._closing:
            if self._closing in row.lower():
                self._closing = ""
            return True
        if number == 1 and row.rstrip() == "---":
            self._closing = "---"
            return True
        return False

    def _no_prose(self, row: str, indent: int) -> bool:
        if _RULE.match(row) or _TABLE.match(row):
            self._current = _Paragraph()
            return True
        if _HEADING.match(row) and not self._rst:
            self.end()
            return True
        if _QUOTE.match(row) or _ASIDE.match(row) or _HTML.match(row):
            self.end()
            self._skip = True
            if self._rst and _ASIDE.match(row):
                self._skip, self._literal = False, indent
            elif (opened := _HTML_CODE.search(row)) and f"</{opened[1].lower()}" not in row.lower():
                self._closing = f"</{opened[1].lower()}"
            return True
        return False


def _split(paragraph: _Paragraph) -> Iterator[Sentence]:
    text = paragraph.text
    held = [match.span() for pattern in (_CODE, _LINK) for match in pattern.finditer(text)]
    start = 0
    for match in _END.finditer(text):
        if any(low <= match.start() < high for low, high in held) or _SHORT.search(
            text[max(start, match.start() - 12) : match.start() + 1]
        ):
            continue
        yield _sentence(paragraph, start, match.end())
        start = match.end()
    if text[start:].strip():
        yield _sentence(paragraph, start, len(text))


def _sentence(paragraph: _Paragraph, start: int, end: int) -> Sentence:
    raw = paragraph.text[start:end]
    line = paragraph.line_at(start + len(raw) - len(raw.lstrip()))
    return Sentence(line, *plain(raw.strip()))


def plain(raw: str) -> tuple[str, tuple[str, ...], str]:
    """Text without Markdown's markup, what stood in code spans, and the text with CODE in their places."""
    raw = _LINK.sub(lambda match: match[1], _RST_LINK.sub(lambda match: match[1], _ROLE.sub("", raw)))
    spans = [match[2].strip() for match in _CODE.finditer(raw)]
    # The spans wait outside as NULs, so that `**` and `_` in code are not taken for emphasis.
    bare = _CODE.sub("\0", raw.replace("\0", ""))
    for pattern in (_TAG, _STRONG, _STRONG):
        bare = pattern.sub(lambda match: next((part for part in match.groups()[1::2] if part), ""), bare)
    pieces = _ESCAPE.sub(lambda match: match[1], bare).split("\0")
    joined = "".join(piece + span for piece, span in zip(pieces, [*spans, ""], strict=False))
    return " ".join(joined.split()), tuple(clean(span) for span in spans), " ".join(CODE.join(pieces).split())
