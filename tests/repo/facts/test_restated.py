from __future__ import annotations

import pytest

from carbon_mind.repo.facts.restated import not_restated
from carbon_mind.safety import block
from carbon_mind.values import Command, Constraint, ProjectFacts

from .helpers import commands, constraints, facts_of


def kept(text: str, *, command: str = "", constraint: str = "") -> bool:
    facts = ProjectFacts(
        (Command("test", command, "x:1"),) if command else (),
        (Constraint(constraint, "x:1"),) if constraint else (),
    )
    left = not_restated(facts, text)
    return bool(left.commands or left.constraints)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("uv run pytest", "Run `uv run pytest` first."),
        ("uv run pytest", "```sh\n$ uv  run pytest   # all\n```"),
        ("uv run pytest", "Tests:\n\n    uv run pytest\n"),
        ("uv run pytest", "Start uv run pytest. Then commit."),
        ("make", "`make`"),
        ("go test ./...", "- ```\n  go test ./...\n  ```"),
    ],
)
def test_a_command_that_stands_there_is_dropped(command: str, text: str) -> None:
    assert not kept(text, command=command)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("uv run pytest", "`uv run pytest tests/x`"),
        ("uv run pytest", "```\nuv run pytest -q\n```"),
        ("uv run pytest", "Start uv run pytest-xdist here."),
        ("uv run pytest", "Start uv run pytest -x here."),
        ("make", "Please make sure."),
        ("make test", "We make test data."),
        ("uv run pytest", "<!-- uv run pytest -->"),
        ("uv run pytest", ""),
    ],
)
def test_what_only_looks_like_the_command_keeps_it(command: str, text: str) -> None:
    assert kept(text, command=command)


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ("Python >=3.10", "We support Python 3.10+ only."),
        ("Python >=3.10", "- `Python >= 3.10`"),
        ("Python >=3.10", "Needs python 3.10 or newer."),
        ("Python 3.12", "Uses Python 3.12."),
        ("do not edit gen/ (generated)", "Never edit files in `gen/`."),
        ("do not edit a.pb.go (generated)", "You must not change a.pb.go."),
        ("do not edit (vendored): deps/, lib/x/", "Never edit `deps/`.\n\nDo not change lib/x."),
        ("do not edit src/a.h (generated: make -C src a.h)", "Never touch src/a.h."),
        ('rule: "Never edit a.c."', "**Never** edit `a.c`"),
    ],
)
def test_a_constraint_that_stands_there_is_dropped(constraint: str, text: str) -> None:
    assert not kept(text, constraint=constraint)


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ("Python >=3.10", "Python 3.10 is what the image has."),
        ("Python >=3.10", "Python 3.10+ is not supported."),
        ("Python >=3.1", "Python 3.10+"),
        ("Python >=3.10", "Python >=3.10,<4"),
        ("Python 3.12", "Python 3.12+"),
        ("do not edit gen/ (generated)", "Edit gen/ freely."),
        ("do not edit (vendored): deps/, lib/x/", "Never edit `deps/`."),
        ("do not edit (vendored): deps/ and 1 more", "Never edit `deps/`."),
        ("do not edit gen/ (generated)", "Never edit `src/gen/`, or `gen/a.c`."),
        ("do not edit gen/ (generated)", "Do not run `gen/`."),
        ('rule: "Do not run tests"', "Do not run tests in parallel."),
        ("environment: A", "environment: A"),
    ],
)
def test_another_statement_keeps_the_constraint(constraint: str, text: str) -> None:
    assert kept(text, constraint=constraint)


FILES = {
    "pyproject.toml": '[project]\nname = "a"\nrequires-python = ">=3.10"\n',
    "Makefile": "test:\n\tpytest\n",
    "CLAUDE.md": "Never edit `a.c`.\n",
}


def test_the_block_of_ours_does_not_count() -> None:
    content = "- `make test`\n- Python >=3.10\n- Never edit `a.c`."
    whole = block.put(b"# Notes\n", content.encode()).decode()
    assert facts_of({**FILES, "AGENTS.md": whole}) == facts_of(FILES)
    outside = facts_of({**FILES, "AGENTS.md": f"# Notes\n\n{content}\n"})
    assert outside.commands == ()
    assert outside.constraints == ()


def test_damaged_markers_drop_nothing() -> None:
    text = f"{block.BEGIN.decode()}\n\n`make test`\n\nNever edit `a.c`.\n"
    assert commands({**FILES, "AGENTS.md": text}) == commands(FILES)
    assert constraints({**FILES, "AGENTS.md": text}) == constraints(FILES)


def test_a_nested_agents_md_restates_nothing() -> None:
    assert commands({**FILES, "pkg/AGENTS.md": "`make test`\n"}) == commands(FILES)


def test_every_wording_of_ours_is_found_again() -> None:
    files = {
        "third_party/one/LICENSE": "",
        ".gitattributes": "gen/*.go linguist-generated\n",
        "gen/a.go": "",
        "Makefile": "a.h: gen.py\n\t./gen.py > $@\n",
        "gen.py": "",
        "a.h": "",
    }
    made = [text for text, _ in constraints(files) if text.startswith("do not edit")]
    assert made == [
        "do not edit (vendored): third_party/",
        "do not edit (generated): gen/*.go",
        "do not edit a.h (generated: make a.h)",
    ]
    said = {**files, "AGENTS.md": "Never edit `third_party/`, `gen/*.go` or `a.h`.\n"}
    assert not [text for text, _ in constraints(said) if text.startswith("do not edit")]
