"""The files that make the package agree with each other; building and trying the wheel is `make wheel`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import carbon_mind

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LINES = [
    line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


def requirements() -> list[Requirement]:
    groups = [PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def test_constraints_are_exact_versions_in_order() -> None:
    for line in LINES:
        assert re.fullmatch(r'[a-z0-9-]+==[0-9][0-9a-z.]*( ; sys_platform == "[a-z0-9]+")?', line), line
    names = [line.partition("==")[0] for line in LINES]
    assert len(set(names)) == len(names)
    assert sorted(LINES) == LINES


def test_every_requirement_is_pinned_within_its_range() -> None:
    pins = {line.partition("==")[0]: line.partition("==")[2].partition(" ")[0] for line in LINES}
    for requirement in requirements():
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in constraints.txt: make constraints"
        assert requirement.specifier.contains(pins[name]), f"{requirement} does not allow {pins[name]}"


def test_what_a_user_installs_has_an_upper_bound() -> None:
    users = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    assert users
    for requirement in users:
        assert {clause.operator for clause in requirement.specifier} == {">=", "<"}, str(requirement)


def test_the_version_has_one_source() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", carbon_mind.__version__)


def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o100
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
    assert "make test" in script.read_text(encoding="utf-8")
