"""Test scripts of a repository's own (`./runtest`), and how their usage text says that one test is chosen."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import numbered, quote
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=(
        "runtest",
        "runtests",
        "run_tests",
        "run-tests",
        "runtests.py",
        "runtests.sh",
        "run_tests.sh",
        "run-tests.sh",
    ),
    limit=2,
)

# An option that takes exactly one name, as usage texts show it: `--single <unit>   Just execute ...`.
_USAGE = re.compile(r"""[\s"'\[]*(--(?:single|only|filter|test|tests|test-name|run))[ =](<[\w -]{1,30}>)""")
_FILE = re.compile(r"[\w./-]{3,120}")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """The script itself, and one test when the script or a file that it starts documents an option for it."""
    found = Found(path)
    if not text.startswith("#!") or directory(path) not in {"", "scripts", "script", "tools", "bin"}:
        return found.done()
    call = quote(f"./{path}")
    found.command("test", call, 1, here=False)
    for place in [path, *_started(path, text, context)]:
        shown = [(n, m) for n, row in numbered(context.text(place) or "") if (m := _USAGE.match(row))]
        if shown:
            number, match = shown[0]
            found.command("test-one", f"{call} {match.group(1)} {match.group(2)}", number, place, here=False)
            break
    return found.done()


def _started(path: str, text: str, context: Context) -> list[str]:
    words = [word for _, row in numbered(text) if not row.startswith("#") for word in _FILE.findall(row)]
    names = dict.fromkeys(word.removeprefix("./") for word in words)
    return [name for name in names if name != path and context.has(name) and ours(name)][:3]
