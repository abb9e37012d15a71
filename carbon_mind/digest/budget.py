"""The budget is hard: whole entries are dropped from the end of the digest's order until the text fits. Never half a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from carbon_mind.digest.render import to_markdown
from carbon_mind.values import CriticalFile, Digest

CountTokens = Callable[[str], int]

# In the order of worth; the last is dropped first.
_ORDER = (
    "commands",
    "constraints",
    "entry_points",
    "architecture",
    "critical_files",
    "signatures",
    "known_bugs",
    "patterns",
    "words",
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The digest that fits, its Markdown, and the tokens of that."""

    digest: Digest
    markdown: str
    tokens: int


def _entries(digest: Digest) -> list[str]:
    """One name per entry, in the order of worth."""
    counts = {
        "signatures": sum(len(file.signatures) for file in digest.critical_files),
        **{name: len(getattr(digest, name)) for name in _ORDER if name != "signatures"},
    }
    return [name for name in _ORDER for _ in range(counts[name])]


def _first(digest: Digest, entries: list[str]) -> Digest:
    """The digest with only these entries, which are a beginning of all."""
    keep = {name: entries.count(name) for name in _ORDER}
    files: list[CriticalFile] = []
    left = keep["signatures"]
    for file in digest.critical_files[: keep["critical_files"]]:
        files.append(replace(file, signatures=file.signatures[:left]))
        left -= len(files[-1].signatures)
    return replace(
        digest,
        critical_files=tuple(files),
        **{
            name: getattr(digest, name)[: keep[name]] for name in _ORDER if name not in ("signatures", "critical_files")
        },
    )


def fit(digest: Digest, budget: int, count_tokens: CountTokens) -> Fitted:
    """The largest beginning of the digest whose Markdown has at most `budget` tokens.

    Even the title alone is measured: when it does not fit, the text is empty.
    """
    entries = _entries(digest)
    low, high = 0, len(entries)
    while low < high:  # the largest count that fits, as far as adding an entry never makes the text shorter
        middle = (low + high + 1) // 2
        if count_tokens(to_markdown(_first(digest, entries[:middle]))) <= budget:
            low = middle
        else:
            high = middle - 1
    for count in range(low, -1, -1):
        fitted = _first(digest, entries[:count])
        markdown = to_markdown(fitted)
        if (tokens := count_tokens(markdown)) <= budget:
            return Fitted(fitted, markdown, tokens)
    return Fitted(_first(digest, []), "", 0)
