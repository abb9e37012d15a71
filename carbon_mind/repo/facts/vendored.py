"""Code of others in the tree: directories told by their names and by what such code brings along (a licence, a
manifest), and submodules.

The name alone is no proof: a shop has vendors, too.
"""

from __future__ import annotations

import re

from carbon_mind.repo.facts import untouched
from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import listing, numbered, plain_path, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(tree=True)

_NAMES = words("vendor vendored third_party third-party thirdparty node_modules bower_components")
_AT_ROOT = _NAMES | {"deps", "external", "extern"}
_PROOF = ("license", "licence", "copying", "modules.txt", "package.json", "cargo.toml", "composer.json", "notice")
_MODULES = ".gitmodules"
_MODULE = re.compile(r"\s*path\s*=\s*(\S{1,100})\s*\Z")
_ROOM = 100


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """One line for all directories, with the file that shows the first one as the source; one for all submodules."""
    found = Found("")
    shown = directories(context)
    if shown:
        found.constraint(
            untouched.all_of("vendored", [f"{name}/" for name in shown], _ROOM), 0, next(iter(shown.values()))
        )
    modules: dict[str, int] = {}
    for number, row in numbered(context.text(_MODULES) or ""):
        if (match := _MODULE.match(row)) and word(match.group(1)):
            modules.setdefault(match.group(1), number)
    if names := listing(list(modules), _ROOM):
        line = next(iter(modules.values()))
        found.constraint(f"submodules: {names} (git submodule update --init)", line, _MODULES)
    return found.done()


def directories(context: Context) -> dict[str, RepoPath]:
    """Vendored directory -> the file that shows it; the shallowest first."""
    proof: dict[str, RepoPath] = {}
    for file in context.paths:
        parts = file.split("/")
        for depth, part in enumerate(parts[:-1][:4]):
            if part in (_NAMES if depth else _AT_ROOT):
                name = parts[-1].lower()
                brought = len(parts) > depth + 2 and name.startswith(_PROOF)
                if (part == "node_modules" or brought or name == _PROOF[3]) and plain_path(file):
                    proof.setdefault("/".join(parts[: depth + 1]), file)
                break
    return {name: proof[name] for name in sorted(proof, key=lambda name: (name.count("/"), name))}
