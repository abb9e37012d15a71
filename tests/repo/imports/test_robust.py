"""Whatever stands in imports, packages and manifests: an answer for every file, of files that are there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import resolve
from carbon_mind.values import Definition, RepoPath, Tags

LANGUAGES = ("python", "rust", "go", "java", "c", "cpp", "c_sharp", "php", "ruby", "bash", "javascript", "tsx", "lua")
PIECES = [
    *(". .. / :: : \\ * a b c self super crate path: ./ ../ @ ~ # .py .js .h < > ? é a/b b.c").split(),  # noqa: SIM905 - shorter
    "\n",
    "\0",
    "\ud800",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
PATHS = st.lists(st.sampled_from(["a", "b", "c", "__init__", "mod", "index", "lib"]), min_size=1, max_size=3).map(
    "/".join
)
ENDS = st.sampled_from(
    [".py", ".rs", ".go", ".java", ".h", ".c", ".cs", ".php", ".rb", ".sh", ".js", ".tsx", "_test.go"]
)
MANIFESTS = ("Cargo.toml", "go.mod", "package.json", "tsconfig.json", "vite.config.ts", "a/package.json", "a/a.csproj")


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    language=st.sampled_from(LANGUAGES),
    names=st.lists(st.tuples(PATHS, ENDS).map("".join), min_size=1, max_size=6, unique=True),
    texts=st.lists(TEXTS, max_size=6),
    manifest=st.one_of(
        TEXTS, st.sampled_from(['{"name": "a", "exports": {"*": ["b", null, {"x": 1}]}, "imports": {"#*": "*"}}'])
    ),
)
def test_anything_resolves_to_files_that_are_there(
    language: str, names: list[str], texts: list[str], manifest: str
) -> None:
    definitions = tuple(Definition(name, "class", 1, name) for name in ("a", "b"))
    tags = {RepoPath(name): Tags(language, definitions, (), tuple(sorted(texts)), tuple(texts[:2])) for name in names}
    paths = [*tags, *(RepoPath(name) for name in MANIFESTS)]
    found = resolve(tags, Context(paths, lambda path: manifest))
    assert sorted(found) == sorted(tags)
    for path, result in found.items():
        assert path not in result.files
        assert set(result.files) <= set(tags)
        assert all(list(part) == sorted(set(part)) for part in (result.files, result.sees, result.shown_by))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_files_and_no_imports(language: str) -> None:
    assert resolve({}, Context([], lambda path: None)) == {}
    lone = {RepoPath("a"): Tags(language)}
    assert resolve(lone, Context([], lambda path: None))[RepoPath("a")].files == ()
