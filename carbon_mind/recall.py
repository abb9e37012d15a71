"""What is asked of a mind: what goes into a prompt, a directory's note, the list of them, a symbol, files for a query.

One object answers for one repository, on the command line once, in an MCP server for hours: it looks whether the mind is current before
it answers, at most once in a while, and makes it so. Whatever it answers is bounded, and text that was read from disk is made safe
again: a `.carbon/` folder may have come with the repository. Where the repository also ships what steers an agent by itself, and the user
does not trust it, the answer is one line that says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from carbon_mind import pipeline
from carbon_mind.digest import folder as mind_folder
from carbon_mind.errors import Disabled, StorageProblem, UsageProblem
from carbon_mind.repo.scan import Place, locate, scan
from carbon_mind.safety.safe import safe
from carbon_mind.safety.trust import Trust, Verdict, fence, resanitise, verdict, withheld
from carbon_mind.settings import Settings, trust_folder

if TYPE_CHECKING:
    from carbon_mind.knowledge.search import Search
    from carbon_mind.knowledge.symbols import Symbols

LOOK_S = 2.0
"""Seconds for which a mind that was current is taken to be so."""
ANSWER = 6000
"""Characters of the longest answer."""


@dataclass(frozen=True, slots=True)
class Directories:
    """Some directories; `names` are left out where the mind is withheld."""

    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """What there is of a mind, and how it stands to the working tree."""

    enabled: bool
    current: bool
    indexed: int
    stale: Directories  # their files changed since
    missing: Directories  # without a note yet
    gone: Directories  # notes of what is not there any more
    digest_bytes: int
    notes_bytes: int
    reason: str = ""
    withheld: str = ""  # the line that is answered instead of a mind, "" where it is shown


class Recall:
    """Answers from one repository's mind. Each method raises CarbonError."""

    def __init__(self, where: Path | Place, settings: Settings, report: pipeline.Reporter | None = None) -> None:
        """The repository is looked at when the first question comes. Raises RepositoryProblem."""
        self._place = where if isinstance(where, Place) else locate(where)
        self._settings = settings
        self._report = report or pipeline.Silent()
        self._mind: pipeline.Mind | None = None
        self._index: mind_folder.Index | None = None
        self._looked = 0.0
        self._verdict: Verdict | None = None
        self._known: tuple[Symbols, Search] | None = None

    @property
    def root(self) -> Path:
        """The repository."""
        return self._place.root

    # --- staying current ---

    def _current(self) -> pipeline.Mind:
        if not self._settings.enabled:
            raise Disabled(
                "carbon is switched off here (enabled = false)", hint="set enabled = true where it was switched off"
            )
        if self._mind is None or time.monotonic() - self._looked > LOOK_S:
            return self._build(full=False)
        return self._mind

    def _build(self, *, full: bool) -> pipeline.Mind:
        mind = pipeline.build(self._place, self._settings, self._report, full=full)
        if self._mind is None or mind.built:
            self._known = None
        self._mind, self._index = mind, mind_folder.read_index(mind.folder)
        self._verdict = self._judge()
        self._looked = time.monotonic()
        return mind

    def _noted(self) -> tuple[pipeline.Mind, mind_folder.Index]:
        mind = self._current()
        if self._index is None:  # no seal: what is on disk cannot be proven ours
            raise UsageProblem(
                "the notes cannot be read: the cache folder cannot be written",
                hint="set cache_dir, or CARBON_CACHE_DIR",
            )
        return mind, self._index

    def _judge(self) -> Verdict:
        from carbon_mind.repo.shipped import shipped

        return verdict(self.root, shipped(scan(self._place)), Trust(trust_folder()))

    def _refused(self) -> str:
        """The line that is answered instead, "" where the mind may be shown."""
        self._current()
        return withheld(self._verdict) + "\n" if self._verdict is not None and not self._verdict.trusted else ""

    # --- answers ---

    def show(self) -> str:
        """Exactly the block that goes into a prompt."""
        if refused := self._refused():
            return refused
        return fence(self._current().markdown, limit=self._settings.block_chars) + "\n"

    def block(self, special: Iterable[str]) -> str:
        """The same block without any of these control tokens of a model; "" where the mind is withheld."""
        if self._refused():
            return ""
        return fence(self._current().markdown, limit=self._settings.block_chars, special=special)

    def listing(self) -> str:
        """One line for every directory with a note."""
        if refused := self._refused():
            return refused
        mind, index = self._noted()
        return resanitise(mind_folder.read_overview(mind.folder, index) or "no directory has a note\n", limit=ANSWER)

    def entries(self) -> list[dict[str, object]]:
        """The same for programs: path, files, summary and size of each note."""
        if self._refused():
            return []
        _, index = self._noted()
        return [
            {"path": entry.path, "files": entry.files, "summary": entry.summary, "bytes": entry.size}
            for entry in index.notes
        ]

    def lookup(self, path: str) -> str:
        """The note of the nearest directory above a path, or of the path itself."""
        from carbon_mind.knowledge.areas import nearest

        wanted = inside(self.root, path)
        if refused := self._refused():
            return refused
        for damaged in (False, True):
            if damaged:  # a note is missing or is not the one that was written: all of them are made anew
                self._build(full=True)
            mind, index = self._noted()
            entries = {entry.path: entry for entry in index.notes}
            found = nearest(safe(wanted, 400), entries) if wanted else None
            if found is None:
                where = safe(wanted, 160) or "the top"
                return f"{where}: no directory above it has a note; this is all there is:\n\n{self.listing()}"
            if (text := mind_folder.read_note(mind.folder, entries[found])) is not None:
                return resanitise(text, limit=ANSWER)
        raise StorageProblem(
            f"the note of {found} cannot be read", hint="look at .carbon/mind/dirs, then run `carbon mind --full`"
        )

    def symbol(self, name: str) -> str:
        """Where a name is defined, and who uses it."""
        return self._refused() or resanitise(self._knowledge()[0].answer(name), limit=ANSWER)

    def search(self, query: str) -> str:
        """The best files for a query."""
        return self._refused() or resanitise(self._knowledge()[1].answer(query), limit=ANSWER)

    def _knowledge(self) -> tuple[Symbols, Search]:
        self._current()
        if self._known is None:
            from carbon_mind.knowledge.search import Search
            from carbon_mind.knowledge.symbols import Symbols

            evidence, read = pipeline.known(self._place, self._settings, self._report)
            self._known = Symbols(evidence), Search(evidence, read)
        return self._known

    # --- status ---

    def status(self) -> Status:
        """What is there, compared with the working tree; nothing is built or written."""
        if not self._settings.enabled:
            none = Directories(0, ())
            return Status(False, False, 0, none, none, none, 0, 0, "switched off (enabled = false)")
        fresh = pipeline.check(self._place, self._settings, self._report)
        judged = self._judge()
        refused = "" if judged.trusted else withheld(judged)
        folder = pipeline.find_folder_of(self._place, self._settings)
        index = mind_folder.read_index(folder)
        wanted = {safe(area.path, 400): area.identity for area in pipeline.areas(self._place, self._settings)}
        noted = {entry.path: entry.identity for entry in index.notes} if index is not None else {}
        mind = mind_folder.read(folder, index)

        def directories(paths: Iterable[str]) -> Directories:
            names = tuple(sorted(paths))
            return Directories(len(names), () if refused else names)

        return Status(
            enabled=True,
            current=fresh.current,
            indexed=len(noted),
            stale=directories(path for path in noted.keys() & wanted.keys() if noted[path] != wanted[path]),
            missing=directories(wanted.keys() - noted.keys()),
            gone=directories(noted.keys() - wanted.keys()),
            digest_bytes=len(mind.markdown.encode()) if mind is not None else 0,
            notes_bytes=sum(entry.size for entry in index.notes) if index is not None else 0,
            reason=fresh.reason,
            withheld=refused,
        )


def inside(root: Path, path: str) -> str:
    """A path as somebody wrote it, relative to the root; "" for the root itself. Raises UsageProblem for one outside of it."""
    given = path.strip().replace("\\", "/")
    if given.startswith("/"):
        for base in (str(root), str(root.resolve())):
            if given == base or given.startswith(base.rstrip("/") + "/"):
                given = given[len(base) :].lstrip("/")
                break
        else:
            raise UsageProblem("the path is outside of the repository", hint="give one relative to its root")
    parts: list[str] = []
    for part in given.split("/"):
        if part == "..":
            if not parts:
                raise UsageProblem("the path is outside of the repository", hint="give one relative to its root")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
