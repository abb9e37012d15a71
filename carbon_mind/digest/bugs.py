"""Known bugs: what the code itself says is broken, in comments and by tests that are switched off or expected to fail."""

from __future__ import annotations

from collections.abc import Mapping

from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe
from carbon_mind.values import KnownBug, RankedFile, RepoPath

MAX_BUGS = 10
MAX_TESTS = 4  # of them: a suite that is switched off must not hide the code's own words
EXCERPT = 100  # characters
_GROUP = {"BUG": 0, "FIXME": 0, "XFAIL": 1, "HACK": 2, "XXX": 2, "SKIP": 3}
_TESTS = frozenset({"XFAIL", "SKIP"})


def known_bugs(evidence: Evidence) -> tuple[KnownBug, ...]:
    """The clearest words first, then by the weight of the file; a test weighs as much as the heaviest file that it leans on."""
    ranked = {file.path: file for file in evidence.ranked}
    found = []
    for path in sorted(evidence.tags):
        kind = evidence.kind(path)
        for marker in evidence.tags[path].markers:
            if kind == ("test" if marker.tag in _TESTS else "source") and (excerpt := safe(marker.text, EXCERPT)):
                order = (_GROUP.get(marker.tag, 9), -_weight(path, ranked), path, marker.line)
                found.append((order, KnownBug(f"{safe(path, 160)}:{marker.line}", marker.tag, excerpt)))
    result: list[KnownBug] = []
    tests = 0
    for _, bug in sorted(found, key=lambda item: item[0]):
        tests += bug.tag in _TESTS
        if bug.tag not in _TESTS or tests <= MAX_TESTS:
            result.append(bug)
    return tuple(result[:MAX_BUGS])


def _weight(path: RepoPath, ranked: Mapping[RepoPath, RankedFile]) -> float:
    file = ranked.get(path)
    if file is None:
        return 0.0
    return max([file.score, *(ranked[needed].score for needed in file.depends_on if needed in ranked)])
