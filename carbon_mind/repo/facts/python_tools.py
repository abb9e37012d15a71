"""How this project calls a Python tool: through which environment manager, and with which dependency group."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, directory, join, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import strings, table, word
from carbon_mind.values import CommandKind

LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

MAX_GROUPS = 40

TOOLS: dict[str, tuple[tuple[CommandKind, str], ...]] = {
    "pytest": (("test", "pytest"), ("test-one", "pytest path/to/test.py::name")),
    "ruff": (("lint", "ruff check"),),
    "ruff-format": (("format", "ruff format"),),
    "black": (("format", "black ."),),
    "flake8": (("lint", "flake8"),),
    "mypy": (("typecheck", "mypy"),),
    "pyright": (("typecheck", "pyright"),),
    "basedpyright": (("typecheck", "basedpyright"),),
}


def add_tool(found: Found, context: Context, tool: str, line: int, path: str = "", arguments: str = "") -> None:
    """Add the commands of a tool whose use the given line shows."""
    prefix = runner(context, found.path, "ruff" if tool == "ruff-format" else tool)
    for kind, command in TOOLS[tool]:
        found.command(kind, f"{prefix}{command}{arguments}", line, path)


def manager(context: Context, path: str) -> tuple[str, str]:
    """(manager, lock file) by the nearest lock file, or ("", "")."""
    lock = context.nearest(path, *LOCKS)
    return (LOCKS[lock.rpartition("/")[2]], lock) if lock is not None else ("", "")


def runner(context: Context, path: str, tool: str) -> str:
    """What stands before `tool`, with a blank: "" without a lock file, "uv run --group test " and the like with one.

    A tool that the project does not declare is not in its environment, so it gets no prefix.
    """
    name, _ = manager(context, path)
    project = context.nearest(path, "pyproject.toml")
    if not name or project is None:
        return f"{name} run " if name == "pipenv" else ""
    document = context.toml(project)
    option = _group(document, tool)
    if option is None:
        return ""
    return f"uv run {option}" if name == "uv" else f"{name} run "


def _group(document: dict[str, object], tool: str) -> str | None:
    """uv's option that brings the tool, "" when it is there anyway, None when nothing declares it."""
    always = strings(table(document, "project").get("dependencies"))
    always += strings(table(document, "tool", "uv").get("dev-dependencies"))
    always += list(table(document, "tool", "poetry", "dependencies"))
    always += list(table(document, "tool", "poetry", "dev-dependencies"))
    for group in table(document, "tool", "poetry", "group").values():
        always += list(table(group, "dependencies"))
    for group in table(document, "tool", "pdm", "dev-dependencies").values():
        always += strings(group)
    if _declares(always, tool):
        return ""
    defaults = table(document, "tool", "uv").get("default-groups", ["dev"])
    groups = groups_of(document)
    having = [group for group, members in groups.items() if _declares(members, tool)]
    if defaults == "all" and having:
        return ""
    if set(strings(defaults)) & set(having):
        return ""
    for group in having:
        if word(group):
            return f"--group {group} "
    for extra, members in table(document, "project", "optional-dependencies").items():
        if word(extra) and _declares(strings(members), tool):
            return f"--extra {extra} "
    return None


def groups_of(document: dict[str, object]) -> dict[str, list[str]]:
    """[dependency-groups] with `include-group` followed, in the file's order."""
    raw = table(document, "dependency-groups")

    def members(name: str) -> list[str]:
        found: list[str] = []
        waiting = [name]
        for group in waiting:  # grows while it is walked
            items = raw.get(group)
            for item in items if isinstance(items, list) else []:
                inner = table(item).get("include-group")
                if isinstance(item, str):
                    found.append(item)
                elif isinstance(inner, str) and inner not in waiting and len(waiting) < MAX_GROUPS:
                    waiting.append(inner)
        return found

    return {name: members(name) for name in list(raw)[:MAX_GROUPS]}


def requirement_name(requirement: str) -> str:
    """`pytest-cov>=4; python_version > "3"` -> `pytest-cov`, normalised."""
    match = _NAME.match(requirement.strip())
    return match.group().lower().replace("_", "-").replace(".", "-") if match else ""


def _declares(requirements: list[str], tool: str) -> bool:
    return any(requirement_name(requirement) == tool for requirement in requirements)


def check_target(context: Context, path: str) -> str:
    """What a type checker without configured files should look at: ` src`, the only package, or ` .`."""
    here = directory(path)
    packages = [
        p[len(here) + 1 if here else 0 :].split("/")[0]
        for p in context.below(here)
        if p.endswith("/__init__.py") and p.count("/") == (here.count("/") + 2 if here else 1) and ours(p, tests=False)
    ]
    if any(p.endswith(".py") for p in context.below(join(here, "src"))):
        return " src"
    return f" {packages[0]}" if len(packages) == 1 and word(packages[0]) else " ."
