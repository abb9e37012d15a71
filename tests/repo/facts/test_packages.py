"""Workspaces on one line: names, and directories where they differ."""

from __future__ import annotations

from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.facts.packages import members, summary
from carbon_mind.values import RepoPath

from .helpers import commands, constraints, entries


def test_summary_writes_what_names_share_once() -> None:
    packages = [
        ("vue", "packages/vue"),
        ("@vue/shared", "packages/shared"),
        ("@vue/compat", "packages/vue-compat"),
        ("@vue/reactivity", "packages/reactivity"),
        ("bad name", "packages/x"),
        ("site", "site"),
    ]
    assert summary(packages, 200) == "site; packages/: vue, @vue/compat (vue-compat); @vue/{shared,reactivity}"
    assert summary(packages, 62) == "site; packages/: vue, @vue/compat (vue-compat) and 2 more"
    assert summary(packages, 50) == "site; packages/: vue and 1 more and 2 more"
    assert summary(packages, 8) == ""


def test_members_by_glob() -> None:
    paths = ["a/x/m", "a/y/m", "a/y/deep/m", "b/m", "m", "node_modules/z/m", "a/examples/m"]
    context = Context([RepoPath(path) for path in paths], dict.fromkeys(paths, "").get)
    assert list(members(["a/*"], "", "m", context)) == ["a/x/m", "a/y/m"]
    assert list(members(["./a/**", "!a/x", "b/"], "", "m", context)) == ["a/y/deep/m", "a/y/m", "b/m"]
    assert list(members(["*"], "a", "m", context)) == ["a/x/m", "a/y/m"]


def test_cargo_workspace_names_its_crates_and_one_rust_version() -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n[workspace.package]\nrust-version = "1.80"\n',
        "crates/cli/Cargo.toml": '[package]\nname = "grep-cli"\nrust-version = "1.70"\n',
        "crates/regex/Cargo.toml": '[package]\nname = "grep-regex"\nrust-version = "1.70"\n',
        "crates/globset/Cargo.toml": '[package]\nname = "globset"\n[[bin]]\nname = "gs"\npath = "m.rs"\n',
        "crates/globset/m.rs": "",
        ".cargo/config.toml": '[alias]\nlint = "clippy --all"\n',
    }
    assert constraints(files) == [
        ("workspace members: crates/: globset; grep-{cli,regex}", "Cargo.toml:2"),
        ("Rust >=1.80", "Cargo.toml:4"),
    ]
    assert [command for _, command, _ in commands(files)] == [
        "cargo build --workspace",
        "cargo test --workspace",
        "cargo test -p PACKAGE NAME",
        "cargo lint",
        "cargo run -p globset --bin gs",
    ]


def test_node_workspace_has_one_line_and_the_package_that_users_import() -> None:
    files = {
        "package.json": '{"private": true, "engines": {"node": ">=20"}, "workspaces": ["packages/*"]}',
        "packages/core/package.json": '{"name": "@x/core", "main": "index.js", "engines": {"node": ">=18"}}',
        "packages/core/index.js": "",
        "packages/x/package.json": '{"name": "x",\n"main": "index.js"}',
        "packages/x/index.js": "module.exports = require('./dist')",
        "packages/x/src/index.ts": "",
        "packages/x/sub/package.json": '{"main": "i.js"}',
        "packages/x/sub/i.js": "",
        "packages/cli/package.json": '{"name": "@x/cli", "bin": {"xx": "bin.js"}}',
        "packages/cli/bin.js": "",
    }
    assert constraints(files) == [
        ("Node.js >=20", "package.json:1"),
        ("workspace packages: packages/: x; @x/{cli,core}", "package.json:1"),
    ]
    assert entries(files) == [
        ("xx", "packages/cli/bin.js", "packages/cli/package.json:1"),
        ("x", "packages/x/src/index.ts", "packages/x/package.json:2"),
    ]


def test_uv_workspace() -> None:
    files = {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["libs/*"]\n',
        "libs/a/pyproject.toml": '[project]\nname = "shop-a"\n',
    }
    assert constraints(files) == [("workspace packages: libs/: shop-a", "pyproject.toml:2")]
