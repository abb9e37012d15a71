"""Files for a query, ranked by BM25 over their paths, the names that they define, and the first words that they say of themselves.

The index is SQLite's FTS5, in memory: well kept, in every Python, and nothing is written. Words are split as programmers write them
(`getUserName` and `get_user_name` are three words) and stemmed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe
from carbon_mind.values import RepoPath, shared_length

MAX_RESULTS = 10
MAX_SYMBOLS = 3  # of a result
MAX_TERMS = 24  # of a query
_HEAD = 4096  # characters of a file that are looked at for its own words
_WEIGHTS = (4.0, 3.0, 1.0)  # path, names, words
_LATER = {"source": 1.0, "test": 0.6}  # BM25 of what is neither counts less still
_LEAST = 0.4
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_COMMENT = re.compile(
    r"^\s*(?:#+(?=\s|$)|//+[/!]*|/\*+!?|\*+/?|--|;+|<!--|\"\"\"|'''|r\"\"\")\s?(.*?)\s*(?:\*/|-->|\"\"\"|''')?\s*$"
)
_LICENCE = re.compile(r"copyright|licen[cs]e|spdx|all rights reserved|redistribut|warrant", re.IGNORECASE)

Read = Callable[[RepoPath], str | None]


def words(text: str) -> list[str]:
    """The words of names and prose, in small letters."""
    return [word.lower() for word in _WORD.findall(text)]


_STOP = frozenset(
    words(
        "a an and are as at be by can do does for from how i in into is it its of on or that the this to was what when where which "
        "who why with"
    )
)


def own_words(text: str, limit: int = 3) -> list[str]:
    """The first lines of comment or docstring that a file begins with, without licences."""
    found: list[str] = []
    blank = 0
    for raw in text[:_HEAD].splitlines()[:60]:
        inside = _COMMENT.match(raw)
        line = (inside[1] if inside else "").strip()
        if inside is None and raw.strip():
            blank += 1
            if found or blank > 3:  # an include or two may stand before
                break
            continue
        if _LICENCE.search(line):
            found.clear()
        elif len(words(line)) >= 2 and not line.startswith(("!", "-*-", "eslint", "pylint", "type:", "region")):
            found.append(line)
            if len(found) == limit:
                break
    return found


class Search:
    """An index over one repository. Not to be shared by threads that use it at once."""

    def __init__(self, evidence: Evidence, read: Read) -> None:
        self._evidence = evidence
        self._said: dict[RepoPath, str] = {}
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("create virtual table files using fts5(path, names, said, tokenize = 'porter unicode61')")
        self._paths = sorted(evidence.tags)
        with self._db:
            self._db.executemany("insert into files(rowid, path, names, said) values (?, ?, ?, ?)", self._rows(read))

    def _rows(self, read: Read) -> Iterable[tuple[int, str, str, str]]:
        for number, path in enumerate(self._paths):
            tags = self._evidence.tags[path]
            said = " ".join(own_words(read(path) or ""))
            self._said[path] = said
            names = " ".join(definition.name for definition in tags.definitions)
            yield number, " ".join(words(path)), " ".join(words(names)), " ".join(words(said))

    def answer(self, query: str) -> str:
        """The best files, each with the names in it that the query mentions, or with its own words."""
        asked = list(dict.fromkeys(words(query)))
        terms = ([word for word in asked if word not in _STOP] or asked)[:MAX_TERMS]
        if not terms:
            return "the query has no words\n"
        found = self._db.execute(
            f"select rowid, bm25(files, {', '.join(map(str, _WEIGHTS))}) from files where files match ?",  # noqa: S608 - constants
            (" OR ".join(f'"{term}"' for term in terms),),
        ).fetchall()
        ranked = sorted(
            (score * _LATER.get(self._evidence.kind(self._paths[number]), _LEAST), self._paths[number])
            for number, score in found
        )
        if not ranked:
            return f"no file for {safe(query, 80)}\n"
        lines = [f"# {len(ranked)} file{'s' * (len(ranked) != 1)} for: {safe(query, 80)}", ""]
        return "\n".join(lines + [self._line(path, terms) for _, path in ranked[:MAX_RESULTS]]) + "\n"

    def _line(self, path: RepoPath, terms: Sequence[str]) -> str:
        matching = []
        for definition in self._evidence.tags[path].definitions:
            name = words(definition.name)
            if hits := sum(any(_alike(term, word) for word in name) for term in terms):
                matching.append((-hits, definition.line, definition))
        matching.sort(key=lambda item: item[:2])
        shown = [f"{definition.line}: {safe(definition.signature, 80)}" for _, _, definition in matching[:MAX_SYMBOLS]]
        reason = "; ".join(shown) or safe(self._said.get(path, ""), 120)
        return f"- {safe(path, 160)}" + (f" - {reason}" if reason else "")


def _alike(term: str, word: str) -> bool:
    """Whether two words differ in their endings at most: what the index's stemming finds, told in the answer."""
    shared = shared_length(term, word)
    return term == word or (shared >= 4 and shared + 3 >= max(len(term), len(word)))
