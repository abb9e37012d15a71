"""pyproject.toml: scripts, the Python version, the build backend, the environment manager, tool tables, task tables."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import kind_of, ranked
from carbon_mind.repo.facts.packages import members, summary
from carbon_mind.repo.facts.python_tools import (
    add_tool,
    check_target,
    groups_of,
    manager,
    requirement_name,
    runner,
)
from carbon_mind.repo.facts.text import first_line, strings, table, target, toml_line, version, word, words
from carbon_mind.values import CommandKind, ProjectFacts, RepoPath

WANTS = Wants(names=("hatch.toml", "pyproject.toml"), limit=8)

FRAMEWORKS = words(
    "django djangorestframework flask fastapi starlette aiohttp tornado sanic litestar celery sqlalchemy alembic "
    "pydantic click typer rich httpx requests jinja2 werkzeug numpy scipy pandas polars scikit-learn torch "
    "tensorflow jax transformers langchain streamlit gradio pytest hypothesis tox nox mypy pyright ruff pybind11 "
    "nanobind cython scrapy twisted trio anyio pyqt6 pyside6 boto3 grpcio protobuf msgspec attrs"
)
MAX_SCRIPTS = 24
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py\Z")
_BACKEND = re.compile(r"[A-Za-z_][\w.:-]{0,60}\Z")
# Task tables: (keys of the table, what runs a task of it).
_TASKS = (
    (("tool", "pdm", "scripts"), "pdm run"),
    (("tool", "poe", "tasks"), "poe"),
    (("tool", "taskipy", "tasks"), "task"),
)
# hatch's own environments, which a project's settings change: environment -> what hatch runs in it.
_HATCH: dict[str, tuple[tuple[CommandKind, str], ...]] = {
    "hatch-test": (("test", "hatch test"), ("test-one", "hatch test path/to/test.py::name")),
    "hatch-static-analysis": (("lint", "hatch fmt --check"), ("format", "hatch fmt")),
}
_ASIDE = words("docs doc coverage")
# Groups whose pytest tests this project; one of another name may serve a tool that is tested elsewhere.
_FOR_TESTS = words("dev develop development test tests testing unittest pytest unit ci all check checks qa tox nox")
_SPEAKS_FOR_ALL = words("check all run")  # scripts whose environment tells what they are for


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one pyproject.toml or hatch.toml."""
    found = Found(path)
    document = context.toml(path)
    if path.endswith("hatch.toml"):
        _hatch(found, document, text, ("envs",))
        return found.done()
    _versions(found, document, text, context)
    _workspace(found, document, text, context)
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
        if not found.directory:
            found.constraint(f"build backend: {backend}", line)
        if not table(document, "tool", "uv").get("package", True):
            return
        own = {"uv": "uv build", "poetry": "poetry build", "pdm": "pdm build"}
        found.command("build", own.get(name, "python -m pip install -e ."), line)


def _workspace(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    globs = strings(table(document, "tool", "uv", "workspace").get("members"))
    packages = [
        (str(table(context.toml(path), "project").get("name", "")), directory(path)[len(found.directory) :].lstrip("/"))
        for path in members(globs, found.directory, "pyproject.toml", context)
    ]
    if shown := summary([(name, place) for name, place in packages if word(name)], 138):
        line = toml_line(text, "tool", "uv", "workspace", "members")
        found.constraint(f"workspace packages: {shown}", line, where=True)


def _tasks(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    for keys, call in _TASKS:
        prefix = "" if call.startswith("pdm") else runner(context, found.path, keys[1].replace("poe", "poethepoet"))
        for kind, name in ranked(filter(word, table(document, *keys))):
            found.command(kind, f"{prefix}{call} {name}", toml_line(text, *keys, name))
    _hatch(found, document, text, ("tool", "hatch", "envs"))


def _hatch(found: Found, document: dict[str, object], text: str, keys: tuple[str, ...]) -> None:
    """Scripts of hatch's environments, and its own commands for the environments that it brings along."""
    environments = dict(list(table(document, *keys).items())[:MAX_SCRIPTS])
    for name, commands in _HATCH.items():
        for kind, command in commands if name in environments else ():
            found.command(kind, command, toml_line(text, *keys, name))
    for environment, settings in environments.items():
        if not word(environment) or environment in _HATCH or environment in _ASIDE:
            continue
        where = "" if environment == "default" else f"{environment}:"
        scripts = list(filter(word, table(settings, "scripts")))
        for kind, name in ranked(scripts):
            purpose = kind_of(environment) if name in _SPEAKS_FOR_ALL else None
            line = toml_line(text, *keys, environment, "scripts", name)
            found.command(purpose or kind, f"hatch run {where}{name}", line)


def _tools(found: Found, document: dict[str, object], text: str, context: Context) -> None:
    tools = table(document, "tool")
    if "pytest" in tools:
        add_tool(found, context, "pytest", toml_line(text, "tool", "pytest"))
    elif "pytest" in _dependencies(document, _FOR_TESTS) and _has_tests(context, found.path):
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


def _has_tests(context: Context, path: str) -> bool:
    """Whether a test file belongs to this project: a dependency alone may serve something else."""
    return any(
        _TEST_FILE.search(file) and ours(file) and context.nearest(file, "pyproject.toml") == path
        for file in context.below(directory(path))
    )


def _dependencies(document: dict[str, object], only: frozenset[str] = frozenset()) -> list[str]:
    """Names of what the project depends on, in the groups `only` or in all."""
    requirements = strings(table(document, "project").get("dependencies"))
    requirements += strings(table(document, "tool", "uv").get("dev-dependencies"))
    poetry = table(document, "tool", "poetry")
    requirements += [*table(poetry, "dependencies"), *table(poetry, "dev-dependencies")]
    groups: list[tuple[str, list[str]]] = list(groups_of(document).items())
    for tables in (
        table(document, "project", "optional-dependencies"),
        table(document, "tool", "pdm", "dev-dependencies"),
    ):
        groups += [(name, strings(inner)) for name, inner in tables.items()]
    groups += [(name, list(table(group, "dependencies"))) for name, group in table(poetry, "group").items()]
    for name, inner in groups:
        if not only or name.lower() in only:
            requirements += inner
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
