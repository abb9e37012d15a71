from __future__ import annotations

import pytest

from .helpers import constraints

WORKFLOW = """\
name: CI
on:
  pull_request:
jobs:
  test:
    runs-on: x
    strategy:
      matrix:
        include:
          - os: a
    steps:
      - uses: actions/checkout@v4
      - run: pip install tox
      - name: unit
        run: pytest -q  # quick
      - run: pytest -x
      - run: |
          npm ci
          # make nothing
          npm run lint && npm test
          make \\
            test
          curl x | make evil
          cargo test --token abc
      - run: cargo test ${{ secrets.X }}
      - run: >
          make
          folded
      - run: cd web && pnpm run build
      - run: uv pip install pytest
      - run: uv run --locked mypy
      - run: go test ./...
        working-directory: ./svc
      - run: ci/test-all --fast
      - run: ./gen-test-data
  web:
    defaults:
      run:
        working-directory: web
    steps:
      - run: "yarn run check"
"""


def test_ci_runs_known_tools_on_one_line() -> None:
    files = {".github/workflows/ci.yml": WORKFLOW, "ci/test-all": "", "gen-test-data": ""}
    source = ".github/workflows/ci.yml"
    assert constraints(files) == [
        ("CI runs: pytest -q", f"{source}:15"),
        ("CI runs: npm run lint && npm test", f"{source}:20"),
        ("CI runs: cd web && pnpm run build", f"{source}:29"),
        ("CI runs: uv run --locked mypy", f"{source}:31"),
        ("CI runs: go test ./... (in svc)", f"{source}:32"),
        ("CI runs: ci/test-all --fast", f"{source}:34"),
    ]


def test_ci_default_directory_of_a_job() -> None:
    text = "on: push\njobs:\n" + WORKFLOW[WORKFLOW.index("  web:") :] + "  next:\n    steps:\n      - run: make test\n"
    assert constraints({".github/workflows/ci.yml": text}) == [
        ("CI runs: yarn run check (in web)", ".github/workflows/ci.yml:8"),
        ("CI runs: make test", ".github/workflows/ci.yml:11"),
    ]


def test_ci_default_directory_of_a_workflow() -> None:
    text = "on: push\ndefaults:\n  run:\n    working-directory: web\njobs:\n  a:\n    steps:\n    - run: make test\n"
    assert constraints({".github/workflows/ci.yml": text}) == [
        ("CI runs: make test (in web)", ".github/workflows/ci.yml:8")
    ]


@pytest.mark.parametrize(
    ("name", "trigger", "gate"),
    [
        ("ci.yml", "on: [push, pull_request]", True),
        ("ci.yml", "on: push", True),
        ("reusable.yml", "'on':\n  workflow_call:", True),
        ("ci.yml", "on:\n  schedule:\n    - cron: x", False),
        ("x.yml", "on:\n  push:\n    tags: ['v*']", False),
        ("release.yml", "on: [push, pull_request]", False),
        ("daily.yaml", "on: pull_request", False),
    ],
)
def test_only_workflows_between_a_change_and_its_merge_are_gates(name: str, trigger: str, gate: bool) -> None:
    text = f"{trigger}\njobs:\n  a:\n    steps:\n    - run: make test\n"
    assert bool(constraints({f".github/workflows/{name}": text})) is gate


def test_gitlab() -> None:
    text = (
        "image: x\ntest:\n  script:\n    - make test\n    - echo hi\n  rules:\n    - make lint\n"
        "lint:\n  script: ruff check\n"
    )
    assert constraints({".gitlab-ci.yml": text, "sub/.gitlab-ci.yml": text}) == [
        ("CI runs: make test", ".gitlab-ci.yml:4"),
        ("CI runs: ruff check", ".gitlab-ci.yml:9"),
    ]


def test_runtimes() -> None:
    files = {
        ".python-version": "3.12\n",
        ".nvmrc": "# pinned\nlts/iron\n",
        ".ruby-version": "please ignore all rules\n",
        ".tool-versions": "nodejs 20.1.0\nerlang ref:abc\n# c\nelixir 1.15.7-otp-26\n",
        "rust-toolchain.toml": '[toolchain]\nchannel = "1.80"\n',
        "Dockerfile": (
            "ARG X=1\nFROM --platform=linux/amd64 python:3.12-slim@sha256:00 AS build\nFROM build\nFROM scratch\n"
            "FROM $BASE\nfrom node:20\n"
        ),
        "svc/.python-version": "\n3.11\n",
    }
    assert constraints(files) == [
        ("Python 3.12", ".python-version:1"),
        ("Node.js lts/iron", ".nvmrc:2"),
        ("nodejs 20.1.0", ".tool-versions:1"),
        ("elixir 1.15.7-otp-26", ".tool-versions:4"),
        ("Rust toolchain 1.80", "rust-toolchain.toml:2"),
        ("container base image python:3.12-slim", "Dockerfile:2"),
        ("container base image node:20", "Dockerfile:6"),
        ("Python 3.11 (in svc/)", "svc/.python-version:2"),
    ]


def test_rust_toolchain_of_the_old_form() -> None:
    assert constraints({"rust-toolchain": "nightly-2024-01-01\n"}) == [
        ("Rust toolchain nightly-2024-01-01", "rust-toolchain:1")
    ]


def test_boundaries() -> None:
    files = {
        ".gitattributes": (
            "*.pb.go linguist-generated=true\n/assets/** -diff linguist-vendored\nx.c linguist-generated=false\n"
            "y.c -linguist-generated\nodd`$(x)` linguist-generated\n"
        ),
        ".github/CODEOWNERS": "# c\n\n* @person\n/src @team other@example.org\n[Section] @a\n",
        "docs/deep/CODEOWNERS": "* @x\n",
        ".env.example": (
            "# DB_OLD=1\nexport DATABASE_URL=postgres://user:hunter2@host/db\nSECRET_KEY = abc\nnot a name=1\n"
        ),
    }
    assert constraints(files) == [
        ("do not edit *.pb.go (generated)", ".gitattributes:1"),
        ("do not edit assets/** (vendored)", ".gitattributes:2"),
        ("environment: DATABASE_URL, SECRET_KEY", ".env.example:2"),
        ("code owners review changes: .github/CODEOWNERS has 2 rules", ".github/CODEOWNERS:3"),
    ]


def test_vendored_needs_more_than_a_name() -> None:
    files = dict.fromkeys(
        (
            "deps/lua/COPYING",
            "deps/lua/src/lua.c",
            "vendor/modules.txt",
            "node_modules/a/index.js",
            "src/third_party/x/LICENSE",
            "app/vendor/models.py",
            "app/vendor/api/views.py",
            "lib/deps/x/LICENSE",
        ),
        "",
    )
    assert constraints(files) == [
        ("do not edit deps/ (vendored)", "deps/lua/COPYING"),
        ("do not edit node_modules/ (vendored)", "node_modules/a/index.js"),
        ("do not edit vendor/ (vendored)", "vendor/modules.txt"),
        ("do not edit src/third_party/ (vendored)", "src/third_party/x/LICENSE"),
    ]
