"""What a target, script, recipe or session is for, told by its name.

Only names that mean the same everywhere are listed; the order within a kind is the order of importance.
"""

from __future__ import annotations

from collections.abc import Iterable

from carbon_mind.values import CommandKind

MAX_TASKS = 40

_NAMES: dict[CommandKind, str] = {
    "build": "build compile build-all",
    "test": "test tests unit test-unit unit-test unit-tests unittest test-all tests-all spec pytest phpunit pest rspec "
    "vitest jest mocha integration-test integration-tests test-integration test-e2e e2e",
    "lint": "lint check style ruff flake8 eslint clippy vet rubocop phpcs lint-check check-lint pre-commit precommit "
    "quality "
    "format-check check-format fmt-check check-fmt",
    "format": "format fmt black prettier reformat cs-fix fix-cs phpcbf",
    "typecheck": "typecheck type-check types typing mypy pyright check-types types-check tsc phpstan psalm",
    "run": "run start dev serve server demo runserver",
}
_KINDS: dict[str, tuple[CommandKind, int]] = {
    name: (kind, place) for kind, names in _NAMES.items() for place, name in enumerate(names.split())
}


def normal(name: str) -> str:
    """A name with one separator: `test:unit`, `test_unit` and `test-unit` are the same."""
    return name.lower().replace(":", "-").replace("_", "-").replace(".", "-")


def kind_of(name: str) -> CommandKind | None:
    """The kind of a task by its name, or None when the name does not tell."""
    known = _KINDS.get(normal(name))
    return known[0] if known else None


# What a formatter makes right needs no check of its own in a list of commands.
_FORMAT_CHECKS = frozenset({"format-check", "check-format", "fmt-check", "check-fmt"})


def ranked(names: Iterable[str]) -> list[tuple[CommandKind, str]]:
    """(kind, name) of each name that tells its kind, the plainest name of a kind first; otherwise in given order."""
    known = [(*_KINDS[normal(name)], name) for name in names if normal(name) in _KINDS]
    known.sort(key=lambda item: item[1])
    if any(kind == "format" for kind, _, _ in known):
        known = [item for item in known if normal(item[2]) not in _FORMAT_CHECKS]
    return [(kind, name) for kind, _, name in known[:MAX_TASKS]]
