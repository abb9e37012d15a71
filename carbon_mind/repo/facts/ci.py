"""CI gates: one line for each pipeline, with the commands by which a change is built, tested and linted.

A command is quoted as it runs or not at all: one that needs a secret, an input or a shell feature that a reader cannot
repeat is left out, and so is what only prepares the machine. Of several variants the first stands for all, or the
one without its extra options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from carbon_mind.repo.facts.context import Context, Wants, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.pipelines import UNKNOWN, WORKFLOWS, Pipeline, Step, pipeline
from carbon_mind.repo.facts.text import clean, word, words
from carbon_mind.repo.facts.yaml_tree import parse_yaml
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(tree=True)
MAX_LINES = 3
ROOM = 146  # leaves room for "and 100 more" within the length of a fact

_FILES = Wants(
    suffixes=(".yml", ".yaml"),
    under=("", ".github/workflows", ".circleci"),
    first=("ci", "test", "check", "main", "lint", "build", "pull"),
    limit=40,
)
_MAIN_GATE = re.compile(
    r"(?:^|[^a-z])(?:ci|cicd|tests?|main|checks?|build|pr|pull)(?:[-_.](?:suite|matrix)|\.ya?ml)|continuous"
)
_TOOLS = words(
    "make just task tox nox pytest unittest ruff black flake8 mypy pyright pre-commit prek hatch npm pnpm yarn bun "
    "deno npx vitest jest eslint tsc biome cargo cross go golangci-lint staticcheck mage cmake ctest meson ninja mvn "
    "./mvnw gradle ./gradlew sbt bundle rake rspec rubocop bin/rails composer phpunit vendor/bin/phpunit "
    "vendor/bin/phpstan dotnet mix swift zig bazel bazelisk stack cabal ./configure shellcheck actionlint codespell"
)
_THROUGH = words("uv poetry pdm pipenv uvx pipx python python3 env time xvfb-run coverage")
_INTERPRETERS = words("python python3 node ruby php bash sh")
_SETUP = words(
    "install i add get publish login logout sync update upgrade fetch download config cache global import whoami "
    "version help deploy release pack link init create restore require pip mod env tool local.hex local.rebar deps.get "
    "deps.compile sdk workload setup nuget"
)
_LAUNCHERS = words("run exec x -m")
_NODE = words("npm pnpm yarn bun")
_MAVEN = words("mvn ./mvnw")
_QUESTIONS = words("--version -V --help")
_MAX_ROW = 2000
_MAX_COMMAND = 400  # characters, before its variables have their values
_LONGEST = 25  # words: more is no line to repeat by hand
_OWN_SCRIPT = re.compile(r"test|lint|check|build|verify|format|manage")
_SECRET = re.compile(r"token|secret|passw|api[_-]?key|credential|private[_-]?key|://[^/\s]*@", re.IGNORECASE)
_SHELL = re.compile(r"[;|<>`\\$(){}]|(?<!&)&(?!&)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_TESTS = re.compile(r"(?<![a-z])(?:run)?tests?(?![a-z])|pytest|\btox\b|phpunit|rspec|verify")
_REPORTS = re.compile(r"\bcoverage[:-]|report|summary|changelog", re.IGNORECASE)
_PREPARES = re.compile(r"\b(?:gen|generate|install|setup|download|upload)\b")
_QUOTED = re.compile(r"'[^']*'")
_OR_NOTHING = re.compile(r"\s*\|\|\s*''\Z")
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
_PIECES = re.compile(r"""'[^']*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|&&|;|[^'"&;]+|.""")
_COMMENT = re.compile(r"(?:^|\s)#")
_OPEN = "\ue000"  # around the name of a variable of the matrix; `clean` would remove it, so no text has it
_CLOSE = "\ue001"
_PLACE = re.compile(f"{_OPEN}([\\w.-]+){_CLOSE}")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """`CI (file): command; command`, for the pipelines that gate changes of the main branch first."""
    found = Found("")
    added = 0
    for place, gate in _gates(context):
        checks = _checks(gate, context)
        name = place.rpartition("/")[2] if place.startswith((WORKFLOWS, ".circleci/")) else place
        line = ""
        shown: list[int] = []
        for command, number in checks.items():
            longer = f"{line}; {command}" if shown else f"CI ({name}): {command}"
            if len(longer) <= ROOM:
                line = longer
                shown.append(number)
        if shown and added < MAX_LINES:
            added += 1
            rest = len(checks) - len(shown)
            found.constraint(line + (f" and {rest} more" if rest else ""), shown[0], place)
    return found.done()


def _gates(context: Context) -> list[tuple[RepoPath, Pipeline]]:
    read = [
        (path, gate)
        for path in context.choose(_FILES)
        if (text := context.text(path)) is not None and (gate := pipeline(path, parse_yaml(text))) is not None
    ]
    called = {name: gate.rank for _, gate in reversed(read) for name in gate.calls}

    def order(item: tuple[RepoPath, Pipeline]) -> tuple[bool, bool, int]:
        path, gate = item
        rank = min(gate.rank, called.get(path, gate.rank))
        return rank == 2, not _MAIN_GATE.search(path.rpartition("/")[2].lower()), rank

    return sorted(read, key=order)


def _checks(gate: Pipeline, context: Context) -> dict[str, int]:
    """Command -> line; commands that are one at heart stand at the place of the first."""
    chosen: dict[tuple[str, ...], tuple[str, int]] = {}
    for step in gate.steps:
        for number, place, command in _commands(step, context):
            for variant in _variants(command, step, place, context):
                key = (place, *_heart(variant, place, context))
                shown = _PLACE.sub(r"<\1>", variant) + (f" (in {place})" if place else "")
                if len(shown) <= ROOM - 20 and (key not in chosen or _plainer(shown, chosen[key][0])):
                    chosen[key] = (shown, number)
    # What tests comes first, because a full line loses its end.
    return dict(sorted(chosen.values(), key=lambda item: not _TESTS.search(item[0])))


def _plainer(command: str, other: str) -> bool:
    return set(command.split()) < set(other.split())


# --- from a script to its commands ----------------------------------------------------------------------------------


def _commands(step: Step, context: Context) -> Iterator[tuple[int, str, str]]:
    """(line, directory, command) of each simple command; `cd` moves the ones behind it. A directory that only the run
    has is another repository's."""
    place = resolve("", step.directory)
    until = ""
    for number, row in _rows(step):
        if len(row) > _MAX_ROW:
            continue
        if until:
            until = "" if row.strip() == until else until
            continue
        if match := _HEREDOC.search(row):
            until = match.group(1)
            continue
        for part in _split(_bare(row)):
            if part.startswith(("cd ", "pushd ", "popd", "(", "#")):
                inner = part.removeprefix("cd ").strip()
                plain = part.startswith("cd ") and (word(inner) or inner == "..") and not inner.startswith("-")
                place = resolve(place, inner) if plain and place != UNKNOWN else UNKNOWN
            elif len(part) <= _MAX_COMMAND and UNKNOWN not in (place, step.directory) and _exists(place, context):
                yield number, place, part


def _bare(row: str) -> str:
    """Without the comment: the first `#` that no open quote holds."""
    for match in _COMMENT.finditer(row):
        before = row[: match.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            return before
    return row


def _exists(place: str, context: Context) -> bool:
    return not place or next(context.below(place), None) is not None


def _rows(step: Step) -> Iterator[tuple[int, str]]:
    joined = ""
    start = step.script.line
    for number, row in enumerate(step.script.value.split("\n"), start=step.script.line):
        start = start if joined else number
        if row.rstrip().endswith("\\"):
            joined += row.rstrip()[:-1].strip() + " "
            continue
        yield start, joined + row.strip()
        joined = ""


def _split(row: str) -> list[str]:
    parts = [""]
    for piece in _PIECES.findall(row):
        if piece in {"&&", ";"}:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


# --- from a command to what a person can run --------------------------------------------------------------------------


def _variants(command: str, step: Step, place: str, context: Context) -> list[str]:
    """The command with its variables' values. A matrix that only varies an option stays as `<name>`; one that names
    the task gives a command for each."""
    filled = _filled(command, step)
    if filled is None or not _heart(filled, place, context):
        names = _PLACE.findall(filled or "")
        if len(set(names)) != 1:
            return []
    if filled is None:
        return []
    names = list(dict.fromkeys(_PLACE.findall(filled)))
    if len(names) == 1:
        each = [" ".join(filled.replace(f"{_OPEN}{names[0]}{_CLOSE}", v).split()) for v in step.matrix[names[0]]]
        hearts = [heart for variant in each if (heart := _heart(variant, place, context))]
        if len(set(hearts)) > 1 or not _heart(filled, place, context):
            return [variant for variant in each if _heart(variant, place, context)]
    return [" ".join(filled.split())]


def _filled(command: str, step: Step) -> str | None:
    """Known values in place of expressions and variables; None when one is not known."""
    unknown = False

    def expression(match: re.Match[str]) -> str:
        nonlocal unknown
        inner, optional = _OR_NOTHING.subn("", match.group(1))
        scope, _, name = inner.partition(".")
        if scope == "env" and name in step.env:
            return step.env[name]
        if scope == "matrix" and optional:
            return ""  # a run of the matrix without this extra
        values = step.matrix.get(name, ()) if scope == "matrix" else ()
        unknown = unknown or not values
        return values[0] if len(values) == 1 else f"{_OPEN}{name}{_CLOSE}"

    def variable(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return step.env.get(name, match.group())

    command = _EXPRESSION.sub(expression, command)
    command = _EXPRESSION.sub(expression, _VARIABLE.sub(variable, command))
    return None if unknown else command


def _heart(command: str, place: str, context: Context) -> tuple[str, ...]:
    """What the command is at heart (tool and sub-command), so that variants count once; () when it is no check."""
    plain = _PLACE.sub("matrix", command)
    if clean(plain) != " ".join(plain.split()) or _SECRET.search(plain) or _SHELL.search(_QUOTED.sub("", plain)):
        return ()
    parts = plain.split()
    while parts and _ASSIGNMENT.match(parts[0]):
        parts = parts[1:]
    if not parts:
        return ()
    script = parts[1] if parts[0] in _INTERPRETERS and len(parts) > 1 else parts[0]
    if ("/" in script or script is not parts[0]) and _own_script(script, place, context):
        return tuple(part for part in parts if not part.startswith("-"))[:3]
    tool = next((i for i, item in enumerate(parts) if item in _TOOLS), -1) if parts[0] in _THROUGH else 0
    if tool < 0 or parts[tool] not in _TOOLS or _prepares(parts[1:tool], parts[tool:]):
        return ()
    bare = [item for item in parts[tool:] if not item.startswith("-") and not _ASSIGNMENT.match(item)]
    if any(_REPORTS.search(item) for item in bare[1:3]):
        return ()
    if bare[0] in _MAVEN:
        return tuple(item for item in bare if item != "clean")[:3]
    return tuple(bare[: 4 if bare[:2] == ["bundle", "exec"] else 3 if bare[1:2] and bare[1] in _LAUNCHERS else 2])


def _prepares(before: list[str], call: list[str]) -> bool:
    """Whether the words before the tool, or its sub-command, set something up instead of checking something."""
    if _QUESTIONS & set(call) or len(call) > _LONGEST:
        return True
    if call[0] in _MAVEN:
        return False  # `mvn install` is how Maven builds
    bare = [item for item in call if not item.startswith("-")]
    installs = "install" in bare[1:4] or (call[0] in _NODE and bare[1:2] == ["ci"])
    return installs or any(item in _SETUP for item in (*before, *bare[1:2]))


def _own_script(name: str, place: str, context: Context) -> bool:
    path = resolve(place, name)
    plain = path.rpartition("/")[2].replace("_", "-")
    return context.has(path) and bool(_OWN_SCRIPT.search(plain)) and not _PREPARES.search(plain)
