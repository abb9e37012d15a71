"""Versions of runtimes: the files that version managers read."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import first_line, numbered, parse_toml, table, toml_line, version
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=(
        ".python-version", ".nvmrc", ".node-version", ".ruby-version", ".go-version", ".java-version", ".tool-versions",
        "rust-toolchain.toml", "rust-toolchain",
    ),
    limit=12,
)  # fmt: skip

_LABELS = {
    ".python-version": "Python",
    ".nvmrc": "Node.js",
    ".node-version": "Node.js",
    ".ruby-version": "Ruby",
    ".go-version": "Go",
    ".java-version": "Java",
}
_TOOL = re.compile(r"([a-z][\w-]{0,30})\s+(\S{1,40})")
_CONTENT = re.compile(r"^\s*[^#\s]")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """The versions that one such file asks for."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name == ".tool-versions":
        for number, row in numbered(text):
            if (match := _TOOL.match(row)) and (spec := version(match.group(2))):
                found.constraint(f"{match.group(1)} {spec}", number, where=True)
    elif name.startswith("rust-toolchain"):
        _toolchain(found, text)
    elif line := first_line(text, _CONTENT):
        spec = version(text.removeprefix("\ufeff").split("\n")[line - 1])
        if spec:
            found.constraint(f"{_LABELS[name]} {spec}", line, where=True)
    return found.done()


def _toolchain(found: Found, text: str) -> None:
    channel = table(parse_toml(text), "toolchain").get("channel")
    if spec := version(channel):
        found.constraint(f"Rust toolchain {spec}", toml_line(text, "toolchain", "channel"), where=True)
    elif not channel and (spec := version(text.strip())):
        found.constraint(f"Rust toolchain {spec}", 1, where=True)
