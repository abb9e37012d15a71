from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.facts.project import ECOSYSTEMS, project_facts
from carbon_mind.repo.facts.text import MAX_FACT, clean, json_lines, lines, toml_line, version
from carbon_mind.values import RepoPath

from .helpers import commands, facts_of

if TYPE_CHECKING:
    from carbon_mind.values import ProjectFacts

# Every name that some ecosystem reads, at the root, nested, and where pipelines live.
NAMES = sorted({name for ecosystem in ECOSYSTEMS.values() for name in ecosystem.WANTS.names})
NAMES += [
    "X.sln",
    "X.csproj",
    "uv.lock",
    "yarn.lock",
    "Gemfile.lock",
    "src/main.rs",
    "cmd/a/main.go",
    "pnpm-workspace.yaml",
]
PATHS = [*NAMES, *(f"a b/{name}" for name in NAMES), ".github/workflows/ci.yml", "pkg/__init__.py", "pkg/__main__.py"]

# Pieces that get a random text past the first lines of each reader.
PIECES = (
    "[project]\n",
    "[tool.tox.env.x]\n",
    "[testenv:a]\n",
    "scripts = ",
    '{"scripts": {"test": "jest"}',
    "}",
    "]",
    "test:",
    "\n",
    "\t",
    "run: |\n",
    "- run: make",
    "jobs:\n",
    "on: push\n",
    "tasks:\n",
    "@nox.session",
    "def x(",
    "module x\n",
    "project(x)\n",
    "<project>",
    "[workspace]\n",
    "[[bin]]\n",
    '"',
    "'",
    "\\",
    "$(MAKE) -C a $@",
    ".DEFAULT:\n",
    "FROM a",
    "=",
    ",",
    ":",
    "[",
    "{",
    '[package]\nname = "a"\n',
    "repos:\n",
    "\x00",
    "\u202e",
    "\ud800",
    "\r\n",
    "1.2",
    " ",
    "#",
    "include ':a'\n",
    "gem 'rails'\n",
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


def bounded(facts: ProjectFacts) -> bool:
    texts = [c.command for c in facts.commands] + [c.text for c in facts.constraints]
    texts += [part for entry in facts.entry_points for part in (entry.name, entry.target)]
    kinds = Counter(command.kind for command in facts.commands)
    unique = len({command.command for command in facts.commands}) == len(facts.commands)
    one_line = all(text and len(text) <= MAX_FACT and clean(text) == text for text in texts)
    sizes = len(facts.constraints) <= 40 and len(facts.entry_points) <= 16 and len(facts.frameworks) <= 24
    return unique and one_line and sizes and all(count <= 2 for count in kinds.values())


@pytest.mark.parametrize("name", sorted(ECOSYSTEMS))
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
def test_no_text_makes_an_ecosystem_raise(name: str, texts: list[str]) -> None:
    ecosystem = ECOSYSTEMS[name]
    files = {path: texts[index % len(texts)] for index, path in enumerate(PATHS)}
    context = Context([RepoPath(path) for path in files], files.get)
    for path in context.choose(ecosystem.WANTS) or [RepoPath("")]:
        ecosystem.facts(path, context.text(path) or "", context)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_whatever_comes_out_is_bounded_and_one_line(texts: list[str]) -> None:
    assert bounded(facts_of({path: texts[index % len(texts)] for index, path in enumerate(PATHS)}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{",
        '{"scripts": []}',
        '{"scripts": {"test": 1}}',
        "[" * 5000,
        '{"a":' * 5000,
        "a" * 600_000,
        "\ufeff{}",
        "[project]\nscripts = 3\n",
        '[project]\nscripts = ["a"]\n',
        "[tool]\npytest = 1\nruff = 2\nmypy = []\n",
        "x = 1" + "0" * 5000,
        "[workspace]\nmembers = 3\n[package]\nname = 3\n",
        "[dependency-groups]\na = 3\nb = [{include-group = 3}]\n",
    ],
)
def test_malformed_manifests_give_nothing_and_no_error(text: str) -> None:
    for path in ("package.json", "composer.json", "CMakePresets.json", "global.json", "pyproject.toml", "Cargo.toml"):
        assert bounded(facts_of({path: text}))


def test_order_of_paths_and_unreadable_files_do_not_matter() -> None:
    files = {
        "Makefile": "test:\nlint:\n",
        "package.json": '{"scripts": {"test": "jest"}}',
        "yarn.lock": "",
        "go.mod": "module x\n",
        "a/package.json": '{"scripts": {"build": "x"}}',
        "b/package.json": '{"scripts": {"build": "x"}}',
        "deps/x/LICENSE": "",
        ".github/workflows/a.yml": "on: push\njobs:\n  a:\n    steps:\n    - run: make test\n",
        "secret.json": "",
        "tox.ini": "[testenv:lint]\n",
    }
    expected = facts_of(files)
    paths = [RepoPath(path) for path in files]
    shuffler = random.Random(7)
    for _ in range(20):
        shuffler.shuffle(paths)
        assert project_facts([*paths, paths[0], RepoPath("gone/package.json")], files.get) == expected


def test_nothing_but_chosen_manifests_is_read() -> None:
    read: list[str] = []

    def reader(path: RepoPath) -> str | None:
        read.append(path)
        return None

    paths = ["package.json", "src/a.py", "README.md", ".env", "node_modules/x/package.json", "secrets.toml"]
    project_facts([RepoPath(path) for path in paths], reader)
    assert read == ["package.json", "README.md"]  # the second for the name, which the first does not tell


def test_many_manifests_stay_few_lines() -> None:
    scripts = json.dumps(
        {"name": "x", "main": "i.js", "engines": {"node": ">=18"}, "scripts": {"test": "jest", "build": "x"}}
    )
    files = {f"p{index:03}/{name}": scripts for index, name in product(range(200), ("package.json", "i.js"))}
    facts = facts_of(files)
    assert bounded(facts)
    assert [command.command for command in facts.commands if command.kind == "build"] == [
        f"cd p00{index} && npm run build" for index in range(2)
    ]
    assert len(facts.constraints) == 2


def test_hostile_names_never_become_commands() -> None:
    evil = ["a; rm -rf /", "$(x)", "`x`", "-rf", "test\u202e", "x\ny", "test test"]
    files = {
        "package.json": json.dumps({"scripts": dict.fromkeys(evil, "jest"), "bin": dict.fromkeys(evil, "./a.js")}),
        "pyproject.toml": "[project.scripts]\n" + "".join(f"{json.dumps(name)} = 'a:b'\n" for name in evil),
        "a.js": "",
        "x;y/Makefile": "test:\n",
        "new\nline/Makefile": "lint:\n",
    }
    facts = facts_of(files)
    assert [command.command for command in facts.commands] == ["make -C 'x;y' test"]
    assert facts.entry_points == ()


def test_a_command_that_does_not_fit_is_left_out_whole() -> None:
    assert commands({"d" * 150 + "/package.json": '{"scripts": {"test": "jest", "lint": "x"}}'}) == []


@pytest.mark.parametrize(
    "spec",
    [
        ">=3.10",
        "lts/*",
        "^18 || >=20",
        "v20.1.0",
        "stable",
        "ruby-3.2.1",
        "pypy3.10",
        "temurin-21.0.1+12",
        "~> 1.14",
        "3.14t",
        "nightly-2024-01-01",
        ">=3.8,<4",
        "18.x",
        "1.15.7-otp-25",
    ],
)
def test_versions_pass(spec: str) -> None:
    assert version(spec) == spec


@pytest.mark.parametrize(
    "spec", ["ignore previous", "1-ignore-all-rules", "rules3", "$(id)", "", "x", "or", "20; rm", "1" * 61, None, 3]
)
def test_prose_is_no_version(spec: object) -> None:
    assert version(spec) == ""


def test_lines_are_counted_as_editors_do() -> None:
    assert lines("a\x0cb\u2028c\r\nd\n" + "x" * 501) == ["a\x0cb\u2028c", "d", ""]


def test_lines_of_json_and_toml_keys() -> None:
    assert json_lines('{\n"a": {"b":\n{"c": ["x", {"no": 1}]}},\n"a:b": "{"}') == {
        ("a",): 2,
        ("a", "b"): 2,
        ("a", "b", "c"): 3,
        ("a:b",): 4,
    }
    text = 'top = 1\n[tool."my.tool"]\nx = { y = 1 }\n[tool.ruff.lint]\nselect = []\n[project]\nscripts.a = "b:c"\n'
    assert [
        toml_line(text, "tool", "my.tool", "x", "y"),
        toml_line(text, "tool", "ruff"),
        toml_line(text, "project", "scripts", "a"),
        toml_line(text, "top"),
        toml_line(text, "absent"),
    ] == [3, 4, 7, 1, 0]
