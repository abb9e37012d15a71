"""Where a name is defined, and who uses it: by what the parsers saw, for an agent that would otherwise grep for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe
from carbon_mind.values import Definition, RepoPath

MAX_DEFINITIONS = 12
MAX_USERS = 15
_PATH = 160
_KIND = {"source": 0, "test": 1}


class Symbols:
    """The definitions of one repository by name."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._needs = {file.path: frozenset(file.depends_on) for file in evidence.ranked}
        self._scores = {file.path: file.score for file in evidence.ranked}
        self._found: dict[str, list[tuple[RepoPath, Definition]]] = {}
        for path, tags in evidence.tags.items():
            for definition in tags.definitions:
                self._found.setdefault(definition.name, []).append((path, definition))

    def answer(self, asked: str) -> str:
        """What is known of a name, as `name`, `Class.method` or `module::name`; similar names where nothing is."""
        name = asked.strip().removesuffix("()").replace("::", ".").rpartition(".")[2]
        places = sorted(self._found.get(name, ()), key=lambda item: self._order(*item))
        if not places:
            close = difflib.get_close_matches(name, self._found, n=5, cutoff=0.7)
            hint = f"; similar: {', '.join(safe(other, 80) for other in close)}" if close else ""
            return f"{safe(name, 80)}: not defined in any parsed file{hint}\n"
        lines = [f"# {safe(name, 80)}", "", "## Defined"]
        for path, definition in places[:MAX_DEFINITIONS]:
            lines.append(
                f"- {safe(path, _PATH)}:{definition.line} {safe(definition.signature, 160)} ({definition.kind})"
            )
        if len(places) > MAX_DEFINITIONS:
            lines.append(f"- and {len(places) - MAX_DEFINITIONS} more")
        lines += self._users(name, {path for path, _ in places})
        return "\n".join(lines) + "\n"

    def _order(self, path: RepoPath, definition: Definition) -> tuple[int, float, str, int]:
        kind = _KIND.get(self._evidence.kind(path), 2)
        return kind, -self._scores.get(path, 0.0), path, definition.line

    def _users(self, name: str, homes: set[RepoPath]) -> Iterator[str]:
        """Files that use the name: first those that lean on a file that defines it, then those that only spell it."""
        users = []
        for path, tags in self._evidence.tags.items():
            count = dict(tags.references).get(name, 0)
            if count:
                leans = bool(homes & self._needs.get(path, frozenset())) or path in homes
                users.append((not leans, self._evidence.kind(path) != "source", -count, path))
        if not users:
            return
        users.sort()
        yield ""
        yield f"## Used in {len(users)} file{'s' * (len(users) != 1)}"
        for apart, _, count, path in users[:MAX_USERS]:
            yield f"- {safe(path, _PATH)} x{-count}" + (" (same name, no import seen)" if apart else "")
        if len(users) > MAX_USERS:
            yield f"- and {len(users) - MAX_USERS} more"
