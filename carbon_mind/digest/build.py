"""Facts to digest: pick, order and word what is worth its tokens. Selection only; nothing is measured or guessed here.

The order is that of the digest: what an agent cannot see in one read comes first, because truncation takes from the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from carbon_mind.safety.secrets import redact
from carbon_mind.safety.text import clean
from carbon_mind.values import (
    Command,
    Constraint,
    Coverage,
    CriticalFile,
    Digest,
    EntryPoint,
    KnownBug,
    Module,
    ProjectFacts,
    RankedFile,
    RepoPath,
    Skipped,
    Tags,
)

MAX_CRITICAL = 12
MAX_SIGNATURES = 3
MAX_SIGNED_FILES = 8
MAX_MODULES = 10
MAX_DEPENDENCIES = 4
MAX_BUGS = 10
MAX_CONSTRAINTS = 14
MAX_ENTRY_POINTS = 10
MAX_FRAMEWORKS = 10
MAX_SUFFIXES = 8
MAX_COMMAND = 160  # characters; a longer one is left out, because a command that is cut is another command
EXCERPT = 100
_TAG_ORDER = {"BUG": 0, "FIXME": 1, "HACK": 2, "XXX": 3}

IsSource = Callable[[RepoPath], bool]


def safe(text: str, limit: int | None = None) -> str:
    """Text of the repository as one line that may enter a prompt: credentials removed, control and markers defused."""
    # Redacted before cleaning, where a key's own lines are still lines, and after it, where an invisible character no longer splits it.
    return clean(redact(clean(redact(text))), limit=limit)


def build(
    name: str,
    files: Sequence[RepoPath],
    skipped: Sequence[Skipped],
    tags: Mapping[RepoPath, Tags],
    ranked: Sequence[RankedFile],
    facts: ProjectFacts,
    is_source: IsSource,
    without_grammar: Mapping[str, int],
) -> Digest:
    """The whole digest, before any budget. Every text in it is safe to print and to put into a prompt."""
    return Digest(
        name=safe(name, 60),
        commands=tuple(
            Command(command.kind, safe(command.command), safe(command.source, 160))
            for command in facts.commands
            if len(safe(command.command)) <= MAX_COMMAND
        ),
        constraints=tuple(
            Constraint(safe(c.text, 160), safe(c.source, 160)) for c in facts.constraints[:MAX_CONSTRAINTS]
        ),
        entry_points=tuple(
            EntryPoint(safe(e.name, 80), safe(e.target, 120), safe(e.source, 160))
            for e in facts.entry_points[:MAX_ENTRY_POINTS]
        ),
        architecture=_modules(files, tags, ranked, is_source),
        critical_files=_critical(ranked, is_source),
        patterns=_patterns(tags, facts, files, is_source),
        known_bugs=_bugs(tags, ranked, is_source),
        coverage=Coverage(
            files=len(files),
            parsed=sum(1 for found in tags.values() if not found.degraded),
            skipped=tuple(sorted(Counter(item.reason for item in skipped).items())),
            without_grammar=_suffixes(without_grammar),
        ),
    )


def _suffixes(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """A suffix is text of the repository like any other; two that look alike once cleaned count as one."""
    cleaned: Counter[str] = Counter()
    for suffix, count in counts.items():
        cleaned[safe(suffix, 20)] += count
    return tuple(sorted(cleaned.items(), key=lambda item: (-item[1], item[0]))[:MAX_SUFFIXES])


def _component(path: RepoPath, crowded: frozenset[str]) -> str:
    """The directory that stands for a file in the module map: the top one, or one deeper where that holds everything."""
    parts = path.split("/")
    if len(parts) == 1:
        return "."
    if parts[0] in crowded and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def _modules(
    files: Sequence[RepoPath], tags: Mapping[RepoPath, Tags], ranked: Sequence[RankedFile], is_source: IsSource
) -> tuple[Module, ...]:
    code = [path for path in files if path in tags and is_source(path)]
    tops = Counter(path.split("/", 1)[0] for path in code if "/" in path)
    crowded = frozenset(top for top, count in tops.items() if count * 2 > len(code) and count > 3)
    members: dict[str, list[RepoPath]] = defaultdict(list)
    for path in code:
        members[_component(path, crowded)].append(path)
    needs = {file.path: file.depends_on for file in ranked}
    modules = []
    for component in sorted(members, key=lambda item: (-len(members[item]), item))[:MAX_MODULES]:
        languages = Counter(tags[path].language for path in members[component])
        leans: Counter[str] = Counter()
        for path in members[component]:
            leans.update(_component(needed, crowded) for needed in needs.get(path, ()) if is_source(needed))
        del leans[component]
        strongest = sorted(leans.items(), key=lambda item: (-item[1], item[0]))[:MAX_DEPENDENCIES]
        modules.append(
            Module(
                safe(component, 80),
                len(members[component]),
                tuple(name for name, _ in sorted(languages.items(), key=lambda item: (-item[1], item[0]))[:2]),
                tuple(safe(place, 80) for place, _ in strongest),
            )
        )
    return tuple(modules)


def _critical(ranked: Sequence[RankedFile], is_source: IsSource) -> tuple[CriticalFile, ...]:
    chosen = [file for file in ranked if is_source(file.path) and (file.used_by or file.entry)][:MAX_CRITICAL]
    result = []
    for file in chosen:
        reasons = ["entry point"] if file.entry else []
        if file.used_by:
            reasons.append(f"used by {file.used_by} file{'s' * (file.used_by != 1)}")
        if file.top_symbols:
            definition, count = file.top_symbols[0]
            reasons.append(f"{safe(definition.name, 60)} x{count}")
        signatures = tuple(
            f"{definition.line}: {safe(definition.signature, 110)}"
            for definition, _ in file.top_symbols[:MAX_SIGNATURES]
        )
        result.append(CriticalFile(RepoPath(safe(file.path, 160)), "; ".join(reasons), signatures))
    return tuple(
        file if i < MAX_SIGNED_FILES else CriticalFile(file.path, file.reason) for i, file in enumerate(result)
    )


def _patterns(
    tags: Mapping[RepoPath, Tags], facts: ProjectFacts, files: Sequence[RepoPath], is_source: IsSource
) -> tuple[str, ...]:
    lines = []
    if facts.frameworks:
        lines.append("frameworks and tools: " + ", ".join(safe(name, 40) for name in facts.frameworks[:MAX_FRAMEWORKS]))
    bases: Counter[str] = Counter()
    errors: set[str] = set()
    for path in sorted(tags):
        if is_source(path):
            bases.update(dict(tags[path].bases))
            errors.update(
                d.name for d in tags[path].definitions if d.kind == "class" and d.name.endswith(("Error", "Exception"))
            )
    common = [
        (name, count) for name, count in sorted(bases.items(), key=lambda item: (-item[1], item[0])) if count >= 3
    ][:5]
    if common:
        lines.append("classes derive most from: " + ", ".join(f"{safe(name, 60)} ({count})" for name, count in common))
    if errors:
        shown = sorted(errors)
        more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
        lines.append("error classes: " + ", ".join(safe(name, 60) for name in shown[:6]) + more)
    tests = Counter(
        path.rsplit("/", 1)[0] if "/" in path else "." for path in files if path in tags and _is_test_name(path)
    )
    if tests:
        place, count = min(tests.items(), key=lambda item: (-item[1], item[0]))
        lines.append(
            f"tests: {(total := sum(tests.values()))} file{'s' * (total != 1)}, most in {safe(place, 80)}/ ({count})"
        )
    return tuple(lines)


def _is_test_name(path: RepoPath) -> bool:
    name = path.rsplit("/", 1)[-1].lower()
    stem = name.split(".", 1)[0]
    return (
        stem.startswith("test_")
        or stem.endswith(("_test", "_spec", "test", "tests"))
        or ".test." in name
        or ".spec." in name
    )


def _bugs(tags: Mapping[RepoPath, Tags], ranked: Sequence[RankedFile], is_source: IsSource) -> tuple[KnownBug, ...]:
    weight = {file.path: file.score for file in ranked}
    found = []
    for path in sorted(tags):
        if is_source(path):
            for marker in tags[path].markers:
                excerpt = safe(marker.text, EXCERPT)
                if excerpt:
                    order = (_TAG_ORDER.get(marker.tag, 9) > 1, -weight.get(path, 0.0), path, marker.line)
                    found.append((order, KnownBug(f"{safe(path, 160)}:{marker.line}", marker.tag, excerpt)))
    return tuple(bug for _, bug in sorted(found, key=lambda item: item[0])[:MAX_BUGS])
