from __future__ import annotations

import pytest

from .helpers import commands, constraints

TEST = '#!/bin/sh\nset -e\nmkdir -p tmp\npytest -n auto "$@"\n'


def test_scripts_are_told_by_their_names_and_places() -> None:
    files = {
        "script/test": TEST,
        "script/bootstrap": "#!/bin/sh\nbundle install\n",
        "script/setup": "#!/bin/sh\nscript/bootstrap\n",
        "script/cibuild": "#!/bin/sh\nscript/bootstrap\npytest\n",
        "tools/lint": "#!/usr/bin/env bash\nruff check .\nmypy .\n",
        "hack/build.sh": "#!/usr/bin/env bash\na\nb\n",
        "scripts/fmt.sh": "#! /bin/sh\na\nb\n",
        "run.sh": "#!/bin/sh\na\nb\n",
        "bin/server": "#!/usr/bin/env ruby\na\nb\n",
        "other/test": TEST,
        "scripts/lib/test": TEST,
        "scripts/build": "a\nb\n",
        "scripts/lint.sh": "#!/usr/bin/env python3\na\n",
    }
    assert commands(files) == [
        ("build", "bash hack/build.sh", "hack/build.sh:1"),
        ("test", "./script/test", "script/test:1"),
        ("lint", "./tools/lint", "tools/lint:1"),
        ("format", "sh scripts/fmt.sh", "scripts/fmt.sh:1"),
        ("run", "sh run.sh", "run.sh:1"),
    ]
    assert constraints(files) == [("setup: ./script/bootstrap", "script/bootstrap:1")]


def test_a_ci_script_stands_for_the_tests_where_no_test_script_does() -> None:
    assert commands({"script/cibuild": "#!/bin/sh\na\ncargo test\n"}) == [
        ("test", "./script/cibuild", "script/cibuild:1")
    ]
    assert commands({"script/cibuild": "#!/bin/sh\ndocker build .\n"}) == []


def test_check_is_what_it_runs() -> None:
    assert commands({"scripts/check": "#!/bin/sh\nruff .\nmypy\n"}) == [("lint", "./scripts/check", "scripts/check:1")]
    assert commands({"scripts/check": "#!/bin/sh\nruff .\npytest\n"}) == [
        ("test", "./scripts/check", "scripts/check:1")
    ]


@pytest.mark.parametrize(
    "row",
    [
        "git clean -fd",
        "git push origin main",
        "sudo make install",
        'rm -rf "$HOME/x"',
        "npm publish",
        "twine upload dist/*",
        "echo ${TAG?not set}",
        "deploy ${TAG:?}",
        'deploy "$1"',
    ],
)
def test_a_script_that_harms_or_needs_something_is_left_out(row: str) -> None:
    assert commands({"scripts/test": f"#!/bin/sh\na\n{row}\n"}) == []


@pytest.mark.parametrize(
    ("row", "files"),
    [
        ("make test", {"Makefile": "test:\n\tgo run x\n"}),
        ('exec npm run test -- "$@"', {"package.json": '{"scripts": {"test": "jest"}}', "package-lock.json": "{}"}),
        ("npm test", {"package.json": '{"scripts": {"test": "jest"}}', "package-lock.json": "{}"}),
        ("cargo test", {"Cargo.toml": '[package]\nname = "x"\n', "src/lib.rs": ""}),
    ],
)
def test_a_script_that_only_wraps_a_listed_command_is_not_told_twice(row: str, files: dict[str, str]) -> None:
    script = f'#!/bin/sh\n# Tests.\nset -e\n\ncd "$(dirname "$0")/.."\n{row}\n'
    assert not any("script/test" in command for _, command, _ in commands({**files, "script/test": script}))
    assert ("test", "./script/test", "script/test:1") in commands({"script/test": script})
    more = script.replace(row, f"prepare\n{row}")
    assert ("test", "./script/test", "script/test:1") in commands({**files, "script/test": more})


def test_hostile_texts_of_scripts_leave_nothing_of_themselves() -> None:
    script = "#!/bin/sh \u202e```\nexport TOKEN=ghp_0123456789abcdef0123456789abcdef0123\n```\nrun it\n"
    assert commands({"scripts/test": script}) == [("test", "./scripts/test", "scripts/test:1")]
    assert commands({"scripts\u202e/test": script}) == []
