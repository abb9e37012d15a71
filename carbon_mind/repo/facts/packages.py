"""The packages of a workspace on one line: what each is called, and where it stands.

`packages/: vue; @vue/{compiler-core,shared}; @vue/compat (vue-compat)`: the directory is named only where it differs
from the end of the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from carbon_mind.repo.facts.context import Context, ours
from carbon_mind.repo.facts.text import listing, word
from carbon_mind.values import RepoPath

MAX_PACKAGES = 80
_GLOB = re.compile(r"[\w@./*{},-]{1,80}\Z")


def members(globs: Iterable[str], here: str, manifest: str, context: Context) -> Iterator[RepoPath]:
    """Manifests of the packages that a workspace's globs mean, in the order of paths; `!glob` takes some away."""
    wanted: list[re.Pattern[str]] = []
    unwanted: list[re.Pattern[str]] = []
    for glob in list(globs)[:MAX_PACKAGES]:
        bare = glob.removeprefix("!").removeprefix("./").rstrip("/")
        # One `*` in a part and two `**` at most: more would let a pattern run for hours on a long path.
        if (
            _GLOB.match(bare)
            and bare.count("**") <= 2
            and all(p in ("*", "**") or p.count("*") < 2 for p in bare.split("/"))
        ):
            (unwanted if glob.startswith("!") else wanted).append(_pattern(bare))
    prefix = f"{here}/" if here else ""
    found = 0
    for path in context.named(manifest):
        place = path.removeprefix(prefix).rpartition("/")[0]
        if not path.startswith(prefix) or not place or not ours(path) or found >= MAX_PACKAGES:
            continue
        if any(p.match(place) for p in wanted) and not any(p.match(place) for p in unwanted):
            found += 1
            yield path


def _pattern(glob: str) -> re.Pattern[str]:
    parts = [re.escape(part).replace(r"\*", "[^/]*") if part != "**" else ".*" for part in glob.split("/")]
    return re.compile("/".join(parts).replace(".*/", "(?:.*/)?") + r"\Z")


def summary(packages: Sequence[tuple[str, str]], room: int) -> str:
    """`packages`: (name, directory). Names that only put something before their directory's share it: `grep-{cli,pcre2}`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, place in packages:
        parent, _, base = place.rpartition("/")
        if word(name) and word(place):
            before = name.removesuffix(base) if name.endswith(base) else ""
            shown = base if name.endswith(base) else f"{name} ({base})"
            groups.setdefault((parent, before), []).append(shown)
    parts: list[str] = []
    last = ""
    left = len([name for names in groups.values() for name in names])
    for (parent, before), names in sorted(groups.items(), key=lambda item: (item[0][0], bool(item[0][1]))):
        where = f"{parent}/: " if parent and parent != last else ""
        last = parent
        alone = not before or len(names) == 1
        space = room - len(where) - (0 if alone else len(before) + 2)
        inner = listing([before + name for name in names] if alone else names, space + (0 if alone else len(names)))
        if not inner:
            return "; ".join(parts) + f" and {left} more" if parts else ""
        parts.append(where + (inner if alone else f"{before}{{{inner.replace(', ', ',')}}}"))
        room -= len(parts[-1]) + 2
        left -= len(names)
    return "; ".join(parts)
