"""Scripts of a repository's own (`./runtest`, `script/test`), and how their usage text says that one test is chosen.

A name tells what a script is for, and a shebang that it is meant to be started. One that needs arguments, or that throws
work away or publishes, is no command to hand to an agent.
"""

from __future__ import annotations

import re

from carbon_mind.repo.facts import cargo, golang, make, node, python_config, python_envs, python_project, recipes
from carbon_mind.repo.facts.context import Context, Wants, directory, join, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import kind_of
from carbon_mind.repo.facts.text import lines, numbered, quote, words
from carbon_mind.values import CommandKind, ProjectFacts, RepoPath

_OWN_TEST = (
    "runtest",
    "runtests",
    "run_tests",
    "run-tests",
    "runtests.py",
    "runtests.sh",
    "run_tests.sh",
    "run-tests.sh",
)
_NAMED = ("test", "tests", "build", "lint", "check", "fmt", "format", "typecheck", "run", "serve", "start", "server")
_CI = ("cibuild", "ci")  # runs the tests, and counts where no test script stands beside it
_SETUP = ("bootstrap", "setup")  # names of GitHub's "scripts to rule them all", and of Rails
_STEMS = _NAMED + _CI + _SETUP

WANTS = Wants(
    names=(*_OWN_TEST, *(f"{stem}{suffix}" for stem in _STEMS for suffix in ("", ".sh"))),
    under=("", "script", "scripts", "bin", "tools", "hack"),
    limit=12,
)

# An option that takes exactly one name, as usage texts show it: `--single <unit>   Just execute ...`.
_USAGE = re.compile(r"""[\s"'\[]*(--(?:single|only|filter|test|tests|test-name|run))[ =](<[\w -]{1,30}>)""")
_FILE = re.compile(r"[\w./-]{3,120}")

_SHELL = re.compile(r"#!\s*/\S*?(?:/env\s+)?\b(bash|dash|zsh|ksh|sh)\b(?:\s|\Z)")
_NEEDS = re.compile(r"\$\{\w+:?\?|\$1\b|\$\{1\}")
_HARMS = re.compile(
    r"\bgit\s+(?:clean|push|reset\s+--hard)\b|\bsudo\b|\brm\s+-\w+\s+[\"']?(?:/|~|\$HOME)"
    r"|\b(?:npm|pnpm|yarn|cargo|poetry|uv|hatch|flit)\s+publish\b|\btwine\s+upload\b|\bdocker\s+push\b|\bgem\s+push\b"
    r"|\bkubectl\s+(?:apply|delete)\b|\bterraform\s+(?:apply|destroy)\b"
)
_TESTS = re.compile(
    r"\b(?:pytest|tox|nox|rspec|phpunit|ctest|(?:cargo|go|npm|pnpm|yarn|mix|make|gradlew?|mvnw?) test)\b"
)
_FRAME = re.compile(r"(?:set|cd|pushd|popd)(?:\s|\Z)|#")
_PASSED_ON = re.compile(r"""\s+["']?\$[@*]["']?(?=\s|\Z)|\A(?:exec)\s+""")
_OPERATORS = re.compile(r"[;&|<>()`$\\]|\b(?:if|for|while|case|function)\b")
_RUNNER = re.compile(
    r"\A(?:(?:uv|poetry|pdm|pipenv|hatch) run |python3? -m |bundle exec )|(?<=npm)(?: run)|(?<=yarn)(?: run)"
)
_NO_RUN_IN = words("bin")  # what starts there is the product's program, or a tool's
_SETUP_IN = words("script scripts bin")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """The script itself, and one test when the script or a file that it starts documents an option for it."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if not text.startswith("#!"):
        return found.done()
    if name in _OWN_TEST:
        _own_test(found, path, text, context)
    elif not (_NEEDS.search(text) or _HARMS.search(text)):
        _named(found, path, text, context)
    return found.done()


def _own_test(found: Found, path: RepoPath, text: str, context: Context) -> None:
    call = quote(f"./{path}")
    found.command("test", call, 1, here=False)
    for place in [path, *_started(path, text, context)]:
        shown = [(n, m) for n, row in numbered(context.text(place) or "") if (m := _USAGE.match(row))]
        if shown:
            number, match = shown[0]
            found.command("test-one", f"{call} {match.group(1)} {match.group(2)}", number, place, here=False)
            break


def _named(found: Found, path: RepoPath, text: str, context: Context) -> None:
    parent, _, name = path.rpartition("/")
    shell = _SHELL.match(lines(text)[0])
    if name.endswith(".sh") and not shell:
        return
    # Whether it may be executed is not known here; a file with an extension is often started with its shell.
    call = f"{shell.group(1)} {quote(path)}" if shell and name.endswith(".sh") else quote(f"./{path}")
    stem = name.removesuffix(".sh")
    if stem in _SETUP:
        first = next(s for s in _SETUP if context.has(join(parent, s)) or context.has(join(parent, f"{s}.sh")))
        if parent in _SETUP_IN and stem == first:
            found.constraint(f"setup: {call}", 1)
        return
    kind = _kind(stem, parent, text, context)
    if kind and not (kind == "run" and parent in _NO_RUN_IN):
        wrapped = _wrapped(text)
        if not wrapped or wrapped not in _listed(context):
            found.command(kind, call, 1, here=False)


def _kind(stem: str, parent: str, text: str, context: Context) -> CommandKind | None:
    if stem in _CI:
        beside = any(context.has(join(parent, name)) for name in ("test", "test.sh", "tests", "tests.sh"))
        return "test" if not beside and _TESTS.search(text) else None
    if stem == "check" and _TESTS.search(text):
        return "test"
    return "run" if stem == "server" else kind_of(stem)


def _wrapped(text: str) -> str:
    """The one command that a script consists of, or ""."""
    rows = [row.strip() for row in lines(text) if row.strip() and not _FRAME.match(row.strip())]
    command = _PASSED_ON.sub("", rows[0]) if len(rows) == 1 else ""
    return "" if _OPERATORS.search(command) else _bare(command.removesuffix(" --"))


def _listed(context: Context) -> set[str]:
    """Commands that the ecosystems before this one offer at the root."""
    before = (make, recipes, node, python_project, python_config, python_envs, cargo, golang)
    return {
        _bare(command.command)
        for module in before
        for path in context.choose(module.WANTS)
        if not directory(path) and (text := context.text(path)) is not None
        for command in module.facts(path, text, context).commands
    }


def _bare(command: str) -> str:
    """A command without what only brings its environment: `uv run pytest` and `python -m pytest` are `pytest`."""
    return " ".join(_RUNNER.sub("", command).split())


def _started(path: str, text: str, context: Context) -> list[str]:
    found = [word for _, row in numbered(text) if not row.startswith("#") for word in _FILE.findall(row)]
    names = dict.fromkeys(word.removeprefix("./") for word in found)
    return [name for name in names if name != path and context.has(name) and ours(name)][:3]
