"""CI gates: one line for each pipeline, whatever its author's taste in YAML."""

from __future__ import annotations

import pytest

from .helpers import constraints

WORKFLOW = """\
name: CI
on:
  pull_request:
env:
  TOOL: cargo
  FLAGS:
jobs:
  test:
    runs-on: x
    strategy:
      matrix:
        python: ['3.11', '3.12']
        task: [lint, types]
        one: [8]
    steps:
      - uses: actions/checkout@v4
      - run: pip install tox
      - name: unit
        run: pytest -q -x  # quick
      - run: pytest -q
      - run: |
          npm ci
          # make nothing
          npm run lint && npm test
          make \\
            bench-check
          curl x | make evil
          cargo test --token abc
      - run: cargo test ${{ secrets.X }}
      - run: ${{ env.TOOL }} test --locked ${{ env.FLAGS }}
      - run: tox -e ${{ matrix.task }}
      - run: hatch test --python ${{ matrix.python }}
      - run: dotnet test -f net${{ matrix.one }}
      - run: cd web && pnpm run build
      - run: cd gone && pnpm run test
      - run: uv pip install pytest
      - run: go vet ./...
        working-directory: ./svc
      - run: ci/test-all --fast
      - run: ./gen-test-data
      - run: cargo --version
"""
FILES = {"ci/test-all": "", "gen-test-data": "", "web/a.js": "", "svc/a.go": ""}
PATH = ".github/workflows/ci.yml"


def ci(text: str, path: str = PATH) -> list[tuple[str, str]]:
    return constraints({path: text, **FILES})


def test_commands_of_a_workflow_tests_first() -> None:
    [(line, source)] = ci(WORKFLOW)
    assert line.split("; ") == [
        "CI (ci.yml): pytest -q",
        "npm test",
        "cargo test --locked",
        "tox -e lint",
        "tox -e types",
        "hatch test --python <python>",
        "dotnet test -f net8",
        "npm run lint and 4 more",
    ]
    assert source == f"{PATH}:20"


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ("make test", "make test"),
        ('"make test"', "make test"),
        ("|\n        make test \\\n          V=1", "make test V=1"),
        (">\n        make\n        test", "make test"),
        (">-\n        make\n        test", "make test"),
        ("sudo apt-get install x && ./configure && make", "./configure; make"),
        ("make test; make lint", "make test; make lint"),
        ("|\n        make test  # it's quick", "make test"),
        ("|\n        pytest -k '# x'", "pytest -k '# x'"),
        # Rows that a careless expression would take minutes over.
        ("|\n        " + '\\"' * 50_000, ""),
        ("|\n        make " + "${{ " * 400, ""),
        ("|\n        " + "make ${{ " * 10_000, ""),
        ("|\n        cd web\n        npm test", "npm test (in web)"),
        ("|\n        cd web\n        cd ..\n        npm test", "npm test"),
        ("|\n        cd $HOME\n        npm test", ""),
        ("|\n        cat <<EOF\n        make test\n        EOF\n        make lint", "make lint"),
        ("bundle exec rake test && bundle exec rubocop", "bundle exec rake test; bundle exec rubocop"),
        ("mvn -B clean install", "mvn -B clean install"),
        ("npm ci && npm install", ""),
        ("make install", ""),
        ("pytest || true", ""),
        ("pytest $(cat x)", ""),
        ("pytest -k 'a (b)'", "pytest -k 'a (b)'"),
        ("pytest --api-key=1", ""),
        ("python -m pytest", "python -m pytest"),
        ("python -m pip install .", ""),
        ("python ci/test-all", "python ci/test-all"),
        ("pytest ${{ inputs.x }}", ""),
        ("pytest ${{ matrix.gone }}", ""),
        ("pytest ${{ matrix.gone || '' }} -q", "pytest -q"),
    ],
)
def test_from_a_script_to_its_commands(run: str, shown: str) -> None:
    text = f"on: push\njobs:\n  a:\n    steps:\n    - run: {run}\n"
    expected = f"CI (ci.yml): {shown}" if shown else ""
    assert [text for text, _ in ci(text)] == ([expected] if shown else [])


def test_indentation_and_flow_style_do_not_matter() -> None:
    flow = "on: [push]\njobs: {a: {steps: [{run: make test}, {run: make lint}]}}\n"
    block = "'on':\n      push:\njobs:\n      a:\n            steps:\n            - run: make test\n            - run: make lint\n"
    anchors = "on: push\njobs:\n  a:\n    steps: &s\n    - run: make test\n    - run: make lint\n  b:\n    steps: *s\n"
    for text in (flow, block, anchors):
        assert [text for text, _ in ci(text)] == ["CI (ci.yml): make test; make lint"]


def test_steps_in_groups_and_default_directories() -> None:
    text = (
        "on: push\ndefaults: {run: {working-directory: web}}\njobs:\n  a:\n    steps:\n    - parallel:\n"
        "      - run: npm test\n      - run: npm run lint\n  b:\n    defaults: {run: {working-directory: svc}}\n"
        "    steps:\n    - run: go test ./...\n"
    )
    assert [text for text, _ in ci(text)] == [
        "CI (ci.yml): npm test (in web); go test ./... (in svc); npm run lint (in web)"
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
    assert bool(ci(text, f".github/workflows/{name}")) is gate


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ("github.event_name == 'schedule'", False),
        ("startsWith(github.ref, 'refs/tags/')", False),
        ("failure()", False),
        ("github.event_name == 'push' || github.event_name == 'schedule'", True),
        ("matrix.os == 'linux'", True),
    ],
)
def test_conditions_of_other_events(condition: str, runs: bool) -> None:
    text = f"on: push\njobs:\n  a:\n    if: {condition}\n    steps:\n    - run: make test\n"
    assert bool(ci(text)) is runs


def test_at_most_three_pipelines_the_gate_of_the_main_branch_first() -> None:
    body = "jobs:\n  a:\n    steps:\n    - run: make {}\n"
    folder = ".github/workflows/"
    files = {
        f"{folder}a.yml": "on: {push: {branches: [feature]}}\n" + body.format("a"),
        f"{folder}b.yml": "on: workflow_call\n" + body.format("b"),
        f"{folder}d.yml": "on: pull_request\n" + body.format("d"),
        f"{folder}test.yml": "on: pull_request\njobs:\n  x:\n    uses: ./.github/workflows/z.yml\n",
        f"{folder}z.yml": "on: workflow_call\n" + body.format("z"),
    }
    assert [text for text, _ in constraints(files)] == [
        "CI (d.yml): make d",
        "CI (z.yml): make z",
        "CI (a.yml): make a",
    ]


def test_a_line_is_bounded_by_whole_commands() -> None:
    steps = "".join(f"    - run: make target-number-{number:02}\n" for number in range(30))
    [(line, _)] = ci(f"on: push\njobs:\n  a:\n    steps:\n{steps}")
    assert line.endswith("; make target-number-04 and 25 more")
    assert len(line) <= 160


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        (".gitlab-ci.yml", "test:\n  script:\n    - make test\n    - echo hi\ndeploy:\n  script: make x\n", 3),
        (".circleci/config.yml", "jobs:\n  a:\n    steps:\n    - checkout\n    - run: {command: make test}\n", 5),
        (".travis.yml", "install: make deps\nscript: make test\n", 2),
        ("azure-pipelines.yml", "steps:\n- script: make test\n  displayName: x\n", 2),
    ],
)
def test_other_services(path: str, text: str, line: int) -> None:
    name = path.removeprefix(".circleci/")
    assert constraints({path: text, f"sub/{path}": text}) == [(f"CI ({name}): make test", f"{path}:{line}")]
