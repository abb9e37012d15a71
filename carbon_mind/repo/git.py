"""git as a source of facts: which files there are, and the blob id of each, without running anything of the repository.

Every call switches off what a repository's own configuration could start (hooks, fsmonitor, prompts, lazy fetches of a partial clone) and ignores the GIT_* variables that a surrounding hook may have set.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SAFE = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.quotePath=false"),
)
# A hook runs with these set; with them, `-C` would not decide which repository is read.
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


@dataclass(frozen=True, slots=True)
class GitFailed(Exception):
    """git is missing or refused. `reason` is one line for a person."""

    reason: str
    bare: bool = False


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One path of the index: `mode` as octal text, `blob` as hex, `stage` 0 unless in conflict."""

    path: str
    mode: str
    blob: str
    stage: int


@dataclass(frozen=True, slots=True)
class Status:
    """What differs from the index. Paths end in `/` when git shows a nested repository."""

    changed: frozenset[str]  # the working tree's content differs from the index's
    deleted: frozenset[str]
    untracked: tuple[str, ...]


def _environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # C locale: messages are matched below. Optional locks: a background `git status` must never block the user's commit.
    env.update(LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1")
    return env


def run(where: Path, *args: str) -> bytes:
    """Standard output of `git ARGS` in `where`. Raises GitFailed with git's own first line."""
    try:
        done = subprocess.run(
            ["git", *_SAFE, *args],
            cwd=where,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as problem:
        raise GitFailed("git is not installed or cannot be started") from problem
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        first = lines[0] if lines else f"git ended with exit status {done.returncode}"
        raise GitFailed(first.removeprefix("fatal: "), bare="must be run in a work tree" in first)
    return done.stdout


def toplevel(where: Path) -> Path:
    """The root of the working tree that holds `where`. Raises GitFailed (not a repository, bare, dubious ownership ...)."""
    return Path(os.fsdecode(run(where, "rev-parse", "--show-toplevel").rstrip(b"\n")))


def index(root: Path) -> list[IndexEntry]:
    """Everything in the index, in git's order (bytes of the path)."""
    entries = []
    for record in run(root, "ls-files", "--stage", "-z").split(b"\0"):
        if record:
            meta, _, path = record.partition(b"\t")
            mode, blob, stage = meta.split(b" ")
            entries.append(IndexEntry(os.fsdecode(path), mode.decode(), blob.decode(), int(stage)))
    return entries


def status(root: Path) -> Status:
    """The working tree against the index, untracked files included, ignored ones not. Format: `git status --porcelain=v2`."""
    raw = run(
        root, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"
    )
    changed, deleted, untracked = set(), set(), []
    for record in raw.split(b"\0"):
        kind = record[:2]
        if kind == b"1 ":
            _, xy, _sub, _mh, _mi, _mw, _hh, _hi, path = record.split(b" ", 8)
            if xy[1:2] == b"D":
                deleted.add(os.fsdecode(path))
            elif xy[1:2] != b".":
                changed.add(os.fsdecode(path))
        elif kind == b"u ":
            changed.add(os.fsdecode(record.split(b" ", 10)[10]))
        elif kind == b"? ":
            untracked.append(os.fsdecode(record[2:]))
    return Status(frozenset(changed), frozenset(deleted), tuple(untracked))
