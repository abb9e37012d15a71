"""C, C++, Ruby, shell: imports that are paths, and languages whose imports nobody reads."""

from __future__ import annotations

import pytest

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import resolve
from carbon_mind.values import RepoPath, Tags
from tests.repo.imports.helpers import named, resolved, visible

C = {
    "src/server.h": '#include "sds.h"\n#include "util/list.h"\n',
    "src/sds.h": "typedef char *sds;\n",
    "src/util/list.h": "struct list { int x; };\n",
    "src/server.c": '#include "server.h"\nvoid serve(void) {}\n',
    "src/db.c": '#include "server.h"\nvoid lookup(void) {}\n',
    "src/sds.c": '#include "sds.h"\nsds sdsnew(void) { return 0; }\n',
    "tool/tool.c": '#include "sds.h"\nint main(void) { return 0; }\n',
    "include/lib/api.hpp": "class Api {};\n",
    "include/one.h": "",
    "src/string.h": "",
}
INCLUDES = [
    ("src/x.c", '"sds.h"', ["src/sds.h"]),
    ("src/deep/x.c", '"../sds.h"', ["src/sds.h"]),
    ("lib/x.c", '"util/list.h"', ["src/util/list.h"]),  # by what it ends in, there being one
    ("app/x.cc", "<lib/api.hpp>", ["include/lib/api.hpp"]),
    ("app/x.cc", "<one.h>", ["include/one.h"]),
    ("app/x.c", "<string.h>", []),
    ("app/x.c", '"none.h"', []),
    ("app/x.c", '"../../sds.h"', ["src/sds.h"]),
]


@pytest.mark.parametrize(("path", "text", "targets"), INCLUDES)
def test_includes(path: str, text: str, targets: list[str]) -> None:
    assert named({**C, path: f"#include {text}\n"}, path) == targets


def test_of_several_headers_the_nearest_is_meant_or_none() -> None:
    files = {"a/inc/x.h": "", "b/inc/x.h": "", "a/src/main.c": '#include "x.h"\n', "c/main.c": '#include "x.h"\n'}
    assert named(files, "a/src/main.c") == ["a/inc/x.h"]
    assert named(files, "c/main.c") == []


def test_a_header_shows_what_it_includes_and_what_implements_it() -> None:
    assert visible(C, "src/server.c") == ["src/db.c", "src/sds.c", "src/sds.h", "src/util/list.h", "tool/tool.c"]
    # Not the other way round: who includes sds.h knows nothing of server.h.
    assert visible(C, "tool/tool.c") == ["src/sds.c"]


def test_headers_in_a_circle_end() -> None:
    files = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n', "x.c": '#include "a.h"\n'}
    assert named(files, "x.c") == ["a.h"]
    assert visible(files, "x.c") == ["b.h"]


RUBY = {
    "lib/rack/utils.rb": "module Rack; end\n",
    "lib/rack/files.rb": "",
    "gems/extra/lib/extra.rb": "",
    "test/helper.rb": "",
}
REQUIRES = [
    ("lib/rack/x.rb", "require 'rack/utils'", ["lib/rack/utils.rb"]),
    ("lib/rack/x.rb", "require_relative 'utils'", ["lib/rack/utils.rb"]),
    ("lib/x.rb", "require_relative './rack/files'", ["lib/rack/files.rb"]),
    ("lib/x.rb", "require 'extra'", ["gems/extra/lib/extra.rb"]),
    ("test/x.rb", "require 'helper'", ["test/helper.rb"]),
    ("lib/x.rb", "require 'json'", []),
    ("lib/x.rb", "require 'utils'", []),
]


@pytest.mark.parametrize(("path", "text", "targets"), REQUIRES)
def test_requires(path: str, text: str, targets: list[str]) -> None:
    assert named({**RUBY, path: f"{text}\n"}, path) == targets


SOURCES = [
    ("bin/x.sh", "source ./lib.sh", ["bin/lib.sh"]),
    ("bin/x.sh", "source ../common.sh", ["common.sh"]),
    ("bin/x.sh", ". bin/lib.sh", ["bin/lib.sh"]),
    ("bin/x.sh", "source /etc/profile", []),
]


@pytest.mark.parametrize(("path", "text", "targets"), SOURCES)
def test_sourced_scripts(path: str, text: str, targets: list[str]) -> None:
    files = {"bin/lib.sh": "f() { :; }\n", "common.sh": ""}
    assert named({**files, path: f"{text}\n"}, path) == targets


def test_of_a_language_without_resolver_every_file_sees_every_other() -> None:
    tags = {RepoPath(f"{name}.lua"): Tags("lua") for name in "ab"} | {RepoPath("c.zig"): Tags("zig")}
    found = resolve(tags, Context([], lambda path: None))
    assert set(found[RepoPath("a.lua")].sees) & set(found[RepoPath("b.lua")].shown_by)
    assert not set(found[RepoPath("a.lua")].sees) & set(found[RepoPath("c.zig")].shown_by)


def test_every_file_is_answered_and_never_by_itself() -> None:
    files = {**C, **RUBY, "src/own.h": '#include "own.h"\n'}
    found = resolved(files)
    assert sorted(found) == sorted(files)
    assert all(path not in result.files for path, result in found.items())
