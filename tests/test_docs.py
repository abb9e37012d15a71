"""Documents that can drift are held to the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from carbon_mind import errors
from carbon_mind.cli.app import app
from carbon_mind.settings import REPOSITORY_KEYS, Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def all_errors() -> list[type[errors.CarbonError]]:
    return [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, errors.CarbonError)]


def test_every_command_is_in_the_readme() -> None:
    names = [
        f"carbon {command.name or command.callback.__name__}" for command in app.registered_commands if command.callback
    ]
    assert "carbon warm" in names
    for name in names:
        assert f"`{name}" in README, name
    for group in app.registered_groups:
        assert group.typer_instance is not None
        assert f"`carbon {group.name}" in README, group.name
        for command in group.typer_instance.registered_commands:
            if not command.hidden:
                assert f"`{command.name}" in README or f"carbon {group.name} {command.name}" in README, command.name


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime = [*project["dependencies"], *project["optional-dependencies"]["llama"]]
    for requirement in runtime:
        name = re.split(r"[<>=]", requirement)[0]
        shown = "tree-sitter" if name.startswith("tree-sitter") else name
        assert re.search(rf"^\| [^|]*\b{shown}\b", README, re.MULTILINE), name


def test_every_exit_code_is_documented() -> None:
    codes = {error.exit_code for error in all_errors()}
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert codes | {0, 130} == documented


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    drawn = dict(re.findall(r"(?:\|- |`- )(\w+) +\d+ +([\w-]+)", errors.__doc__ or ""))
    assert drawn == {error.__name__: error.code for error in all_errors() if error is not errors.CarbonError}
    assert len(set(drawn.values())) == len(drawn), "codes are unique"


def test_settings_that_a_repository_may_set_exist() -> None:
    assert {field.name for field in msgspec.structs.fields(Settings)} >= REPOSITORY_KEYS
    for key in REPOSITORY_KEYS:
        assert f"`{key}`" in README or key in README


def test_the_newest_version_is_in_the_changelog() -> None:
    from carbon_mind import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
