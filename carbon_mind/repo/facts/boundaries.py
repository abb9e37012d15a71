"""What not to edit, who reviews, and which environment names a run needs."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import listing, numbered
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=(".gitattributes", "CODEOWNERS", ".env.example", ".env.sample"), limit=8)

_ATTRIBUTE = re.compile(r"\slinguist-(generated|vendored)(?:=true)?(?:\s|\Z)")
_PATTERN = re.compile(r"[\w./*@+?\[\]-]{1,120}\Z")
_VARIABLE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]{0,60})\s*=")
_OWNERS_AT = frozenset({"CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"})
MAX_PATTERNS = 8


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one such file."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name == ".gitattributes":
        _attributes(found, text)
    elif name == "CODEOWNERS" and path in _OWNERS_AT:
        rules = [number for number, row in numbered(text) if row.strip() and row.strip()[0] not in "#[^"]
        if rules:
            found.constraint(f"code owners review changes: {path} has {len(rules)} rules", rules[0])
    elif name.startswith(".env."):
        # Names only: a value in an example file may well be a real one.
        names = {m.group(1): number for number, row in reversed(list(numbered(text))) if (m := _VARIABLE.match(row))}
        if names:
            ordered = sorted(names, key=lambda variable: names[variable])
            found.constraint(f"environment: {listing(ordered, 120)}", names[ordered[0]], where=True)
    return found.done()


def _attributes(found: Found, text: str) -> None:
    added = 0
    for number, row in numbered(text):
        pattern = row.split(None, 1)[0] if row.strip() else ""
        match = _ATTRIBUTE.search(row)
        if match and _PATTERN.match(pattern) and added < MAX_PATTERNS:
            added += 1
            prefix = f"{found.directory}/" if found.directory else ""
            found.constraint(f"do not edit {prefix}{pattern.lstrip('/')} ({match.group(1)})", number)
