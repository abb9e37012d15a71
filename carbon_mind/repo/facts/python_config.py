"""Python settings outside pyproject.toml: setup.cfg, setup.py, tool files of their own, packages that can be run."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.python_tools import add_tool, check_target, manager
from carbon_mind.repo.facts.text import numbered, parse_ini, target, version, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=(
        "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini",
        "pyrightconfig.json", ".flake8", "manage.py", "__main__.py",
    ),
    limit=16,
)  # fmt: skip

_TOOL_OF_FILE = {
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "ruff.toml": "ruff",
    ".ruff.toml": "ruff",
    "mypy.ini": "mypy",
    ".mypy.ini": "mypy",
    "pyrightconfig.json": "pyright",
    ".flake8": "flake8",
}
_TOOL_OF_SECTION = {"tool:pytest": "pytest", "flake8": "flake8", "mypy": "mypy"}
_SCRIPT = re.compile(r"""["']\s*([\w.-]+)\s*=\s*([\w.]+:[\w.]+)""")
_PYTHON = re.compile(r"""python_requires\s*=\s*["']([^"']{1,60})["']""")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one such file."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name in _TOOL_OF_FILE:
        _tool(found, context, _TOOL_OF_FILE[name], 0, text)
    elif name == "setup.cfg":
        _setup_cfg(found, context, text)
    elif name == "setup.py":
        _setup_py(found, text)
    elif name == "manage.py":
        _manage(found, text)
    else:
        _main_package(found, context)
    return found.done()


def _tool(found: Found, context: Context, tool: str, line: int, text: str) -> None:
    # mypy refuses to start without a target, and its own file may name one.
    named = tool == "mypy" and not {"files", "packages", "modules"} & set(parse_ini(text).get("mypy", {}))
    add_tool(found, context, tool, line, arguments=check_target(context, found.path) if named else "")


def _setup_cfg(found: Found, context: Context, text: str) -> None:
    sections = parse_ini(text)
    for section, tool in _TOOL_OF_SECTION.items():
        if section in sections:
            _tool(found, context, tool, sections[section][""][0], text)
    line, spec = sections.get("options", {}).get("python_requires", (0, ""))
    if version(spec):
        found.constraint(f"Python {version(spec)}", line, where=True)
    line, scripts = sections.get("options.entry_points", {}).get("console_scripts", (0, ""))
    for offset, row in enumerate(scripts.split("\n")):
        name, _, place = row.partition("=")
        if word(name.strip()) and target(place.strip()):
            found.entry(name.strip(), target(place.strip()), line + offset)


def _setup_py(found: Found, text: str) -> None:
    inside = 0
    for number, row in numbered(text):
        if match := _PYTHON.search(row):
            spec = version(match.group(1))
            if spec:
                found.constraint(f"Python {spec}", number, where=True)
        if "console_scripts" in row:
            inside = 30
        if inside:
            inside -= 1
            for match in _SCRIPT.finditer(row):
                if word(match.group(1)) and target(match.group(2)):
                    found.entry(match.group(1), target(match.group(2)), number)
            if "]" in row:
                inside = 0


def _manage(found: Found, text: str) -> None:
    line = next((number for number, row in numbered(text) if "execute_from_command_line" in row), 0)
    if line:
        found.command("test", "python manage.py test", line)
        found.command("test-one", "python manage.py test app.tests.Class.name", line)
        found.command("run", "python manage.py runserver", line)
        found.entry("manage.py", found.path, line)


def _main_package(found: Found, context: Context) -> None:
    """`pkg/__main__.py` or `src/pkg/__main__.py` of a top package."""
    parent, _, package = found.directory.rpartition("/")
    if parent not in {"", "src"} or not word(package) or not context.has(f"{found.directory}/__init__.py"):
        return
    name, _ = manager(context, directory(found.directory))
    prefix = f"{name} run " if name else ""
    found.command("run", f"{prefix}python -m {package}", here=False)
    found.entry(f"python -m {package}", found.path)
