"""What digest and notes are made from: everything that was extracted from one repository, handed on as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from carbon_mind.values import ProjectFacts, RankedFile, RepoPath, Skipped, Tags


@dataclass(frozen=True, slots=True)
class Evidence:
    """One repository's facts. `kinds` tells what a path is ("source", "test", "vendored" ...); one that is missing is source."""

    files: Sequence[RepoPath] = ()
    skipped: Sequence[Skipped] = ()
    tags: Mapping[RepoPath, Tags] = field(default_factory=dict)
    ranked: Sequence[RankedFile] = ()
    facts: ProjectFacts = field(default_factory=ProjectFacts)
    kinds: Mapping[RepoPath, str] = field(default_factory=dict)
    without_grammar: Mapping[str, int] = field(default_factory=dict)  # suffix: number of files
    outlined: int = 0  # files of which only the imports were asked for

    def kind(self, path: RepoPath) -> str:
        """What the file is."""
        return self.kinds.get(path, "source")

    def parsed(self, kind: str) -> Iterator[tuple[RepoPath, Tags]]:
        """The parsed files of a kind, by path."""
        for path in sorted(self.tags):
            if self.kind(path) == kind:
                yield path, self.tags[path]
