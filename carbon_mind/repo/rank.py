"""Which files matter: personalised PageRank over "this file uses a name which that file defines".

A name that is defined in many files says little about any of them, so its weight is divided among them and it counts for nothing
above `MAX_HOMES`. Tests point at what they test but do not make it central; they weigh a tenth. Includes and imports that resolve
to a file are edges of their own.
"""

from __future__ import annotations

import math
import posixpath
from array import array
from collections import defaultdict
from collections.abc import Collection, Mapping

from carbon_mind.repo.classify import Kind
from carbon_mind.repo.pagerank import pagerank
from carbon_mind.values import Definition, RankedFile, RepoPath, Tags

MAX_HOMES = 8
TOP_SYMBOLS = 5
TEST_WEIGHT = 0.1
FAINT = 0.1
ENTRY_BOOST = 20.0
_FAMILY = {"c": "c", "cpp": "c", "javascript": "js", "typescript": "js", "tsx": "js"}
# Names that are no evidence of use: every language's own protocol and standard library share them.
_COMMON = frozenset(
    (  # noqa: SIM905 - one string reads better than 130 quoted words
        "main new get set init run name value data self this test len next from into default clone fmt drop eq hash toString "
        "equals constructor call index key strip lstrip rstrip encode decode find match search group sub includes has debug "
        "info warn slice concat add remove close open read write size type string error string_view begin end log Result Option "
        "Some None Ok Err Error Box Vec String Self unwrap expect push pop map filter collect iter as_ref as_mut as_bytes "
        "as_str to_string to_owned into_iter is_some is_none is_empty format println vec insert contains starts_with ends_with "
        "split join append extend items keys values update copy print range list dict tuple int str bool float object super "
        "isinstance forEach replace trim parse stringify resolve reject then catch Promise Array Object Map Set Number Boolean "
        "Date each puts require printf sprintf snprintf malloc free memcpy memset strlen strcmp assert size_t exit echo cd "
        "return"
    ).split()
)
_SUFFIXES = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".d.ts", "/index.ts", "/index.tsx", "/index.js", "/src/index.ts")


def rank(
    tags: Mapping[RepoPath, Tags], kinds: Mapping[RepoPath, Kind], entry_files: Collection[RepoPath] = ()
) -> tuple[RankedFile, ...]:
    """Every parsed file with its score, highest first (ties by path). The scores add up to 1."""
    paths = sorted(tags)
    if not paths:
        return ()
    number = {path: i for i, path in enumerate(paths)}
    homes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for path in paths:
        family = _family(tags[path])
        for name in {definition.name for definition in tags[path].definitions}:
            homes[family, name].append(number[path])
    weights: dict[tuple[int, int], float] = defaultdict(float)
    uses: list[dict[str, int]] = [defaultdict(int) for _ in paths]
    users: list[set[int]] = [set() for _ in paths]
    needs: list[set[RepoPath]] = [set() for _ in paths]
    by_suffix = _python_modules(paths)
    for path in paths:
        source = number[path]
        is_test = kinds.get(path, "source") != "source"
        factor = TEST_WEIGHT if is_test else 1.0
        family = _family(tags[path])
        imported = _imported(path, tags[path], number, by_suffix)
        packages = {posixpath.dirname(target) for target in imported if target.endswith("/__init__.py")}
        for name, count in tags[path].references:
            targets = homes.get((family, name), [])
            if not 0 < len(targets) <= MAX_HOMES or source in targets or not _telling(name):
                continue
            # A name with several homes means the imported one; in Python a name that is not imported is another's.
            near = [t for t in targets if paths[t] in imported or posixpath.dirname(paths[t]) in packages]
            evident = bool(near) or family != "python"
            targets = near or targets
            for target in targets:
                weights[source, target] += factor * math.sqrt(count) / len(targets) * (1.0 if evident else FAINT)
                if not is_test and evident:
                    uses[target][name] += count
                    if len(targets) == 1:
                        users[target].add(source)
        for target_path in imported:
            target = number[target_path]
            if target != source:
                needs[source].add(target_path)
                weights[source, target] += factor
                if not is_test:
                    users[target].add(source)
    edges = sorted(weights)
    entries = set(entry_files)
    scores = pagerank(
        len(paths),
        array("i", (a for a, _ in edges)),
        array("i", (b for _, b in edges)),
        array("d", (weights[edge] for edge in edges)),
        array("d", (_start_weight(path, kinds, entries) for path in paths)),
    )
    ranked = [
        RankedFile(path, scores[i], len(users[i]), _top(tags[path], uses[i]), tuple(sorted(needs[i])), path in entries)
        for path, i in number.items()
    ]
    return tuple(sorted(ranked, key=lambda file: (-file.score, file.path)))


def entry_files(targets: Collection[str], known: Collection[RepoPath]) -> frozenset[RepoPath]:
    """The files that entry points mean: a path as it is, and `package.module:function` as the module's file."""
    found: set[RepoPath] = set()
    for target in targets:
        module = target.partition(":")[0].replace(".", "/")
        shapes = (target, *(f"{base}{module}{end}" for base in ("", "src/") for end in (".py", "/__init__.py")))
        found.update(RepoPath(shape) for shape in shapes if shape in known)
    return frozenset(found)


def _start_weight(path: RepoPath, kinds: Mapping[RepoPath, Kind], entries: Collection[RepoPath]) -> float:
    if path in entries:
        return ENTRY_BOOST
    return 1.0 if kinds.get(path, "source") == "source" else TEST_WEIGHT


def _family(tags: Tags) -> str:
    return _FAMILY.get(tags.language, tags.language)


def _telling(name: str) -> bool:
    return len(name) > 2 and name not in _COMMON and not (name.startswith("__") and name.endswith("__"))


def _top(tags: Tags, uses: Mapping[str, int]) -> tuple[tuple[Definition, int], ...]:
    first: dict[str, Definition] = {}
    for definition in tags.definitions:
        first.setdefault(definition.name, definition)
    used = sorted(
        ((first[name], count) for name, count in uses.items()), key=lambda pair: (-pair[1], pair[0].line, pair[0].name)
    )
    return tuple(used[:TOP_SYMBOLS])


def _python_modules(paths: list[RepoPath]) -> dict[str, RepoPath]:
    """Names by which Python files can be imported, those with one owner only: `pkg.mod` of src/pkg/mod.py, `helper` of tools/helper.py.

    A name starts where no package goes on, as for Python itself: `import json` is not pkg/json.py.
    """
    known = set(paths)
    owners: dict[str, list[RepoPath]] = defaultdict(list)
    for path in paths:
        if path.endswith(".py"):
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                if not start or "/".join((*parts[:start], "__init__.py")) not in known:
                    owners[".".join(parts[start:])].append(path)
    return {name: found[0] for name, found in owners.items() if len(found) == 1}


def _imported(
    path: RepoPath, tags: Tags, known: Mapping[RepoPath, int], modules: Mapping[str, RepoPath]
) -> list[RepoPath]:
    """By path: files of the repository that this one's imports name: C includes, relative JS/TS modules, Python modules."""
    here = posixpath.dirname(path)
    found: set[RepoPath] = set()
    for text in tags.imports:
        candidates: list[str] = []
        if tags.language in ("c", "cpp"):
            name = text.strip('<>"')
            candidates = [posixpath.normpath(posixpath.join(here, name)), name, f"src/{name}", f"include/{name}"]
        elif _FAMILY.get(tags.language) == "js" and text.startswith("."):
            base = posixpath.normpath(posixpath.join(here, text))
            stem = base.removesuffix(".js")
            candidates = [base + suffix for suffix in _SUFFIXES] + [stem + suffix for suffix in _SUFFIXES[1:4]]
        elif tags.language == "python":
            if text.startswith("."):
                up = len(text) - len(text.lstrip("."))
                folder = here
                for _ in range(up - 1):
                    folder = posixpath.dirname(folder)
                base = posixpath.join(folder, text.lstrip(".").replace(".", "/")).rstrip("/")
                candidates = [f"{base}.py", f"{base}/__init__.py"]
            elif text in modules and len(text) > 2:
                candidates = [modules[text]]
        for candidate in candidates:
            target = RepoPath(candidate)
            if target in known:
                found.add(target)
                break
    return sorted(found)
