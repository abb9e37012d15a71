"""What the project calls itself, from the first root manifest that says so.

The directory's name would be simpler, and would make the digest differ between two clones of one repository.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable

from carbon_mind.values import RepoPath

_NAME = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/-]{0,59}\Z")
_GO_MODULE = re.compile(r"^module[ \t]+\"?([^\s\"]{1,200})", re.M)
_GO_MAJOR = re.compile(r"/v[0-9]+\Z")  # a major version's path element, no name
_CMAKE_PROJECT = re.compile(r"^[ \t]*project[ \t]*\([ \t\n]*\"?([A-Za-z0-9_.-]{1,60})", re.I | re.M)


def _toml(text: str, *keys: str) -> object:
    value: object = tomllib.loads(text)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _json(text: str) -> object:
    value = json.loads(text)
    return value.get("name") if isinstance(value, dict) else None


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""


# In the order of trust: what names a published thing comes before what names a build.
_MANIFESTS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("pyproject.toml", lambda text: _toml(text, "project", "name") or _toml(text, "tool", "poetry", "name")),
    ("Cargo.toml", lambda text: _toml(text, "package", "name")),
    ("go.mod", lambda text: _GO_MAJOR.sub("", _match(_GO_MODULE, text)).rsplit("/", 1)[-1]),
    ("package.json", _json),
    ("composer.json", _json),
    ("CMakeLists.txt", lambda text: _match(_CMAKE_PROJECT, text)),
)


def project_name(read: Callable[[RepoPath], str | None]) -> str:
    """The name, or "" when no root manifest holds a plain one."""
    for path, parse in _MANIFESTS:
        text = read(RepoPath(path))
        if text:
            try:
                name = parse(text.removeprefix("\ufeff"))
            except (ValueError, RecursionError):
                continue
            if isinstance(name, str) and _NAME.fullmatch(name):
                return name
    return ""
