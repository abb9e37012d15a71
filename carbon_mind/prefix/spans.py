"""What stands where in a prefix, in words, so that a miss can be explained: "the digest's section Commands", not "token 812".

Names are painted over the rendered text, the more exact over the less: template, rules, tools, the managed block of an AGENTS.md,
the digest and its sections, lines with a date. They are for people; no cut and no comparison depends on them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from carbon_mind.safety.block import BEGIN, END
from carbon_mind.safety.trust import CLOSE, OPEN
from carbon_mind.values import Span

Region = tuple[str, int, int]
"""(name, start, end) in characters."""

_SECTION = re.compile(r"^## (.{1,60}?)(?: \(.*)?$", re.MULTILINE)
_DATE = re.compile(r"^.*\b(?:current|today'?s?) (?:date|day|time)\b.*$|^\W*date: .*$", re.MULTILINE | re.IGNORECASE)


def _found(text: str) -> Iterator[Region]:
    """Regions that tell themselves."""
    for opening, closing, name in ((BEGIN.decode(), END.decode(), "AGENTS.md block"), (OPEN, CLOSE, "digest")):
        start = text.find(opening)
        if start < 0:
            continue
        stop = text.find(closing, start)
        stop = len(text) if stop < 0 else stop + len(closing)
        yield name, start, stop
        heads = list(_SECTION.finditer(text, start, stop))
        for head, following in itertools.zip_longest(heads, heads[1:]):
            yield f"digest: {head[1]}", head.start(), following.start() if following else stop - len(closing)
    for line in _DATE.finditer(text):
        yield "date", line.start(), line.end()


def label(
    text: str, regions: Iterable[Region], tokens: Sequence[int], piece: Callable[[int], bytes]
) -> tuple[Span, ...]:
    """Spans over `tokens`, which begin like the tokens of `text`; what no region covers is "template".

    `piece` gives the bytes of a token. A token that lies in two regions belongs to the one in which it begins.
    """
    painted = [*regions, *_found(text)]
    cuts = sorted({0, len(text), *(at for _, start, end in painted for at in (start, end))})
    runs: list[tuple[int, str]] = []  # (end in bytes, name)
    done = 0
    for start, end in itertools.pairwise(cuts):
        done += len(text[start:end].encode("utf-8", "replace"))
        covering = [name for name, first, last in painted if first <= start and end <= last]
        runs.append((done, covering[-1] if covering else "template"))
    found: list[Span] = []
    at, run = 0, 0
    for index, token in enumerate(tokens):
        while run + 1 < len(runs) and at >= runs[run][0]:
            run += 1
        name = runs[run][1] if runs else "template"
        if found and found[-1].name == name:
            found[-1] = Span(name, index + 1)
        else:
            found.append(Span(name, index + 1))
        at += len(piece(token))
    return tuple(found)


def name_at(spans: Sequence[Span], token: int) -> str:
    """The name of what stands at a token; "" behind the last one."""
    return next((span.name for span in spans if token < span.end), "")
