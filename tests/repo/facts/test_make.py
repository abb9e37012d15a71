from __future__ import annotations

import pytest

from .helpers import commands, entries


def test_targets_by_name_with_their_lines() -> None:
    makefile = (
        "CC := gcc\n"
        ".PHONY: all test lint fmt\n"
        "all: app\n"
        "\tgcc -o app app.c\n"
        "test: all  # runs everything\n"
        "\t./secret-script --token=abc\n"
        "lint fmt:\n"
        "\ttrue\n"
        "test: CFLAGS = -g\n"
        "%.o: %.c\n"
        "run:\n"
    )
    assert commands({"Makefile": makefile}) == [
        ("build", "make", "Makefile:3"),
        ("test", "make test", "Makefile:5"),
        ("lint", "make lint", "Makefile:7"),
        ("format", "make fmt", "Makefile:7"),
        ("run", "make run", "Makefile:11"),
    ]


@pytest.mark.parametrize(
    ("makefile", "expected"),
    [
        ("check: lint test\nlint:\ntest:\n", ("test", "make check", "Makefile:1")),
        ("check: lint types\nlint:\ntypes:\n", ("lint", "make check", "Makefile:1")),
    ],
)
def test_check_is_what_its_prerequisites_say(makefile: str, expected: tuple[str, str, str]) -> None:
    assert expected in commands({"Makefile": makefile, "a.py": ""})


def test_check_that_is_only_another_name_for_test_is_left_out() -> None:
    assert commands({"Makefile": "test:\n\tx\ncheck: test\n"}) == [("test", "make test", "Makefile:1")]


def test_assignments_recipes_and_defines_are_no_targets() -> None:
    makefile = "test := 1\nlint = a:b\ndefine run\nbuild: x\nendef\nexport format ?= x\n\ttypecheck: y\nurl=http://x\n"
    assert commands({"Makefile": makefile}) == []


def test_nested_makefile_is_called_from_the_root() -> None:
    assert commands({"src/Makefile": "\n\ntest:\n", "my dir/Makefile": "lint:\n"}) == [
        ("test", "make -C src test", "src/Makefile:3"),
        ("lint", "make -C 'my dir' lint", "my dir/Makefile:1"),
    ]


def test_nested_makefile_adds_nothing_to_kinds_that_the_root_offers() -> None:
    assert commands({"Makefile": "test:\n", "src/Makefile": "test:\nlint:\n"}) == [
        ("test", "make test", "Makefile:1"),
        ("lint", "make -C src lint", "src/Makefile:2"),
    ]


def test_forwarding_root_offers_the_targets_of_its_subdirectory_and_names_programs() -> None:
    files = {
        "Makefile": "SUBDIRS = src\ndefault: all\n.DEFAULT:\n\tfor d in $(SUBDIRS); do $(MAKE) -C $$d $@; done\n",
        "src/Makefile": (
            "SERVER_NAME=db-server$(SUFFIX)\nSERVER_OBJ=a.o \\\n  server.o\n"
            "all: $(SERVER_NAME) tool\n$(SERVER_NAME): $(SERVER_OBJ)\ntool: tool.o\ntest: $(SERVER_NAME)\n"
        ),
        "src/server.c": "int main(void) {}",
        "src/tool.c": "int main(void) {}",
        "src/a.c": "",
    }
    assert commands(files) == [("build", "make", "Makefile:2"), ("test", "make test", "src/Makefile:7")]
    assert entries(files) == [
        ("db-server", "src/server.c", "src/Makefile:1"),
        ("tool", "src/tool.c", "src/Makefile:6"),
    ]


def test_vendored_test_and_example_directories_are_not_ours() -> None:
    folders = ("deps/x", "vendor/y", "third_party/z", "node_modules/n", "testdata", "examples/e", "tests/modules")
    assert commands({f"{folder}/Makefile": "test:\n" for folder in folders}) == []


def test_just_and_task_recipes() -> None:
    files = {
        "justfile": "set shell := ['sh']\n\ntest *args:\n  pytest\nlint:\nrun port='80':\nbuild target:\n",
        "Taskfile.yml": "tasks:\n\n  fmt:\n    cmds:\n      - test: x\n  typecheck: mypy\nvars:\n  build: 1\n",
    }
    assert commands(files) == [
        ("test", "just test", "justfile:3"),
        ("lint", "just lint", "justfile:5"),
        ("format", "task fmt", "Taskfile.yml:3"),
        ("typecheck", "task typecheck", "Taskfile.yml:6"),
        ("run", "just run", "justfile:6"),
    ]


def test_own_test_script_and_its_documented_option_for_one_test() -> None:
    files = {
        "runtest": '#!/bin/sh\nexec tclsh tests/helper.tcl "$@"\n',
        "tests/helper.tcl": 'puts {\n"--singledb  no"\n"--single <unit>    Just one."\n}\n',
    }
    assert commands(files) == [
        ("test", "./runtest", "runtest:1"),
        ("test-one", "./runtest --single <unit>", "tests/helper.tcl:3"),
    ]
    assert commands({"runtest": "#!/bin/sh\nexit\n"}) == [("test", "./runtest", "runtest:1")]


def test_included_files_and_the_rule_that_offers_their_targets() -> None:
    files = {
        "Makefile": "include Makefile.common\n-include $(DEP)\nbuild: x\n\tgo build\n",
        "Makefile.common": "%: common-% ;\ncommon-test:\n\tgo test\ncommon-build:\n\tgo build\nother:\n\ttrue\n",
    }
    assert commands(files) == [("build", "make", "Makefile:3"), ("test", "make test", "Makefile.common:2")]


def test_programs_that_are_copies_of_another_program() -> None:
    files = {
        "Makefile": (
            "SERVER=db-server\nCHECK=db-check\nOBJ=server.o check.o\nall: $(SERVER) $(CHECK)\n"
            "$(SERVER): $(OBJ)\n\tcc -o $@ $^\n$(CHECK): $(SERVER)\n\tcp $(SERVER) $(CHECK)\n"
        ),
        "server.c": "",
        "check.c": "",
    }
    assert entries(files) == [("db-server", "server.c", "Makefile:1"), ("db-check", "check.c", "Makefile:2")]


def test_a_default_target_that_only_prints_is_no_build() -> None:
    assert commands({"Makefile": "all:\n\t@echo 'make x'\n\t@echo\n\nx:\n\tcc\n", "a.c": ""}) == []


def test_internal_tasks_and_private_recipes_are_no_commands() -> None:
    files = {
        "Taskfile.yml": "tasks: {lint: {internal: true}, test: {cmds: [go test]}}\n",
        "justfile": "_lint:\n  x\nfmt:\n  y\n",
    }
    assert commands(files) == [("test", "task test", "Taskfile.yml:1"), ("format", "just fmt", "justfile:3")]
