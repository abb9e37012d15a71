"""What stays when manifests say the same thing in several ways."""

from __future__ import annotations

from .helpers import commands, constraints, entries


def test_two_commands_of_a_kind() -> None:
    files = {
        "Makefile": "test:\n\ttrue\n",
        "go.mod": "module x\n",
        "a_test.go": "",
        "package.json": '{"scripts": {"test": "x"}}',
    }
    assert [command for kind, command, _ in commands(files) if kind == "test"] == ["make test", "npm run test"]


def test_tox_adds_nothing_beside_a_tool_that_brings_its_environment() -> None:
    files = {
        "pyproject.toml": '[dependency-groups]\ndev = ["tox", "pytest"]\n[tool.pytest.ini_options]\n[tool.ruff]\n',
        "tox.ini": "[testenv]\ncommands = pytest {posargs}\n[testenv:lint]\n[testenv:typing]\n",
        "uv.lock": "",
    }
    assert [command for _, command, _ in commands(files)] == [
        "uv run pytest",
        "uv run pytest path/to/test.py::name",
        "ruff check",
        "uv run tox -e lint",
        "uv run tox -e typing",
    ]
    del files["uv.lock"]
    assert [command for kind, command, _ in commands(files) if kind == "test"] == ["pytest", "tox -e py"]


def test_a_format_check_adds_nothing_beside_the_formatter() -> None:
    files = {"package.json": '{"scripts": {"lint": "eslint .", "format-check": "p --check", "format": "p --write"}}'}
    assert [command for _, command, _ in commands(files)] == ["npm run lint", "npm run format"]


def test_nested_manifests_add_tests_of_another_ecosystem_and_kinds_that_the_root_lacks() -> None:
    files = {
        "go.mod": "module x\n",
        "a_test.go": "",
        "web/package.json": '{"scripts": {"build": "b", "test": "t", "lint": "l"}}',
        "docs/package.json": '{"scripts": {"dev": "d"}, "engines": {"node": ">=20"}}',
    }
    assert [command for _, command, _ in commands(files)] == [
        "go build ./...",
        "go test ./...",
        "cd web && npm run test",
        "go test ./path/to/package -run '^TestName$'",
        "cd web && npm run lint",
    ]
    assert constraints(files) == []


def test_what_only_measures_shows_or_tests_is_no_entry_point() -> None:
    manifest = '[package]\nname = "{}"\n'
    files = {f"{place}/Cargo.toml": manifest.format(place) for place in ("fuzz", "benches", "xtask", "app")}
    files |= {f"{place}/src/main.rs": "" for place in ("fuzz", "benches", "xtask", "app")}
    assert entries(files) == [("app", "app/src/main.rs", "app/Cargo.toml:2")]


def test_few_versions_of_one_runtime_from_nested_manifests() -> None:
    files = {f"svc{number}/.python-version": f"3.1{number}\n" for number in range(4)}
    assert [text for text, _ in constraints(files)] == ["Python 3.10 (in svc0/)", "Python 3.11 (in svc1/)"]
