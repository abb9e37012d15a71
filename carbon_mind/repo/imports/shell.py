"""Shell: `source` names a file; otherwise scripts of a repository share their functions through whoever calls them."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, directory
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, relative
from carbon_mind.values import RepoPath

_SCOPE = "bash"
# `$HERE/lib.sh`, `"$(dirname "$0")"/lib.sh`, `${BASH_SOURCE%/*}/lib.sh`: the script's own directory, as good as always.
_BASE = re.compile(r"(\$\{[^}/]*(/\*)?\}|\$\w+|\$\([^()]*(\([^()]*\))?[^()]*\)|`[^`]*`)\"?/")


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves shell scripts."""
    found = Found(files)
    found.shows(_SCOPE, *files)
    for path, tags in files.items():
        found.sees(path, _SCOPE)
        for text in tags.imports:
            rest = text.lstrip('"')
            base = _BASE.match(rest)
            name = rest[base.end() :] if base else rest
            places = (relative(directory(path), name), None if base else relative("", name))
            found.exact(path, first((place for place in places if place), files))
    return found.done()
