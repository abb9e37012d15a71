"""CI gates: the lines by which a pull request is tested, linted and built.

Read line by line, without YAML: what is wanted is one line that a person can find, and a command that does not fit on
one line, depends on an expression, or mentions a credential is left out anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from carbon_mind.repo.facts.context import Context, Wants
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import clean, lines, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=(".gitlab-ci.yml",),
    suffixes=(".yml", ".yaml"),
    under=("", ".github/workflows"),
    first=("ci", "test", "check", "main", "lint", "build", "pull"),
    limit=40,
)
MAX_PER_FILE = 6

_TOOLS = words(
    "make just task tox nox pytest ruff black flake8 mypy pyright pre-commit hatch npm pnpm yarn bun deno npx "
    "vitest jest eslint tsc biome cargo go golangci-lint staticcheck cmake ctest meson ninja mvn ./mvnw gradle "
    "./gradlew bundle rake rspec rubocop composer phpunit dotnet mix swift zig bazel ./configure"
)
_THROUGH = words("uv poetry pdm pipenv uvx pipx python python3 env time xvfb-run")
_SETUP = words(
    "install i add get publish login logout sync update upgrade fetch download config cache global import whoami "
    "version help deploy release pack link init create restore pip"
)
_NODE = words("npm pnpm yarn bun")
_OWN_SCRIPT = re.compile(r"test|lint|check|build|verify|format")
_SECRET = re.compile(r"token|secret|passw|api_?key|credential|private_?key|://[^/\s]*@", re.IGNORECASE)
_SHELL = re.compile(r"[;|<>`\\$]|(?<!&)&(?!&)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_ON = re.compile(r"""["']?on["']?\s*:|true\s*:""")
_RUN = re.compile(r"(?:- +)?run:\s*(.*)")
_SCRIPT = re.compile(r"(?:script|before_script):\s*(.*)")
_DIRECTORY = re.compile(r"(?:- +)?working-directory:\s*(.*)")
# Workflows with these names do not stand between a change and its merge, whatever starts them.
_NO_GATE = re.compile(
    r"daily|nightly|weekly|cron|schedul|release|publish|deploy|external|stale|autofix|label|size|bench"
)
_PREPARES = re.compile(r"\b(?:gen|generate|install|setup|download|upload)\b")


@dataclass(slots=True)
class Step:
    """The lines that one step runs, and where."""

    commands: list[tuple[int, str]]
    directory: str = ""


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """`CI runs: <command>` for each distinct check of one pipeline file."""
    found = Found(path)
    rows = lines(text)
    if path == ".gitlab-ci.yml":
        steps = _gitlab(rows)
    elif path.startswith(".github/workflows/") and not _NO_GATE.search(path.rpartition("/")[2]) and _is_gate(rows):
        steps = _steps(rows)
    else:
        return found.done()
    seen: set[tuple[str, ...]] = set()
    for step in steps:
        for number, command in step.commands:
            key = _key(command, context)
            if not key or (step.directory, *key) in seen or len(seen) >= MAX_PER_FILE:
                continue
            seen.add((step.directory, *key))
            if len(command) <= 140:
                suffix = f" (in {step.directory})" if step.directory else ""
                found.constraint(f"CI runs: {command}{suffix}", number)
    return found.done()


def _is_gate(rows: list[str]) -> bool:
    """Whether the workflow runs for changes, not for releases or by the clock."""
    inside = False
    events: list[str] = []
    for row in rows:
        if row and not row[0].isspace() and not row.startswith("#"):
            inside = bool(_ON.match(row))
        if inside:
            events.append(row.split("#")[0])
    text = "\n".join(events)
    if re.search(r"\bpull_request\b|\bmerge_group\b|\bworkflow_call\b", text):
        return True
    return bool(re.search(r"\bpush\b", text)) and not re.search(r"\btags\s*:", text)


def _steps(rows: list[str]) -> Iterator[Step]:
    """Steps of a workflow; `working-directory` may stand before or after `run`, or among a job's defaults."""
    step = Step([])
    everywhere = default = ""  # directory of the workflow's and of the current job's steps
    in_jobs = False
    block = -1  # indentation of the `run: |` whose lines are being read
    folded = False  # `run: >` joins its lines into one command, so none of them is one
    at = -1  # indentation of the current step's dash
    for number, row in enumerate(rows, start=1):
        bare = row.lstrip()
        if not bare or bare.startswith("#"):
            continue
        indent = len(row) - len(bare)
        if block >= 0 and indent > block:
            if not folded and not rows[number - 2].endswith("\\"):
                step.commands.append((number, _unquoted(bare)))
            continue
        block = -1
        in_jobs = (in_jobs and indent > 0) or row.startswith("jobs:")
        step_line = bare.startswith("- ") and (at < 0 or indent <= at)
        if step_line or (at >= 0 and indent < at):
            yield Step(step.commands, step.directory or default)
            step, at = Step([]), indent if step_line else -1
        if in_jobs and indent == 2:
            default = everywhere  # another job
        if match := _DIRECTORY.match(bare):
            if at >= 0:
                step.directory = _plain(match.group(1))
            else:
                default = _plain(match.group(1))
                everywhere = everywhere if in_jobs else default
        elif match := _RUN.match(bare):
            value = match.group(1).strip()
            if value[:1] in {"|", ">"}:
                block = indent + (2 if bare.startswith("- ") else 0)
                folded = value[0] == ">"
            elif value:
                step.commands.append((number, _unquoted(value)))
    yield Step(step.commands, step.directory or default)


def _gitlab(rows: list[str]) -> Iterator[Step]:
    """Each `script:` list as a step."""
    inside = -1
    for number, row in enumerate(rows, start=1):
        bare = row.lstrip()
        if not bare or bare.startswith("#"):
            continue
        indent = len(row) - len(bare)
        if match := _SCRIPT.match(bare):
            inside = indent
            if match.group(1):
                yield Step([(number, _unquoted(match.group(1)))])
        elif inside >= 0 and bare.startswith("- ") and indent >= inside:
            yield Step([(number, _unquoted(bare[2:].strip()))])
        elif indent <= inside:
            inside = -1


def _plain(place: str) -> str:
    return word(_unquoted(place).removeprefix("./")) or "another directory"


def _unquoted(value: str) -> str:
    """Without a trailing comment, and without quotes around the whole."""
    value = value.strip()
    if value[:1] not in "\"'":
        value = value.partition(" #")[0].rstrip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _key(command: str, context: Context) -> tuple[str, ...]:
    """What the command is at heart (tool and sub-command), so that variants count once; () when it is no check."""
    if "${{" in command or clean(command) != command or _SECRET.search(command) or _SHELL.search(command):
        return ()
    heart: tuple[str, ...] = ()
    for part in command.split("&&"):
        words = [item for item in part.split() if not _ASSIGNMENT.match(item.strip("\"'"))]
        if not words:
            return ()
        if words[0] == "cd":
            continue
        own = "/" in words[0] and _own_script(words[0], context)
        tool = next((i for i, item in enumerate(words) if item in _TOOLS), -1) if words[0] in _THROUGH else 0
        if not own and (tool < 0 or words[tool] not in _TOOLS):
            return ()
        plain = [item for item in words[tool:] if not item.startswith("-")]
        if not own and _prepares(words[1:tool], plain):
            return ()
        heart = heart or tuple(plain[:3] if "run" in plain[1:2] else plain[:2])
    return heart


def _prepares(before: list[str], plain: list[str]) -> bool:
    """Whether the words before the tool, or its sub-command, set something up instead of checking something."""
    verbs = plain[1:2]
    installs = "install" in plain[1:4] or (plain[0] in _NODE and verbs == ["ci"])
    return installs or any(item in _SETUP for item in (*before, *verbs))


def _own_script(name: str, context: Context) -> bool:
    path = name.removeprefix("./")
    name = path.rpartition("/")[2].replace("_", "-")
    return context.has(path) and bool(_OWN_SCRIPT.search(name)) and not _PREPARES.search(name)
