"""pyproject.toml: scripts, the Python version, the build backend, the environment manager, tool tables, task tables."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.python_tools import (
    add_tool,
    check_target,
    groups_of,
    manager,
    requirement_name,
    runner,
)
from carbon_mind.repo.facts.text import first_line, strings, table, target, toml_line, version, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("pyproject.toml",), limit=8)

FRAMEWORKS = words(
    "django djangorestframework flask fastapi starlette aiohttp tornado sanic litestar celery sqlalchemy alembic "
    "pydantic click typer rich httpx requests jinja2 werkzeug numpy scipy pandas polars scikit-learn torch "
    "tensorflow jax transformers langchain streamlit gradio pytest hypothesis tox nox mypy pyright ruff pybind11 "
    "nanobind cython scrapy twisted trio anyio pyqt6 pyside6 boto3 grpcio protobuf msgspec attrs"
)
MAX_SCRIPTS = 24
_BACKEND = re.compile(r"[A-Za-z_][\w.:-]{0,60}\Z")
# Task tables: (keys of the table, what runs a task of it).
_TASKS = (
    (("tool", "pdm", "scripts"), "pdm run"),
    (("tool", "poe", "tasks"), "poe"),
    (("tool", "taskipy", "tasks"), "task"),
)


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one pyproject.toml."""
    found = Found(path)
    document = context.toml(path)
    _versions(found, document, text, context)
    _tasks(found, document, text, context)
    _tools(found, document, text, context)
    _scripts(found, document, text)
    _frameworks(found, document)
    return found.done()


def _versions(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    project = table(document, "project")
    poetry = table(document, "tool", "poetry", "dependencies")
    if spec := version(project.get("requires-python")):
        found.constraint(f"Python {spec}", toml_line(text, "project", "requires-python"), where=True)
    elif spec := version(poetry.get("python")):
        found.constraint(f"Python {spec}", toml_line(text, "tool", "poetry", "dependencies", "python"), where=True)
    name, lock = manager(context, found.path)
    if name and directory(lock) == found.directory:
        found.constraint(f"environment manager: {name}", 0, lock, where=True)
    backend = table(document, "build-system").get("build-backend")
    if isinstance(backend, str) and _BACKEND.match(backend):
        line = toml_line(text, "build-system", "build-backend")
        found.constraint(f"build backend: {backend}", line, where=True)
        if not table(document, "tool", "uv").get("package", True):
            return
        own = {"uv": "uv build", "poetry": "poetry build", "pdm": "pdm build"}
        found.command("build", own.get(name, "python -m pip install -e ."), line)


def _tasks(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    for keys, call in _TASKS:
        prefix = "" if call.startswith("pdm") else runner(context, found.path, keys[1].replace("poe", "poethepoet"))
        for kind, name in ranked(filter(word, table(document, *keys))):
            found.command(kind, f"{prefix}{call} {name}", toml_line(text, *keys, name))
    for environment, settings in list(table(document, "tool", "hatch", "envs").items())[:MAX_SCRIPTS]:
        if not word(environment):
            continue
        where = "" if environment == "default" else f"{environment}:"
        for kind, name in ranked(filter(word, table(settings, "scripts"))):
            line = toml_line(text, "tool", "hatch", "envs", environment, "scripts", name)
            found.command(kind, f"hatch run {where}{name}", line)


def _tools(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    tools = table(document, "tool")
    if "pytest" in tools:
        add_tool(found, context, "pytest", toml_line(text, "tool", "pytest"))
    elif _depends_on(document, "pytest"):
        add_tool(found, context, "pytest", first_line(text, re.compile(r"""["']?\bpytest\b["']?\s*[=<>~!;,"'\[\]]""")))
    if "ruff" in tools:
        add_tool(found, context, "ruff", toml_line(text, "tool", "ruff"))
        if "format" in table(tools, "ruff"):
            add_tool(found, context, "ruff-format", toml_line(text, "tool", "ruff", "format"))
    if "black" in tools:
        add_tool(found, context, "black", toml_line(text, "tool", "black"))
    if "mypy" in tools:
        configured = {"files", "packages", "modules"} & set(table(tools, "mypy"))
        rest = "" if configured else check_target(context, found.path)
        add_tool(found, context, "mypy", toml_line(text, "tool", "mypy"), arguments=rest)
    for checker in ("pyright", "basedpyright"):
        if checker in tools:
            add_tool(found, context, checker, toml_line(text, "tool", checker))


def _depends_on(document: dict[str, object], name: str) -> bool:
    return name in _dependencies(document)


def _dependencies(document: dict[str, object]) -> list[str]:
    requirements = strings(table(document, "project").get("dependencies"))
    for members in table(document, "project", "optional-dependencies").values():
        requirements += strings(members)
    for members in groups_of(document).values():
        requirements += members
    requirements += strings(table(document, "tool", "uv").get("dev-dependencies"))
    poetry = table(document, "tool", "poetry")
    requirements += [*table(poetry, "dependencies"), *table(poetry, "dev-dependencies")]
    for group in table(poetry, "group").values():
        requirements += table(group, "dependencies")
    return [requirement_name(requirement) for requirement in requirements]


def _scripts(found: Found, document: dict[str, object], text: str) -> None:
    for keys in (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts")):
        for name, value in list(table(document, *keys).items())[:MAX_SCRIPTS]:
            if word(name) and (place := target(value)):
                found.entry(name, place, toml_line(text, *keys, name))


def _frameworks(found: Found, document: dict[str, object]) -> None:
    for name in _dependencies(document):
        if name in FRAMEWORKS:
            found.framework(name)
