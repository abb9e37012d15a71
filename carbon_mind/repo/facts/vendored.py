"""Vendored directories, told by their names and by what others' code brings along: a licence, a manifest.

The name alone is no proof: a shop has vendors, too.
"""

from __future__ import annotations

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(tree=True)
MAX_DIRECTORIES = 6

_NAMES = words("vendor vendored third_party third-party thirdparty node_modules bower_components")
_AT_ROOT = _NAMES | {"deps", "external", "extern"}
_PROOF = ("license", "licence", "copying", "modules.txt", "package.json", "cargo.toml", "composer.json", "notice")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """`do not edit <directory>/ (vendored)`, with the file that shows it as the source."""
    found = Found("")
    proof: dict[str, str] = {}
    for file in context.paths:
        parts = file.split("/")
        for depth, part in enumerate(parts[:-1][:4]):
            if part in (_NAMES if depth else _AT_ROOT):
                name = parts[-1].lower()
                if part == "node_modules" or (len(parts) > depth + 2 and name.startswith(_PROOF)) or name == _PROOF[3]:
                    proof.setdefault("/".join(parts[: depth + 1]), file)
                break
    for directory in sorted(proof, key=lambda name: (name.count("/"), name))[:MAX_DIRECTORIES]:
        found.constraint(f"do not edit {directory}/ (vendored)", 0, proof[directory])
    return found.done()
