from __future__ import annotations

import json

import pytest

from .helpers import Command, Constraint, EntryPoint, ProjectFacts, commands, constraints, entries, facts_of

PACKAGE = """\
{
  "name": "shop",
  "packageManager": "pnpm@9.1.0+sha512.abc",
  "bin": {"shop": "./cli.js"},
  "main": "dist/index.js",
  "workspaces": ["packages/*"],
  "scripts": {
    "build": "tsc --password hunter2",
    "test": "vitest && echo done",
    "test-unit": "cross-env CI=1 vitest --project unit",
    "check": "tsc --noEmit",
    "lint": "eslint .",
    "format:check": "prettier --check .",
    "dev; rm -rf /": "x",
    "prepare": "husky"
  },
  "engines": {"node": ">=20"},
  "dependencies": {"react": "^19", "left-pad": "1"},
  "devDependencies": {"vitest": "^4"}
}
"""


def test_everything_of_one_package() -> None:
    assert facts_of({"package.json": PACKAGE, "cli.js": "", "yarn.lock": ""}) == ProjectFacts(
        name="shop",
        commands=(
            Command("build", "pnpm run build", "package.json:8"),
            Command("test", "pnpm run test", "package.json:9"),
            Command("test", "pnpm run test-unit", "package.json:10"),
            Command("test-one", "pnpm run test-unit <path> -t '<name>'", "package.json:10"),
            Command("lint", "pnpm run lint", "package.json:12"),
            Command("lint", "pnpm run format:check", "package.json:13"),
            Command("typecheck", "pnpm run check", "package.json:11"),
        ),
        constraints=(
            Constraint("package manager: pnpm 9.1.0", "package.json:3"),
            Constraint("Node.js >=20", "package.json:17"),
            Constraint("workspace packages: packages/*", "package.json:6"),
        ),
        entry_points=(EntryPoint("shop", "cli.js", "package.json:4"),),
        frameworks=("react", "vitest"),
    )


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("pnpm-lock.yaml", "pnpm run test"),
        ("yarn.lock", "yarn run test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
        ("package-lock.json", "npm run test"),
        ("README.md", "npm run test"),
    ],
)
def test_package_manager_by_lock_file(lock: str, command: str) -> None:
    files = {"package.json": '{"scripts": {"test": "./all"}}', lock: ""}
    assert commands(files) == [("test", command, "package.json:1")]
    expected = [] if lock == "README.md" else [(f"package manager: {command.partition(' ')[0]}", lock)]
    assert constraints(files) == expected


@pytest.mark.parametrize(
    ("body", "one"),
    [
        ("jest --ci", "npm run test -- <path> -t '<name>'"),
        ("npm run build && vitest run", "npm run test -- <path> -t '<name>'"),
        ("TZ=UTC cross-env A=1 playwright test", "npm run test -- <path> -g '<name>'"),
        ("npm run inner", "npm run inner -- <path> -t '<name>'"),
        ("mocha 'test/**/*.js'", "npm run test -- -g '<name>'"),
        ("ava", "npm run test -- <path> -m '<name>'"),
        ("bun test", "npm run test -- <path> -t '<name>'"),
        ("node --test", "npm run test -- <path>"),
        ("jest && echo ok", "npx jest <path> -t '<name>'"),
        ("vitest bench", ""),
        ("node --test test/*.js", ""),
        ("./run.sh", ""),
    ],
)
def test_one_test_as_its_runner_takes_it(body: str, one: str) -> None:
    found = commands({"package.json": json.dumps({"scripts": {"test": body, "inner": "vitest run"}})})
    assert [command for kind, command, _ in found if kind == "test-one"] == ([one] if one else [])


def test_a_script_that_only_calls_another_is_followed() -> None:
    scripts = {"test": "npm run test:unit", "test:unit": "jest", "check": "yarn types", "types": "tsc --noEmit"}
    assert [command for _, command, _ in commands({"package.json": json.dumps({"scripts": scripts})})] == [
        "npm run test",
        "npm run test:unit -- <path> -t '<name>'",
        "npm run check",
    ]


def test_default_script_of_npm_init_is_no_test() -> None:
    assert commands({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}) == []


def test_nested_package_uses_the_root_manager_and_its_own_directory() -> None:
    files = {
        "package.json": '{"packageManager": "yarn@4.1.0"}',
        "web/package.json": '{"scripts":\n{"test": "jest"}}',
        "web/-odd/package.json": '{"scripts": {"lint": "eslint"}}',
    }
    assert commands(files) == [
        ("test", "cd web && yarn run test", "web/package.json:2"),
        ("test-one", "cd web && yarn run test <path> -t '<name>'", "web/package.json:2"),
        ("lint", "cd web/-odd && yarn run lint", "web/-odd/package.json:1"),
    ]


def test_pnpm_workspace_and_entry_by_exports() -> None:
    files = {
        "package.json": '{"name": "@a/b", "exports": {".": {"types": "./x.d.ts", "import": {"node": "./src/i.ts"}}}}',
        "pnpm-workspace.yaml": "# c\npackages:\n  - 'packages/*'\n  # no\n  - apps/web\ncatalog:\n  - x\n",
        "src/i.ts": "",
        "x.d.ts": "",
    }
    assert constraints(files) == [("workspace packages: packages/*, apps/web", "pnpm-workspace.yaml:2")]
    assert entries(files) == [("@a/b", "src/i.ts", "package.json:1")]


def test_entry_outside_the_repository_is_left_out() -> None:
    assert entries({"package.json": '{"name": "a", "main": "../../etc/passwd", "bin": "/bin/sh"}'}) == []
