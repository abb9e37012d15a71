"""CI pipelines as steps: what one runs, where, with which variables; and whether it stands before a merge.

One reader per service, chosen by the path. What is not written in the pipeline itself (inputs, secrets, other
repositories' actions) is unknown here, and a command that needs it is left out by `ci`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from carbon_mind.repo.facts.text import word
from carbon_mind.repo.facts.yaml_tree import Fields, Text, Tree, at, fields, items, text, texts

WORKFLOWS = ".github/workflows/"
UNKNOWN = "?"  # a directory that only the run itself knows

# Pipelines and jobs with these names do not stand between a change and its merge, whatever starts them.
_NO_GATE = re.compile(
    r"daily|nightly|weekly|cron|schedul|release|publish|deploy|external|stale|autofix|label|bench|size|upload|codeql|coverity"
)
_NO_GATE_JOB = re.compile(r"nightly|release|publish|deploy|\blabel|stale|benchmark")
_OTHER_EVENT = re.compile(r"event_name\s*==\s*['\"](?:schedule|release|workflow_dispatch)|refs/tags|\bfailure\(")
_CHANGE_EVENT = re.compile(r"['\"](?:push|pull_request|merge_group)['\"]|\bsuccess\(")
_MAIN = re.compile(r"[*]+|main|master|trunk|dev|develop|default|next|\d[\d.x]*|v\d.*")
_MAX_MATRIX = 40


@dataclass(frozen=True, slots=True)
class Step:
    """A script with its directory and the values that its variables are known to have."""

    script: Text
    directory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    matrix: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`rank`: 0 runs for changes of the main branch, 1 for some changes, 2 only when another pipeline calls it."""

    steps: tuple[Step, ...]
    rank: int = 0
    calls: tuple[str, ...] = ()


def pipeline(path: str, tree: Tree) -> Pipeline | None:
    """The pipeline of a file, or None when it is none or does not gate changes."""
    name = path.rpartition("/")[2]
    if path.startswith(WORKFLOWS):
        return None if _NO_GATE.search(name) else _github(tree)
    reader = _READERS.get(path.removesuffix(".yaml").removesuffix(".yml"))
    return Pipeline(tuple(reader(tree)), 1) if reader else None


# --- GitHub ---------------------------------------------------------------------------------------------------------


def _github(tree: Tree) -> Pipeline | None:
    rank = _rank(at(tree, "on"))
    if rank is None:
        return None
    steps: list[Step] = []
    calls: list[str] = []
    shared = _env(tree)
    everywhere = text(at(tree, "defaults", "run", "working-directory"))
    for name, job in fields(at(tree, "jobs")).items():
        if _NO_GATE_JOB.search(name.lower()) or _elsewhen(job):
            continue
        called = text(at(job, "uses"))
        if called.startswith("./" + WORKFLOWS):
            calls.append(called.removeprefix("./"))
        env = {**shared, **_env(job)}
        place = text(at(job, "defaults", "run", "working-directory")) or everywhere
        matrix = _matrix(at(job, "strategy", "matrix"))
        for step in _nested(at(job, "steps"), "run"):
            script = at(step, "run")
            if isinstance(script, Text) and not _elsewhen(step):
                where = _directory(text(at(step, "working-directory")) or place)
                steps.append(Step(script, where, {**env, **_env(step)}, matrix))
    return Pipeline(tuple(steps), rank, tuple(calls))


def _rank(on: Tree | None) -> int | None:
    """None for a workflow that runs by the clock, by hand or for a tag only."""
    events: dict[str, Tree | None] = {event.value: None for event in texts(on)} or dict(fields(on))
    ranks = [
        0 if _for_main(events[event]) else 1
        for event in ("pull_request", "pull_request_target", "merge_group", "push")
        if event in events and not (event == "push" and _only_tags(events[event]))
    ]
    if "workflow_call" in events:
        ranks.append(2)
    return min(ranks, default=None)


def _only_tags(filters: Tree | None) -> bool:
    return bool({"tags", "tags-ignore"} & fields(filters).keys()) and "branches" not in fields(filters)


def _for_main(filters: Tree | None) -> bool:
    branches = [branch.value for branch in texts(at(filters, "branches"))]
    return "paths" not in fields(filters) and (not branches or any(_MAIN.fullmatch(branch) for branch in branches))


def _elsewhen(tree: Tree) -> bool:
    """Whether the condition of a job or step holds for releases, the clock or failures only."""
    condition = text(at(tree, "if"))
    return bool(_OTHER_EVENT.search(condition)) and not _CHANGE_EVENT.search(condition)


def _env(tree: Tree) -> dict[str, str]:
    return {name: text(value) for name, value in fields(at(tree, "env")).items() if isinstance(value, Text)}


def _matrix(tree: Tree | None) -> dict[str, tuple[str, ...]]:
    """Each variable's values, from its own list and from `include`."""
    values: dict[str, dict[str, None]] = {}
    for name, axis in fields(tree).items():
        if name not in {"include", "exclude"}:
            values[name] = {value.value: None for value in texts(axis)}
    for extra in items(at(tree, "include")):
        for name, value in fields(extra).items():
            if isinstance(value, Text):
                values.setdefault(name, {})[value.value] = None
    return {name: tuple(found)[:_MAX_MATRIX] for name, found in values.items() if found}


def _directory(place: str) -> str:
    place = place.removeprefix("./").rstrip("/")
    return place if word(place) or not place or place == "." else UNKNOWN


def _nested(tree: Tree | None, *keys: str) -> Iterator[Fields]:
    """Mappings with one of the keys, at any depth (steps may stand in groups), in the file's order."""
    if isinstance(tree, Fields):
        if any(key in tree.fields for key in keys):
            yield tree
        else:
            for inner in tree.fields.values():
                yield from _nested(inner, *keys)
    else:
        for item in items(tree):
            if not isinstance(item, Text):
                yield from _nested(item, *keys)


# --- other services -------------------------------------------------------------------------------------------------


def _gitlab(tree: Tree) -> Iterator[Step]:
    env = {name: text(value) for name, value in fields(at(tree, "variables")).items() if isinstance(value, Text)}
    for name, job in fields(tree).items():
        manual = text(at(job, "when")) == "manual" or "release" in fields(job)
        if not manual and not _NO_GATE_JOB.search(f"{name} {text(at(job, 'stage'))}".lower()):
            for script in texts(at(job, "script")):
                yield Step(script, "", env)


def _circle(tree: Tree) -> Iterator[Step]:
    for name, job in fields(at(tree, "jobs")).items():
        for step in () if _NO_GATE_JOB.search(name.lower()) else _nested(at(job, "steps"), "run"):
            run = at(step, "run")
            script = run if isinstance(run, Text) else at(run, "command")
            if isinstance(script, Text):
                yield Step(script, _directory(text(at(run, "working_directory"))))


def _travis(tree: Tree) -> Iterator[Step]:
    for job in (tree, *items(at(tree, "jobs", "include")), *items(at(tree, "matrix", "include"))):
        for script in texts(at(job, "script")):
            yield Step(script)


def _azure(tree: Tree) -> Iterator[Step]:
    for step in _nested(tree, "script", "bash"):
        script = at(step, "script") or at(step, "bash")
        if isinstance(script, Text):
            yield Step(script, _directory(text(at(step, "workingDirectory"))))


_READERS: dict[str, Callable[[Tree], Iterator[Step]]] = {
    ".gitlab-ci": _gitlab,
    ".circleci/config": _circle,
    ".travis": _travis,
    "azure-pipelines": _azure,
}
