"""The module map: which components there are, which way they lean on each other, and where the tests of each are.

A component is a top directory with code of this project in it, or a directory one deeper where one top directory holds most of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from carbon_mind.counts import most
from carbon_mind.evidence import Evidence
from carbon_mind.safety.safe import safe
from carbon_mind.values import Module, RepoPath, Tags

MAX_MODULES = 10
MAX_DEPENDENCIES = 4
MAX_TESTS = 2
TOP_LEVEL = "."

MIN_SHARE = 5  # a place with less than a fifth of a component's tests is not where one looks

_BENCHMARK = re.compile(r"(^|/)(bench(es|marks?)?|fuzz)/", re.I)
_INLINE = frozenset({"test", "tests"})  # `mod tests` of a Rust file


def modules(evidence: Evidence) -> tuple[Module, ...]:
    """The components with most files first."""
    code = [path for path, _ in evidence.parsed("source") if not path.startswith(".")]
    component = _Components(code)
    members: dict[str, list[RepoPath]] = defaultdict(list)
    for path in code:
        members[component.of(path)].append(path)
    needs = {file.path: file.depends_on for file in evidence.ranked}
    tests = _tests(evidence, component, members, needs)
    result = []
    for name in most(Counter({name: len(paths) for name, paths in members.items()}), MAX_MODULES):
        leans = Counter(
            component.of(needed)
            for path in members[name]
            for needed in needs.get(path, ())
            if component.holds(needed) and component.of(needed) != name
        )
        result.append(
            Module(
                safe(name, 80),
                len(members[name]),
                most(Counter(evidence.tags[path].language for path in members[name]), 2),
                tuple(safe(place, 80) for place in most(leans, MAX_DEPENDENCIES)),
                tuple(safe(place, 80) for place in most(tests.get(name, Counter()), MAX_TESTS)),
            )
        )
    return tuple(result)


class _Components:
    """Which component a file of the project's own code belongs to."""

    def __init__(self, code: list[RepoPath]) -> None:
        tops = Counter(path.split("/", 1)[0] for path in code if "/" in path)
        self._crowded = frozenset(top for top, count in tops.items() if count * 2 > len(code) and count > 3)
        self._code = frozenset(code)
        self._names = frozenset(map(self.of, code))

    def of(self, path: str) -> str:
        parts = path.split("/")
        if len(parts) == 1:
            return TOP_LEVEL
        return "/".join(parts[:2]) if parts[0] in self._crowded and len(parts) > 2 else parts[0]

    def holds(self, path: RepoPath) -> bool:
        return path in self._code

    def has(self, name: str) -> bool:
        return name in self._names


def _tests(
    evidence: Evidence,
    component: _Components,
    members: Mapping[str, list[RepoPath]],
    needs: Mapping[RepoPath, Iterable[RepoPath]],
) -> dict[str, Counter[str]]:
    """For each component the places of its tests: a test belongs to the component that it lies in, else to the one it leans on most."""
    places: dict[str, Counter[str]] = defaultdict(Counter)
    coarse = _unread(evidence)
    folders = {path.rpartition("/")[0] for path, _ in evidence.parsed("source")}
    for path, tags in evidence.parsed("test"):
        if not _is_a_test(path, tags):
            continue
        folder = path.rpartition("/")[0]
        home = component.of(path)
        if not component.has(home) or home == TOP_LEVEL:
            leaned = most(Counter(component.of(needed) for needed in needs.get(path, ()) if component.holds(needed)), 1)
            if not leaned:
                continue
            home = leaned[0]
        beside = folder in folders
        place = f"{top}/" if (top := path.split("/", 1)[0]) in coarse else _place(folder, home)
        places[home][f"beside the code {naming(path)}".rstrip() if beside else place] += 1
    for name, paths in members.items():
        inline = sum(
            any(d.kind == "module" and d.name in _INLINE for d in evidence.tags[path].definitions) for path in paths
        )
        if inline:
            places[name]["inline `mod tests`"] += inline
    return {name: _gathered(counts) for name, counts in places.items()}


def _unread(evidence: Evidence) -> frozenset[str]:
    """Top directories of tests most of which are in a language that nobody here reads: where exactly they lie is not known."""
    read = Counter(path.split("/", 1)[0] for path, _ in evidence.parsed("test"))
    everything = Counter(
        path.split("/", 1)[0] for path in evidence.files if "/" in path and evidence.kind(path) == "test"
    )
    return frozenset(top for top, count in everything.items() if count > 3 * read[top])


def _is_a_test(path: RepoPath, tags: Tags) -> bool:
    """Whether the file holds tests, and not only what they need: named as one, or with an import, and no benchmark."""
    return not _BENCHMARK.search(path) and (naming(path) != "" or bool(tags.imports))


_NAMINGS = (
    (re.compile(r"test_[^/]*(\.\w+)\Z", re.I), "test_*{}"),
    (re.compile(r"[^/]*_test(\.\w+)\Z"), "*_test{}"),
    (re.compile(r"[^/]*_spec(\.\w+)\Z"), "*_spec{}"),
    (re.compile(r"[^/]*\.test(\.\w+)\Z"), "*.test{}"),
    (re.compile(r"[^/]*\.spec(\.\w+)\Z"), "*.spec{}"),
    (re.compile(r"[^/]*Tests(\.\w+)\Z"), "*Tests{}"),
    (re.compile(r"[^/]*Test(\.\w+)\Z"), "*Test{}"),
)


def naming(path: str) -> str:
    """The pattern that a test's file name follows, as `*_test.go`; "" for none of the usual ones."""
    name = path.rsplit("/", 1)[-1]
    for pattern, shape in _NAMINGS:
        if found := pattern.fullmatch(name):
            return shape.format(found[1])
    return ""


def _place(folder: str, home: str) -> str:
    """Where a test lies: the first directory below its component ("own"), or its own directory elsewhere."""
    if folder.startswith(home + "/"):
        return f"own {folder.removeprefix(home + '/').split('/')[0]}/"
    return f"{folder}/" if folder else TOP_LEVEL


def _gathered(places: Counter[str]) -> Counter[str]:
    """Directories of one top directory as one: the deepest that holds most of them. Few of all tests are nowhere to look."""
    tops: dict[str, Counter[str]] = defaultdict(Counter)
    for place, count in places.items():
        tops[place.split("/", 1)[0]][place] += count
    gathered = Counter({_common(inside): inside.total() for inside in tops.values()})
    return Counter({place: count for place, count in gathered.items() if count * MIN_SHARE >= places.total()})


def _common(places: Counter[str]) -> str:
    parts: list[str] = []
    while True:
        prefix = "/".join([*parts, ""])
        below = Counter[str]()
        for place, count in places.items():
            if place.startswith(prefix) and (rest := place[len(prefix) :]):
                below[rest.partition("/")[0]] += count
        following = most(below, 1)
        if not following or (parts and below[following[0]] * 5 < places.total() * 3):
            return prefix if all(place.endswith("/") for place in places) else "/".join(parts)
        parts.append(following[0])
