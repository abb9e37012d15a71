from __future__ import annotations

import pytest

from .helpers import Command, Constraint, EntryPoint, ProjectFacts, commands, constraints, entries, facts_of

PYPROJECT = """\
[project]
name = "shop"
requires-python = ">=3.11"
dependencies = ["flask>=3"]

[project.scripts]
shop = "shop.cli:main"
"bad name" = "shop.cli:main"

[dependency-groups]
dev = ["ruff", {include-group = "types"}]
types = ["mypy"]
test = ["pytest>=8"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.pytest.ini_options]
addopts = "-q"

[tool.ruff.format]
quote-style = "double"

[tool.mypy]
strict = true

[tool.black]
"""


def test_everything_of_one_project() -> None:
    files = {"pyproject.toml": PYPROJECT, "uv.lock": "", "src/shop/__init__.py": "", "src/shop/__main__.py": ""}
    assert facts_of(files) == ProjectFacts(
        name="shop",
        commands=(
            Command("build", "uv build", "pyproject.toml:17"),
            Command("test", "uv run --group test pytest", "pyproject.toml:19"),
            Command("test-one", "uv run --group test pytest path/to/test.py::name", "pyproject.toml:19"),
            Command("lint", "uv run ruff check", "pyproject.toml:22"),
            Command("format", "uv run ruff format", "pyproject.toml:22"),
            Command("format", "black .", "pyproject.toml:28"),
            Command("typecheck", "uv run mypy src", "pyproject.toml:25"),
            Command("run", "uv run python -m shop", "src/shop/__main__.py"),
        ),
        constraints=(
            Constraint("Python >=3.11", "pyproject.toml:3"),
            Constraint("environment manager: uv", "uv.lock"),
            Constraint("build backend: hatchling.build", "pyproject.toml:17"),
        ),
        entry_points=(EntryPoint("shop", "shop.cli:main", "pyproject.toml:7"),),
        frameworks=("flask", "mypy", "pytest", "ruff"),
    )


def test_without_evidence_of_pytest_there_is_no_test_command() -> None:
    assert commands({"pyproject.toml": '[project]\nname = "x"\n', "tests/test_a.py": "def test_a(): pass\n"}) == []


def test_pytest_by_dependency_shows_its_line() -> None:
    text = '[project]\nname = "x"\n[project.optional-dependencies]\ntest = [\n  "pytest-cov",\n  "pytest>=7",\n]\n'
    assert commands({"pyproject.toml": text}) == []  # nothing that it would test
    assert commands({"pyproject.toml": text, "tests/test_a.py": ""}) == [
        ("test", "pytest", "pyproject.toml:6"),
        ("test-one", "pytest path/to/test.py::name", "pyproject.toml:6"),
    ]
    assert commands({"pyproject.toml": text, "tests/test_a.py": "", "uv.lock": ""})[0] == (
        "test",
        "uv run --extra test pytest",
        "pyproject.toml:6",
    )


@pytest.mark.parametrize(("lock", "prefix"), [("poetry.lock", "poetry run "), ("pdm.lock", "pdm run "), ("x", "")])
def test_prefix_by_lock_file(lock: str, prefix: str) -> None:
    text = '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'
    assert commands({"pyproject.toml": text, "test_a.py": "", lock: ""})[0] == (
        "test",
        f"{prefix}pytest",
        "pyproject.toml:2",
    )


def test_task_tables() -> None:
    text = (
        '[tool.poe.tasks]\ntest = "x"\n[tool.pdm.scripts]\nlint = "y"\n'
        '[tool.hatch.envs.types.scripts]\ncheck = "mypy"\ntypecheck = "mypy"\n'
    )
    assert commands({"pyproject.toml": text}) == [
        ("test", "poe test", "pyproject.toml:2"),
        ("lint", "pdm run lint", "pyproject.toml:4"),
        ("typecheck", "hatch run types:typecheck", "pyproject.toml:7"),
        ("typecheck", "hatch run types:check", "pyproject.toml:6"),
    ]


def test_tox_ini_and_nox() -> None:
    files = {
        "tox.ini": (
            "[tox]\nenv_list = py311\n[testenv]\ndeps = pytest\ncommands =\n  pytest {posargs}\n"
            "[testenv:lint]\ncommands = x\n[testenv:docs]\n[flake8]\n"
        ),
        "noxfile.py": (
            "import nox\n@nox.session(\n    python=['3.11'],\n)\ndef tests(session):\n    pass\n"
            "@nox.session(name='type-check')\n@nox.parametrize('a', [1])\ndef whatever(session): ...\n"
            "def lint(session): ...\n"
        ),
    }
    assert commands(files) == [
        ("test", "tox -e py", "tox.ini:5"),
        ("test", "nox -s tests", "noxfile.py:5"),
        ("test-one", "tox -e py -- path/to/test.py::name", "tox.ini:5"),
        ("lint", "tox -e lint", "tox.ini:7"),
        ("lint", "flake8", "tox.ini:10"),
        ("typecheck", "nox -s type-check", "noxfile.py:9"),
    ]


def test_tox_in_pyproject() -> None:
    text = '[tool.tox.env_run_base]\ncommands = [["python", "-m", "unittest"]]\n[tool.tox.env.style]\nskip = 1\n'
    assert commands({"pyproject.toml": text}) == [
        ("test", "tox -e py", "pyproject.toml:2"),
        ("lint", "tox -e style", "pyproject.toml:3"),
    ]


def test_setup_files() -> None:
    files = {
        "setup.cfg": (
            "[options]\npython_requires = >=3.8\n[options.entry_points]\nconsole_scripts =\n    one = a.b:c\n"
            "    two = a.d:e [extra]\n[tool:pytest]\n[mypy]\n"
        ),
        "setup.py": 'setup(\n  python_requires=">=3.9",\n  entry_points={"console_scripts": ["three=a.f:g"]},\n)\n',
        "manage.py": "\nexecute_from_command_line(sys.argv)\n",
        "pkg/__init__.py": "",
    }
    assert entries(files) == [
        ("one", "a.b:c", "setup.cfg:5"),
        ("two", "a.d:e", "setup.cfg:6"),
        ("three", "a.f:g", "setup.py:3"),
        ("manage.py", "manage.py", "manage.py:2"),
    ]
    assert constraints(files) == [("Python >=3.8", "setup.cfg:2"), ("Python >=3.9", "setup.py:2")]
    assert commands(files) == [
        ("test", "pytest", "setup.cfg:7"),
        ("test", "python manage.py test", "manage.py:2"),
        ("test-one", "pytest path/to/test.py::name", "setup.cfg:7"),
        ("test-one", "python manage.py test app.tests.Class.name", "manage.py:2"),
        ("typecheck", "mypy pkg", "setup.cfg:8"),
        ("run", "python manage.py runserver", "manage.py:2"),
    ]


def test_files_of_single_tools() -> None:
    files = {
        "pytest.ini": "[pytest]\n",
        "ruff.toml": "",
        "pyrightconfig.json": "{}",
        ".flake8": "",
        "mypy.ini": "[mypy]\nfiles = a\n",
    }
    assert commands(files) == [
        ("test", "pytest", "pytest.ini"),
        ("test-one", "pytest path/to/test.py::name", "pytest.ini"),
        ("lint", "ruff check", "ruff.toml"),
        ("lint", "flake8", ".flake8"),
        ("typecheck", "mypy", "mypy.ini"),
        ("typecheck", "pyright", "pyrightconfig.json"),
    ]


def test_dependency_groups_that_include_each_other_end() -> None:
    groups = "".join(
        f"g{i} = [" + ", ".join(f'{{include-group = "g{j}"}}' for j in range(30)) + ', "pytest"]\n' for i in range(30)
    )
    text = f"[dependency-groups]\n{groups}[tool.pytest]\n"
    assert commands({"pyproject.toml": text, "uv.lock": ""})[0][:2] == (
        "test",
        "uv run --group g0 pytest",
    )


def test_pre_commit() -> None:
    files = {
        ".pre-commit-config.yaml": "# c\nrepos:\n- repo: x\n  hooks:\n  - id: ruff-format\n  - id: black\n",
        "pyproject.toml": '[dependency-groups]\ndev = ["pre-commit", "ruff"]\n',
        "uv.lock": "",
    }
    assert commands(files) == [
        ("lint", "uv run pre-commit run --all-files", ".pre-commit-config.yaml:2"),
        ("format", "uv run ruff format", ".pre-commit-config.yaml:5"),
        ("format", "black .", ".pre-commit-config.yaml:6"),
    ]


def test_hatch_with_its_own_environments_and_file() -> None:
    text = (
        '[envs.hatch-test]\nextra-dependencies = ["x"]\n[envs.hatch-static-analysis]\nconfig-path = "r.toml"\n'
        '[envs.types.scripts]\ncheck = "mypy src"\n[envs.docs.scripts]\nbuild = "mkdocs build"\n'
    )
    assert commands({"hatch.toml": text}) == [
        ("test", "hatch test", "hatch.toml:1"),
        ("test-one", "hatch test path/to/test.py::name", "hatch.toml:1"),
        ("lint", "hatch fmt --check", "hatch.toml:3"),
        ("format", "hatch fmt", "hatch.toml:3"),
        ("typecheck", "hatch run types:check", "hatch.toml:6"),
    ]


def test_tox_ini_inside_pyproject() -> None:
    text = (
        '[tool.tox]\nlegacy_tox_ini = """\n[tox]\nenvlist = py\n[testenv]\ncommands =\n    pytest {posargs}\n'
        '[testenv:lint]\n"""\n'
    )
    assert commands({"pyproject.toml": text}) == [
        ("test", "tox -e py", "pyproject.toml:6"),
        ("test-one", "tox -e py -- path/to/test.py::name", "pyproject.toml:6"),
        ("lint", "tox -e lint", "pyproject.toml:8"),
    ]


def test_pytest_in_a_group_for_something_else_is_no_evidence() -> None:
    text = '[dependency-groups]\nlsp-test = ["pytest"]\n'
    assert commands({"pyproject.toml": text, "test_a.py": ""}) == []
