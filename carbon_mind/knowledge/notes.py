"""A directory's note: what lives there, its key files and why, main symbols, what it leans on and what leans on it, what to look out for.

Extracted facts only. Everything is counted over files that a person can count too, and every line is whole or not there: the note is
filled in the order of worth up to its size. Paths of files in the directory are written relative to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from carbon_mind.counts import by_count, most
from carbon_mind.evidence import Evidence
from carbon_mind.reasons import reason
from carbon_mind.safety.safe import safe
from carbon_mind.safety.trust import resanitise
from carbon_mind.values import Area, Note, RankedFile, RepoPath

SIZE = 1500
"""Characters of a note."""
SUMMARY = 160
MAX_KEY_FILES = 8
MAX_SYMBOLS = 10
MAX_NEIGHBOURS = 6
MAX_GOTCHAS = 6
_SIGNATURE = 110
_PATH = 120
_TAGS = ("BUG", "FIXME", "XFAIL", "HACK", "XXX", "SKIP")


@dataclass(frozen=True, slots=True)
class _Links:
    """Which areas a directory's files lean on, and which lean on them: area -> number of the leaning files."""

    out: Counter[str] = field(default_factory=Counter)
    into: Counter[str] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)


def notes(evidence: Evidence, areas: Sequence[Area]) -> tuple[Note, ...]:
    """A note for each area, in their order."""
    home = {path: area.path for area in areas for path in area.files}
    ranked = {file.path: file for file in evidence.ranked}
    links = _links(evidence, home, ranked)
    return tuple(_note(evidence, area, ranked, links[area.path]) for area in areas)


def _links(
    evidence: Evidence, home: Mapping[RepoPath, RepoPath], ranked: Mapping[RepoPath, RankedFile]
) -> Mapping[str, _Links]:
    found: dict[str, _Links] = defaultdict(_Links)
    for path, file in ranked.items():
        mine = _place(path, home)
        theirs = {_place(needed, home) for needed in file.depends_on} - {mine}
        for other in theirs:
            if evidence.kind(path) == "test":
                found[other].tests[mine] += 1
            else:
                found[mine].out[other] += 1
                found[other].into[mine] += 1
    return found


def _place(path: RepoPath, home: Mapping[RepoPath, RepoPath]) -> str:
    """The area that a file lies in; its directory where that has no note of its own."""
    return home.get(path) or path.rpartition("/")[0] or "."


def _note(evidence: Evidence, area: Area, ranked: Mapping[RepoPath, RankedFile], links: _Links) -> Note:
    key = _key_files(evidence, area, ranked)
    languages = most(Counter(evidence.tags[path].language for path in area.files if path in evidence.tags), 3)
    what = f"{len(area.files)} file{'s' * (len(area.files) != 1)}" + (f", {', '.join(languages)}" if languages else "")
    head = f"# {safe(area.path, _PATH)}/ ({what})"
    sections = (
        ("", _contents(evidence, area)),
        ("Key files", (_key_line(area, file) for file in key)),
        ("Symbols", _symbols(area, key)),
        ("Connections", _connections(links)),
        ("Gotchas", _gotchas(evidence, area)),
    )
    names = ", ".join(_inside(area, file.path) for file in key[:3])
    summary = safe(f"{what}; {names}" if names else what, SUMMARY)
    # What the lines have together may look like a credential that none of them is; read back, it would be taken for one.
    text = resanitise(_filled(head, sections), limit=SIZE)
    return Note(area.path, area.identity, len(area.files), summary, text)


def _filled(head: str, sections: Iterable[tuple[str, Iterable[str]]]) -> str:
    """The text: every section gets its first lines before any gets all of its lines."""
    kept: list[tuple[str, list[str]]] = []
    waiting: list[tuple[int, list[str]]] = []
    size = len(head) + 1
    for index, (title, lines) in enumerate(sections):
        every = list(lines)
        kept.append((title, []))
        waiting.append((index, every))
    for share in (3, SIZE):
        for index, every in waiting:
            title, mine = kept[index]
            for line in every[len(mine) : share]:
                cost = len(line) + 3 + (len(title) + 5 if title and not mine else 0)
                if size + cost > SIZE:
                    break
                mine.append(line)
                size += cost
    text = [head]
    for title, mine in kept:
        if mine:
            text += [f"\n## {title}"] if title else []
            text += [f"- {line}" for line in mine]
    return "\n".join(text) + "\n"


# --- the sections -------------------------------------------------------------------------------------------------


def _inside(area: Area, path: RepoPath) -> str:
    return safe(path.removeprefix(f"{area.path}/"), _PATH)


def _contents(evidence: Evidence, area: Area) -> Iterator[str]:
    """What kinds of files, and in which directories below."""
    kinds = Counter(evidence.kind(path) for path in area.files)
    if len(kinds) > 1 or "source" not in kinds:
        yield ", ".join(f"{count} {kind}" for kind, count in by_count(kinds))
    below = Counter(rest.split("/", 1)[0] + "/" for path in area.files if "/" in (rest := path[len(area.path) + 1 :]))
    if below:
        shown = [f"{safe(name, 60)} ({count})" for name, count in by_count(below)[:MAX_NEIGHBOURS]]
        more = f" and {len(below) - MAX_NEIGHBOURS} more" if len(below) > MAX_NEIGHBOURS else ""
        yield f"below: {', '.join(shown)}{more}"
    plain = Counter(
        "." + name.rsplit(".", 1)[1]
        for path in area.files
        if path not in evidence.tags and "." in (name := path.rsplit("/", 1)[-1]).lstrip(".")
    )
    if plain:
        yield "not parsed: " + ", ".join(f"{count} {safe(suffix, 12)}" for suffix, count in by_count(plain)[:5])


def _key_files(evidence: Evidence, area: Area, ranked: Mapping[RepoPath, RankedFile]) -> list[RankedFile]:
    """The files of the directory that matter most, its own code before its tests."""
    found = [ranked[path] for path in area.files if path in ranked]
    found.sort(key=lambda file: (evidence.kind(file.path) != "source", -file.score, file.path))
    return found[:MAX_KEY_FILES]


def _key_line(area: Area, file: RankedFile) -> str:
    why = reason(file)
    return _inside(area, file.path) + (f" ({why})" if why else "")


def _symbols(area: Area, key: Sequence[RankedFile]) -> list[str]:
    """What others use most of the key files; each with its line and signature."""
    used = [(uses, file.path, definition) for file in key for definition, uses in file.top_symbols]
    used.sort(key=lambda item: (-item[0], item[1], item[2].line))
    return [
        f"{_inside(area, path)}:{definition.line} {safe(definition.signature, _SIGNATURE)}"
        for _, path, definition in used[:MAX_SYMBOLS]
    ]


def _connections(links: _Links) -> Iterator[str]:
    for label, counts in (("uses", links.out), ("used by", links.into), ("tests", links.tests)):
        if counts:
            shown = [f"{safe(name, 80)} ({count})" for name, count in by_count(counts)[:MAX_NEIGHBOURS]]
            yield f"{label}: {', '.join(shown)}"


def _gotchas(evidence: Evidence, area: Area) -> list[str]:
    """Faults that the code names, constraints that name the directory, files that could not be read as the others are."""
    inside = f"{area.path}/"
    found = [
        f"{safe(c.text, 160)} ({safe(c.source, 80)})"
        for c in evidence.facts.constraints
        if inside in c.text or c.source.startswith(inside)
    ][:3]
    marks = [
        (_TAGS.index(marker.tag) if marker.tag in _TAGS else len(_TAGS), path, marker)
        for path in area.files
        if path in evidence.tags
        for marker in evidence.tags[path].markers
    ]
    marks.sort(key=lambda item: (item[0], item[1], item[2].line))
    for _, path, marker in marks[:MAX_GOTCHAS]:
        if text := safe(marker.text, 100):
            found.append(f"{_inside(area, path)}:{marker.line} {marker.tag}: {text}")
    members = frozenset(area.files)
    skipped = Counter(item.reason for item in evidence.skipped if item.path in members)
    if skipped:
        found.append("skipped: " + ", ".join(f"{count} {safe(reason, 40)}" for reason, count in by_count(skipped)))
    return found
