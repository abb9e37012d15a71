"""Kinds of files by name, and by what .gitattributes says, read as git reads it."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carbon_mind.repo.classify import Attributes, Kind, kind_of, kinds_of, parse_attributes
from carbon_mind.values import RepoPath
from tests.conftest import Repository

TABLE: dict[Kind, str] = {
    "source": """
        src/main.rs src/testing.py src/flask/testing.py contest.py latest/x.go src/latest.go src/distribution.c vendor.py attest.c
        src/vendors.ts protest/march.py src/greatest.js inspect/spec.go src/exampled.py docsgen/main.go lib/generated.py dist.py
        pkg/pods/pod.go fastest.rs src/Contest.java src/Manifest.java lib/specification.rb Testament.java sample.py examples.py
        src/minimum.js bundle.py src/benchmark.rs src/test_.d/x.py app/external.py src/testing/x.py src/deps/lua.c external/x.c
        src/redis-benchmark.c src/Contest/x.cs packages/runtime-test/src/index.ts src/latests/x.py sample/core.py
    """,
    "test": """
        tests/test_core.py test/x.js src/test.ts src/tests.rs src/core_test.go src/core.test.ts src/core.spec.tsx a/__tests__/x.js
        spec/models/user_spec.rb conftest.py a/conftest.py test_x.py src/FooTest.java src/FooTests.cs TestFoo.java e2e/x.ts
        pkg/testdata/x.go fixtures/a.py benches/b.rs benchmarks/b.py src/foo-test.js TESTS/x.py vendor_test.go lib/Test.php
        dist_test.go src/Http2Test.kt docs/test_docs.py testing/x.go util/testutil/x.go tsdb/testutil.go tsdb/dir_testutil.go fuzz/a.rs
        fuzzing/corpus.go bench/x.js types/ref.test-d.ts x.bench.ts App.Tests/Deep/x.cs App.UnitTests/x.cs src/integrationTest/java/A.java
        integration-tests/x.py system_test/x.py App.Benchmarks/P.cs
    """,
    "example": "examples/a.py example/src/x.go demo/x.ts a/samples/x.c playground/x.vue tutorials/one.py"
    " sfc-playground/src/x.ts",
    "docs": "docs/conf.py doc/x.c documentation/x.js website/index.ts a/docs/x.py",
    "vendored": """
        vendor/a.go a/third_party/x.cc third-party/x.cc thirdparty/x.c 3rdparty/x.c node_modules/a/index.js
        pip/_vendor/x.py ios/Pods/x.m vendor/tests/x.go
    """,
    "generated": """
        a.pb.go a.pb.cc a_pb2.py a_pb2_grpc.py a_pb2.pyi x.g.dart x.generated.ts Form.Designer.cs jquery.min.js x.bundle.js
        uv.lock package-lock.json a/go.sum Cargo.lock generated/x.py dist/index.js a/__generated__/x.ts x.snap
        pkg/zz_generated.deepcopy.go api_generated.go
    """,
}


@pytest.mark.parametrize(("path", "kind"), [(path, kind) for kind, names in TABLE.items() for path in names.split()])
def test_kind_by_name(path: str, kind: Kind) -> None:
    assert kind_of(RepoPath(path)) == kind


def test_a_name_that_may_be_ours_needs_a_licence_below() -> None:
    paths = """
        deps/README.md deps/lua/COPYRIGHT deps/lua/src/lua.c deps/mine.c src/deps/resolve.py src/deps/LICENSE
        lib/external/one/LICENSE.txt lib/external/two/x.c external/app/x.c src/external/x.c
    """
    kinds = kinds_of(RepoPath(path) for path in paths.split())
    assert sorted(path for path, kind in kinds.items() if kind == "vendored") == [
        "deps/README.md",
        "deps/lua/COPYRIGHT",
        "deps/lua/src/lua.c",
        "deps/mine.c",
        "lib/external/one/LICENSE.txt",
        "lib/external/two/x.c",
    ]
    ours = parse_attributes("deps/** -linguist-vendored")
    assert (
        kinds_of([RepoPath("deps/lua/LICENSE"), RepoPath("deps/lua/x.c")], ours)[RepoPath("deps/lua/x.c")] == "source"
    )


def test_a_newline_in_a_name_hides_nothing() -> None:
    assert kind_of(RepoPath("dist/a\nb.js")) == "generated"
    assert kind_of(RepoPath("vendor/a\n.c")) == "vendored"


def test_attributes_go_before_names_and_the_last_line_wins() -> None:
    attributes = parse_attributes(
        "# comment linguist-vendored\n"
        "*.js linguist-vendored\n"
        "/src/own.js -linguist-vendored\n"
        "vendor/ours/** linguist-vendored=false\n"
        "gen/*.c text linguist-generated=true\n"
        "gen/hand.c !linguist-generated\n"
        "uv.lock -linguist-generated\n"
        "[attr]binary -diff\n"
    )
    expected: dict[str, Kind] = {
        "a/b.js": "vendored",
        "src/own.js": "source",
        "a/src/own.js": "vendored",
        "vendor/ours/a.go": "source",
        "vendor/other/a.go": "vendored",
        "gen/a.c": "generated",
        "gen/hand.c": "source",
        "gen/deep/a.c": "source",
        "a/gen/a.c": "source",
        "uv.lock": "source",
    }
    assert {path: kind_of(RepoPath(path), attributes) for path in expected} == expected


def test_attributes_from_anywhere_raise_nothing() -> None:
    for text in (
        "",
        "\n\n",
        "a",
        "[z-a] linguist-vendored",
        "[ linguist-vendored",
        "\\ linguist-vendored",
        "!a linguist-vendored",
    ):
        assert kind_of(RepoPath("x.py"), parse_attributes(text)) == "source"
    assert parse_attributes("\ufeff*.py linguist-vendored") == Attributes((("*.py", "vendored", True),))
    slow = parse_attributes("**/" * 30 + "x linguist-vendored\n" + "*a" * 40 + " linguist-vendored")
    assert kind_of(RepoPath("a/" * 40 + "b.py"), slow) == "source"


PATTERNS = st.lists(
    st.sampled_from(["a", "b", "c", "/", "*", "**", "?", "[ab]", "[!a]", "[a-c]", ".", "**/", "/**", "\\*", "[]a]"]),
    min_size=1,
    max_size=6,
).map("".join)
PATHS = st.lists(st.sampled_from(["a", "b", "c", "ab", "a.b", "*", "abc"]), min_size=1, max_size=4).map("/".join)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(patterns=st.lists(PATTERNS, min_size=1, max_size=6), paths=st.lists(PATHS, min_size=1, max_size=12, unique=True))
def test_patterns_match_as_git_matches_them(repository: Repository, patterns: list[str], paths: list[str]) -> None:
    # Runs of stars inside a name are stars like any other, says gitattributes(5); versions of git differ in obeying it.
    patterns = [pattern for pattern in patterns if not re.search(r"\*\*[^/]|[^/]\*\*|\*\*\*", pattern)]
    for pattern in patterns:
        text = f"{pattern} linguist-vendored\n"
        repository.write(".gitattributes", text)
        raw = subprocess.run(
            ["git", "check-attr", "-z", "--stdin", "linguist-vendored"],
            cwd=repository.path,
            input="".join(f"{path}\0" for path in paths).encode(),
            capture_output=True,
            check=True,
        ).stdout.split(b"\0")
        by_git = {raw[i].decode(): raw[i + 2] == b"set" for i in range(0, len(raw) - 2, 3)}
        ours = {path: kind_of(RepoPath(path), parse_attributes(text)) == "vendored" for path in paths}
        assert ours == by_git, pattern
