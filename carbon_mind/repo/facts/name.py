"""What the project calls itself, from the first root manifest that says so, else from the title of its README.

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
_SETUP_CFG = re.compile(r"^\[metadata\][ \t]*\n(?:.*\n){0,20}?name[ \t]*=[ \t]*(\S{1,60})[ \t]*$", re.M)
_SETUP_PY = re.compile(r"^[ \t]+name[ \t]*=[ \t]*[\"']([\w.-]{1,60})[\"']", re.M)
_MIX_APP = re.compile(r"^[ \t]+app:[ \t]*:(\w{1,60})", re.M)
_GRADLE_ROOT = re.compile(r"^rootProject\.name\s*=\s*[\"']([\w.-]{1,60})[\"']", re.M)
_MESON_PROJECT = re.compile(r"^project\s*\(\s*'([\w.+-]{1,60})'", re.M)
_HEADING = re.compile(r"#[ \t]+(.+)|<h1[^>]{0,80}>(.{1,300}?)</h1>", re.I)
_UNDERLINE = re.compile(r"(?:={3,}|-{3,}|\*{3,}|#{3,})\s*")
_WHAT_IS = re.compile(r"What is ([A-Z][\w.+-]{1,30})\?\s*\Z")
_BADGE = re.compile(r"\[!\[[^\]]{0,200}\]\([^)]{0,400}\)\]\([^)]{0,400}\)|<img\b[^>]{0,800}>")
_IMAGE = re.compile(r"!\[([^\]]{0,80})\]\([^)]{0,400}\)")
_LINK = re.compile(r"\[([^\]]{1,80})\]\([^)]{0,400}\)|<[^>]{0,200}>")
_TITLE = re.compile(r"[A-Za-z0-9.@][\w.@+/-]{0,39}(?: [A-Za-z0-9][\w.+/-]{0,19})?\Z", re.ASCII)
_TITLE_LINES = 40  # a heading further down is one among many
# First headings that name a section, not a project.
_SECTIONS = re.compile(
    r"(?:about|introduction|overview|readme|installation|install|usage|features|contents|license|contributing|"
    r"documentation|docs|quick ?start|getting started|requirements|welcome|setup|description|table of contents)\b",
    re.I,
)
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
    ("setup.cfg", lambda text: _match(_SETUP_CFG, text)),
    ("setup.py", lambda text: _match(_SETUP_PY, text)),
    ("mix.exs", lambda text: _match(_MIX_APP, text)),
    ("settings.gradle.kts", lambda text: _match(_GRADLE_ROOT, text)),
    ("settings.gradle", lambda text: _match(_GRADLE_ROOT, text)),
    ("meson.build", lambda text: _match(_MESON_PROJECT, text)),
)
_READMES = ("README.md", "README.rst", "README", "Readme.md", "readme.md")


def project_name(read: Callable[[RepoPath], str | None]) -> str:
    """The name, or "" when neither a root manifest nor the README's title holds a plain one."""
    for path, parse in _MANIFESTS:
        text = read(RepoPath(path))
        if text:
            try:
                name = parse(text.removeprefix("\ufeff"))
            except (ValueError, RecursionError):
                continue
            if isinstance(name, str) and _NAME.fullmatch(name):
                return name
    return next((title for path in _READMES if (title := _title(read(RepoPath(path)) or ""))), "")


def _title(text: str) -> str:
    """The first heading of a README when it is a name of one or two words, or asks what something is."""
    rows = [row[:1000].rstrip() for row in text.removeprefix("\ufeff").split("\n", _TITLE_LINES)[:_TITLE_LINES]]
    for number, row in enumerate(rows):
        below = rows[number + 1] if number + 1 < len(rows) else ""
        match = _HEADING.match(row)
        if match is None and not (row.strip() and _UNDERLINE.fullmatch(below) and not _UNDERLINE.fullmatch(row)):
            continue
        heading = (match.group(1) or match.group(2)) if match else row
        if asked := _WHAT_IS.match(heading):
            return asked.group(1)
        images = _IMAGE.findall(_BADGE.sub("", heading))
        plain = _LINK.sub(lambda link: link.group(1) or "", _IMAGE.sub("", _BADGE.sub("", heading)))
        plain = re.split(r" [-\u2013\u2014(]|: ", plain.replace("&nbsp;", " ").strip(" #*_`") + " ")[0].strip()
        plain = plain or (images[0].strip() if len(images) == 1 else "")
        return plain if _TITLE.match(plain) and not _SECTIONS.match(plain) else ""
    return ""
