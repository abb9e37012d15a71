"""Collecting one manifest's facts: the only place where a command, a constraint or an entry point is made.

Here every text is cleaned and bounded, and a command of a nested manifest gets the directory it belongs to.
"""

from __future__ import annotations

from carbon_mind.repo.facts.context import directory
from carbon_mind.repo.facts.text import MAX_FACT, clean, quote, words
from carbon_mind.values import Command, CommandKind, Constraint, EntryPoint, ProjectFacts

# What stands here runs, but nobody starts to read the project there.
_NO_ENTRY = words(
    "fuzz fuzzing fuzzers fuzz_targets bench benches benchmark benchmarks perf examples example samples sample demo "
    "demos playground buildsrc testapps test tests __tests__ e2e spec specs docs doc website site xtask"
)
# Commands and versions there are of the documentation or of a measurement, not of the project.
_ASIDE = words("docs doc website site fuzz bench benches benchmark benchmarks playground demo demos integration")


class Found:
    """Facts in the making. `line` is 1-based; 0 leaves the line out. `path` defaults to the manifest's."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.directory = directory(path)
        self._aside = bool(_ASIDE & set(self.directory.split("/")))
        self._commands: list[Command] = []
        self._constraints: list[Constraint] = []
        self._entry_points: list[EntryPoint] = []
        self._frameworks: list[str] = []

    def command(self, kind: CommandKind, command: str, line: int = 0, path: str = "", *, here: bool = True) -> None:
        """Add a command line; `here` runs it in the manifest's directory. A longer one than fits is left out: half a
        command is a wrong command."""
        if here and self.directory:
            command = f"cd {quote(self.directory)} && {command}"
        command = clean(command)
        if command and len(command) <= MAX_FACT and not self._aside:
            self._commands.append(Command(kind, command, self._source(line, path)))

    def constraint(self, text: str, line: int = 0, path: str = "", *, where: bool = False) -> None:
        """Add a constraint; `where` names the directory when it holds for a nested manifest only."""
        suffix = f" (in {self.directory}/)" if where and self.directory else ""
        text = clean(text + suffix)
        if len(text) > MAX_FACT:
            text = text[: MAX_FACT - 1].rstrip() + "…"
        if text and not (where and self._aside):
            self._constraints.append(Constraint(text, self._source(line, path)))

    def entry(self, name: str, target: str, line: int = 0, path: str = "") -> bool:
        """Add an entry point, and tell whether: not without a plain name and target, nor one that only measures or tests."""
        name, target = clean(name), clean(target)
        parts = [*directory(path or self.path).split("/"), *directory(target).split("/")]
        where = {part.rpartition(".")[2].lower() for part in parts}  # `Shop.Benchmarks` in .NET
        if where & _NO_ENTRY or not name or not target or max(len(name), len(target)) > MAX_FACT:
            return False
        self._entry_points.append(EntryPoint(name, target, self._source(line, path)))
        return True

    def framework(self, name: str) -> None:
        """Add the name of a dependency worth knowing; it comes from a list of ours, not from the repository."""
        self._frameworks.append(name)

    def done(self) -> ProjectFacts:
        """What was found, in the order in which it was added."""
        return ProjectFacts(
            tuple(self._commands),
            tuple(self._constraints),
            tuple(self._entry_points),
            tuple(sorted(set(self._frameworks))),
        )

    def _source(self, line: int, path: str) -> str:
        path = path or self.path
        return f"{path}:{line}" if line else path
