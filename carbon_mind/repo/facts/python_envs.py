"""tox environments and nox sessions, by name."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.python_tools import add_tool, runner
from carbon_mind.repo.facts.text import first_line, lines, numbered, parse_ini, table, toml_line, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("tox.ini", "tox.toml", "pyproject.toml", "noxfile.py"), limit=6)

_SESSION = re.compile(r"@(?:nox\.)?session\b")
_LEGACY = re.compile(r"^\s*legacy_tox_ini\s*=")
_NAMED = re.compile(r"""\bname\s*=\s*["']([\w.-]+)["']""")
_DEF = re.compile(r"(?:async\s+)?def\s+(\w+)\s*\(")
_RUNS_TESTS = re.compile(r"\b(?:pytest|unittest|stestr|trial|coverage run)\b")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """`tox -e X` and `nox -s X`."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name == "noxfile.py":
        _nox(found, text, context)
    elif name == "tox.ini":
        _tox_ini(found, text, context)
    else:
        keys = ("tool", "tox") if name == "pyproject.toml" else ()
        legacy = table(context.toml(path), *keys).get("legacy_tox_ini")
        if isinstance(legacy, str):
            # Padded so that its lines keep their numbers; TOML drops a line break right behind the quotes.
            start = first_line(text, _LEGACY)
            below = lines(text)[start - 1].rstrip().endswith(('"""', "'''")) if start else False
            _tox_ini(found, "\n" * (start - (not below)) + legacy, context)
        _tox_toml(found, text, context, keys)
    return found.done()


def _tox(found: Found, context: Context, base: str, base_line: int, environments: dict[str, int]) -> None:
    """`base` is the command text of the base environment: `py` runs it with the Python at hand."""
    prefix = runner(context, found.path, "tox")
    if _RUNS_TESTS.search(base):
        found.command("test", f"{prefix}tox -e py", base_line)
        if "posargs" in base and "pytest" in base:
            found.command("test-one", f"{prefix}tox -e py -- path/to/test.py::name", base_line)
    for kind, name in ranked(environments):
        found.command(kind, f"{prefix}tox -e {name}", environments[name])


def _tox_ini(found: Found, text: str, context: Context) -> None:
    sections = parse_ini(text)
    line, base = sections.get("testenv", {}).get("commands", (0, ""))
    environments: dict[str, int] = {}
    for section, keys in sections.items():
        start, _, name = section.partition(":")
        if start == "testenv" and word(name) and "," not in name:
            environments[name] = keys[""][0]
    _tox(found, context, base, line, environments)
    for section in ("pytest", "flake8"):
        if section in sections:
            add_tool(found, context, section, sections[section][""][0])


def _tox_toml(found: Found, text: str, context: Context, keys: tuple[str, ...]) -> None:
    settings = table(context.toml(found.path), *keys)
    environments = {
        name: toml_line(text, *keys, "env", name) for name in table(settings, "env") if word(name) and "," not in name
    }
    base = str(table(settings, "env_run_base").get("commands", ""))[:2000]
    _tox(found, context, base, toml_line(text, *keys, "env_run_base", "commands"), environments)


def _nox(found: Found, text: str, context: Context) -> None:
    sessions: dict[str, int] = {}
    name = ""
    waiting = False
    for number, row in numbered(text):
        if _SESSION.match(row):
            waiting, name = True, ""
        if waiting and (match := _NAMED.search(row)):
            name = match.group(1)
        if match := _DEF.match(row):
            if waiting and word(name or match.group(1)):
                sessions.setdefault(name or match.group(1), number)
            waiting = False
    prefix = runner(context, found.path, "nox")
    for kind, session in ranked(sessions):
        found.command(kind, f"{prefix}nox -s {session}", sessions[session])
