"""Which files matter: personalised PageRank over "this file uses a name which that file defines".

A name means the definition that its user can see: in a file that it imports, or in a scope that it opens (see `imports`). A name
that it cannot see is faint evidence and enters no count. Where several visible files define it, it says little about any of them.
A method is called on a value whose type nobody here knows, so it counts only where no other file defines that name and the user
names something else of the file, too. The same holds for a module or namespace, which any file may open again.

Tests point at what they test but do not make it central. Nothing points at a test, an example or a generated file.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from carbon_mind.repo.classify import Kind
from carbon_mind.repo.facts.text import words
from carbon_mind.repo.imports import FAMILY, Resolved
from carbon_mind.repo.pagerank import pagerank
from carbon_mind.values import Definition, RankedFile, RepoPath, Tags

MAX_HOMES = 8  # a name that is defined in more files, and seen in none of them, is everybody's
MAX_NAMESAKES = 64  # ... and one of so many files is not looked for
TOP_SYMBOLS = 5
TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
WEAK = frozenset({"method", "module"})  # called on a value of unknown type; opened again by any file
TEST_WEIGHT = 0.1
FAINT = 0.1
ENTRY_SHARE = 0.15  # of what all files start with, for all entry points together ...
ENTRY_BOOST = 20.0  # ... and the most for one of them
OUTSIDE = 4.0  # what every file uses of other libraries, in square roots of uses
_MACHINE_MADE = frozenset({"generated", "minified"})
# Names that are no evidence of use: every language's own protocol and standard library share them, and a use of `x.get` looks like one
# of a function `get`.
_COMMON = words(
    "main new get set init run name value data test next from into default clone fmt drop hash toString equals call index key strip "
    "encode decode find match search group sub includes has debug info warn slice concat add remove close open read write size type "
    "string error string_view begin end log Result Option Some None Err Error Box Vec String unwrap expect push pop map filter collect "
    "iter format println vec insert contains split join append extend items keys values update copy print range list dict tuple int "
    "str bool float object isinstance forEach replace trim parse stringify resolve reject then catch Promise Array Object Map Set Number "
    "Boolean Date each puts require printf sprintf snprintf malloc free memcpy memset strlen strcmp assert size_t exit echo matches "
    "some every send start stop load save reset clear path"
)
# Methods of more than one word that values of the standard libraries have.
_LIBRARY_METHODS = words(
    "isEmpty getClass getName getType getKey getValue getMethod getMessage getCause containsKey hashCode compareTo toArray toJson "
    "toLowerCase toUpperCase charAt indexOf lastIndexOf findIndex startsWith endsWith defineProperty hasOwnProperty addEventListener "
    "setTimeout hasNext entrySet keySet is_empty is_some is_none is_ok is_err is_file is_dir as_ref as_mut as_bytes as_str as_path "
    "to_string to_owned to_vec to_path_buf into_iter unwrap_or starts_with ends_with file_name file_type set_default from_environ "
    "to_s to_a to_h to_sym each_with_index is_a"
)
_COMPOUND = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z0-9][A-Z]")


@dataclass(slots=True)
class _Graph:
    """What is found on the way, by number of the file that is used; the users are never tests."""

    weights: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    uses: dict[int, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    users: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    importers: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    needs: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    active: set[int] = field(default_factory=set)  # files that use something of another


def rank(
    tags: Mapping[RepoPath, Tags],
    kinds: Mapping[RepoPath, Kind],
    resolved: Mapping[RepoPath, Resolved],
    entry_files: Collection[RepoPath] = (),
) -> tuple[RankedFile, ...]:
    """Every parsed file with its score, highest first (ties by path). The scores add up to 1."""
    paths = sorted(tags)
    if not paths:
        return ()
    own = {path for path in paths if kinds.get(path, "source") == "source" and tags[path].degraded not in _MACHINE_MADE}
    number = {path: i for i, path in enumerate(paths)}
    graph = _graph(paths, number, tags, own, resolved)
    entries = set(entry_files)
    # A file that only stands where another tool looks for it (`main` of a package that is built) starts nothing.
    starts = {path for path in entries & own if tags[path].definitions or number[path] in graph.active}
    boost = min(ENTRY_BOOST, ENTRY_SHARE * len(own) / len(entries)) if entries else 0.0
    scores = _scores(
        graph.weights, [1.0 + boost if path in starts else 1.0 if path in own else TEST_WEIGHT for path in paths]
    )
    ranked = [
        RankedFile(
            path,
            scores[i],
            len(graph.users[i]),
            _top(tags[path], graph.uses[i]),
            tuple(paths[need] for need in sorted(graph.needs[i])),
            path in entries,
            len(graph.importers[i]),
        )
        for i, path in enumerate(paths)
    ]
    return tuple(sorted(ranked, key=lambda file: (-file.score, file.path)))


def _scores(weights: Mapping[tuple[int, int], float], start: list[float]) -> list[float]:
    """PageRank with one node more, which stands for all that is not in the repository, and to which every file leads.

    Without it the one file that a central file uses would be as central, however little of it is used.
    """
    outside = len(start)
    edges = sorted(weights)
    scores = pagerank(
        outside + 1,
        array("i", (*(a for a, _ in edges), *range(outside))),
        array("i", (*(b for _, b in edges), *([outside] * outside))),
        array("d", (*(weights[edge] for edge in edges), *([OUTSIDE] * outside))),
        array("d", (*start, 0.0)),
    )[:outside]
    total = math.fsum(scores)
    return [score / total for score in scores]


def _graph(
    paths: list[RepoPath],
    number: Mapping[RepoPath, int],
    tags: Mapping[RepoPath, Tags],
    own: set[RepoPath],
    resolved: Mapping[RepoPath, Resolved],
) -> _Graph:
    graph = _Graph()
    homes = _homes(paths, tags, own)
    scopes = [frozenset(resolved[path].shown_by if path in resolved else ()) for path in paths]
    ours = [path in own for path in paths]
    for source, path in enumerate(paths):
        found = resolved.get(path, Resolved())
        imported = {number[target] for target in found.files if target in number} - {source}
        for target in imported:
            graph.needs[source].add(target)
            if ours[target]:
                graph.weights[source, target] += 1.0
                if ours[source]:
                    graph.importers[target].add(source)
                    graph.users[target].add(source)
        language = tags[path].language
        family = homes.get(FAMILY.get(language, language), {})
        sees = frozenset(found.sees)
        known = {definition.name for definition in tags[path].definitions}
        weakly: list[tuple[str, int, int]] = []
        named = set(imported)  # files of which something is surely meant
        for name, count in tags[path].references:
            targets = family.get(name)
            if targets is None or name in known:
                continue
            visible = [t for t in targets if t in imported] or [t for t in targets if not sees.isdisjoint(scopes[t])]
            weak = any(targets[t] for t in visible)
            if len(visible) == 1 and (not weak or len(targets) == 1):
                if weak:
                    weakly.append((name, count, visible[0]))
                else:
                    _use(graph, source, visible[0], name, count, certain=ours[source])
                    named.add(visible[0])
            elif visible and not weak:
                _share(graph, source, visible, math.sqrt(count))
            elif len(visible or targets) <= MAX_HOMES:
                _share(graph, source, visible or targets, math.sqrt(count) * FAINT)
        for name, count, target in weakly:
            if target in named:
                _use(graph, source, target, name, count, certain=ours[source])
            else:
                _share(graph, source, [target], math.sqrt(count) * FAINT)
    return graph


def _use(graph: _Graph, source: int, target: int, name: str, count: int, *, certain: bool) -> None:
    graph.weights[source, target] += math.sqrt(count)
    graph.needs[source].add(target)
    graph.active.add(source)
    if certain:
        graph.uses[target][name] += count
        graph.users[target].add(source)


def _share(graph: _Graph, source: int, targets: Collection[int], weight: float) -> None:
    for target in targets:
        graph.weights[source, target] += weight / len(targets)


def _homes(
    paths: list[RepoPath], tags: Mapping[RepoPath, Tags], own: set[RepoPath]
) -> dict[str, dict[str, dict[int, bool]]]:
    """Family -> name -> the files that define it for others, and whether only weakly."""
    homes: dict[str, dict[str, dict[int, bool]]] = defaultdict(dict)
    for i, path in enumerate(paths):
        if path not in own:
            continue
        language = tags[path].language
        family = homes[FAMILY.get(language, language)]
        types = {item.name for item in tags[path].definitions if item.kind in TYPES}
        for definition in tags[path].definitions:
            if not definition.local and _telling(definition.name, definition.kind):
                files = family.setdefault(definition.name, {})
                # A type and its constructor have one name; a function and a method of one name cannot be told apart.
                files[i] = definition.name not in types and (files.get(i, False) or definition.kind in WEAK)
    return {
        family: {name: files for name, files in names.items() if len(files) <= MAX_NAMESAKES}
        for family, names in homes.items()
    }


def entry_files(targets: Collection[str], known: Collection[RepoPath]) -> frozenset[RepoPath]:
    """The files that entry points mean: a path as it is, and `package.module:function` as the module's file."""
    found: set[RepoPath] = set()
    for target in targets:
        module = target.partition(":")[0].replace(".", "/")
        shapes = (target, *(f"{base}{module}{end}" for base in ("", "src/") for end in (".py", "/__init__.py")))
        found.update(RepoPath(shape) for shape in shapes if shape in known)
    return frozenset(found)


def _telling(name: str, kind: str) -> bool:
    """Whether a use of the name is evidence at all. One plain word as a method is everybody's."""
    if len(name) < 3 or name in _COMMON or name in _LIBRARY_METHODS or (name.startswith("__") and name.endswith("__")):
        return False
    return kind != "method" or (not name.startswith("__") and _COMPOUND.search(name) is not None)


def _top(tags: Tags, uses: Mapping[str, int]) -> tuple[tuple[Definition, int], ...]:
    """Methods come last: a count of theirs is right only if nothing of another library has a method of that name."""
    first: dict[str, Definition] = {}
    for definition in sorted(tags.definitions, key=lambda item: item.kind in WEAK):
        if not definition.local:
            first.setdefault(definition.name, definition)
    used = sorted(
        ((first[name], count) for name, count in uses.items()),
        key=lambda pair: (pair[0].kind in WEAK, -pair[1], pair[0].line, pair[0].name),
    )
    return tuple(used[:TOP_SYMBOLS])
