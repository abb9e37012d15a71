"""git as a source of facts: which files there are, and the blob id of each, without running anything of the repository.

Every call switches off what a configuration could start (hooks, fsmonitor, clean and process filters, prompts, lazy fetches of a
partial clone) and ignores the GIT_* variables that a surrounding hook may have set. So a file whose content passes through a filter
(Git LFS) is compared as it stands in the working tree.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from carbon_mind.values import MIND_FOLDER

_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_SAFE = (*_QUIET, "-c", f"core.hooksPath={os.devnull}")
DEADLINE_S = 120
"""For one call; 40 ms are usual, and a large working tree on a cold disk takes some seconds."""

# A hook runs with these set; with them, `-C` would not decide which repository is read.
_FOREIGN = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR",
        "WORK_TREE",
        "INDEX_FILE",
        "PREFIX",
        "OBJECT_DIRECTORY",
        "COMMON_DIR",
        "NAMESPACE",
        "ATTR_SOURCE",
    )
)
_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*?)/?': ", re.M)


class GitFailed(Exception):
    """git is missing or refused. `reason` is one line for a person; `bare` when there is no working tree here."""

    def __init__(self, reason: str, *, bare: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.bare = bare


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One path of the index: `mode` as octal text, `blob` as hex, `stage` 0 unless in conflict."""

    path: str
    mode: str
    blob: str
    stage: int
    unwatched: bool = False  # git was told not to look whether the file changed


@dataclass(frozen=True, slots=True)
class Status:
    """What differs from the index. Paths end in `/` when git shows a nested repository."""

    changed: frozenset[str]  # the working tree's content differs from the index's
    deleted: frozenset[str]
    untracked: tuple[str, ...]
    unreadable: tuple[str, ...] = ()  # directories that git could not list


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a call, with git settings on top of those that the user's environment already holds."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    # C locale: messages are matched below. Optional locks: a background `git status` must never block the user's commit.
    env.update(LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", GIT_NO_LAZY_FETCH="1")
    # Not `-c`: it splits at the first `=`, which the name of a filter may hold.
    count = int(env.get("GIT_CONFIG_COUNT") or 0) if (env.get("GIT_CONFIG_COUNT") or "0").isdecimal() else 0
    for name, value in settings.items():
        env[f"GIT_CONFIG_KEY_{count}"], env[f"GIT_CONFIG_VALUE_{count}"] = name, value
        count += 1
    if settings:
        env["GIT_CONFIG_COUNT"] = str(count)
    return env


def _call(
    where: Path, args: tuple[str, ...], settings: Mapping[str, str], options: tuple[str, ...] = _SAFE
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", os.path.abspath(where), *options, *args],  # noqa: PTH100 - resolves no link, unlike Path.resolve
            env=_environment(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=DEADLINE_S,
        )
    except OSError as problem:
        raise GitFailed("git is not installed or cannot be started") from problem
    except subprocess.TimeoutExpired as problem:
        raise GitFailed(f"git {args[0]} gave no answer in {DEADLINE_S} s") from problem


def _checked(done: subprocess.CompletedProcess[bytes]) -> bytes:
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        first = lines[0] if lines else f"git ended with exit status {done.returncode}"
        raise GitFailed(first.removeprefix("fatal: "), bare="must be run in a work tree" in first)
    return done.stdout


def run(where: Path, *args: str) -> bytes:
    """Standard output of `git ARGS` in `where`. Raises GitFailed with git's own first line."""
    return _checked(_call(where, args, {}))


def toplevel(where: Path) -> Path:
    """The root of the working tree that holds `where`. Raises GitFailed (not a repository, bare, dubious ownership ...).

    A working tree that the repository's own configuration puts somewhere else (`core.worktree`) is refused: a stranger's
    configuration must not choose which of the user's folders is read.
    """
    root = Path(os.fsdecode(run(where, "rev-parse", "--show-toplevel").removesuffix(b"\n")))
    inside = Path(os.path.realpath(where)).is_relative_to(os.path.realpath(root))
    if not inside or not os.path.lexists(root / ".git"):
        raise GitFailed("the repository's configuration puts its working tree elsewhere")
    return root


def git_folder(root: Path) -> Path:
    """The git directory of the working tree at `root`: where its HEAD and its index lie."""
    dot = root / ".git"
    with contextlib.suppress(OSError, ValueError):
        if dot.is_file():  # a linked worktree, or a submodule
            text = os.fsdecode(dot.read_bytes()[:4096]).removeprefix("gitdir: ").removesuffix("\n")
            return root / text
    return dot


def index_stamp(root: Path) -> tuple[int, int, int] | None:
    """Something that differs whenever the index has been written in between (git replaces the file)."""
    try:
        info = (git_folder(root) / "index").stat()
    except OSError:
        return None
    return (info.st_ino, info.st_mtime_ns, info.st_size)


def hooks_folder(root: Path) -> Path:
    """Where git looks for the hooks of the working tree at `root`; `core.hooksPath` is obeyed. Raises GitFailed."""
    # The safe options would answer with their own core.hooksPath; `rev-parse` runs no hook.
    found = _checked(_call(root, ("rev-parse", "--git-path", "hooks"), {}, _QUIET))
    return root / os.fsdecode(found.removesuffix(b"\n"))


def shared_folder(root: Path) -> Path:
    """The git directory that all working trees of a repository share. Raises GitFailed."""
    return root / os.fsdecode(run(root, "rev-parse", "--git-common-dir").removesuffix(b"\n"))


def is_tracked(root: Path, path: str) -> bool:
    """Whether the index holds `path`. Raises GitFailed."""
    return run(root, "--literal-pathspecs", "ls-files", "-z", "--", path) != b""


def tracks_ours(root: Path) -> bool:
    """Whether the repository ships a folder of our name. Raises GitFailed."""
    return run(root, "ls-files", "-z", "--", f":(top,icase){MIND_FOLDER}") != b""


def is_ignored(root: Path, path: str) -> bool:
    """Whether git would leave `path` out when everything is added."""
    return _call(root, ("check-ignore", "--quiet", "--", path), {}).returncode == 0


def _without_filters(root: Path) -> dict[str, str]:
    """Settings that empty every clean and process filter: `git status` would start them on files whose time has changed."""
    found = _call(root, ("config", "--null", "--name-only", "--get-regexp", r"^filter\."), {})
    settings: dict[str, str] = {}
    for name in found.stdout.split(b"\0"):  # exit status 1, and nothing, when there is none
        driver, dot, variable = os.fsdecode(name).rpartition(".")
        if dot and variable in ("clean", "process", "required"):
            settings[f"{driver}.{variable}"] = "false" if variable == "required" else ""
    return settings


def index(root: Path) -> list[IndexEntry]:
    """Everything in the index, in git's order (bytes of the path)."""
    entries = []
    for record in run(root, "ls-files", "--stage", "-v", "-z").split(b"\0"):
        if record:
            meta, _, path = record.partition(b"\t")
            tag, mode, blob, stage = meta.split(b" ")
            # Lower case: assume-unchanged; S: skip-worktree (git-ls-files(1), -v and -t).
            entries.append(
                IndexEntry(
                    os.fsdecode(path), mode.decode(), blob.decode(), int(stage), unwatched=tag.islower() or tag == b"S"
                )
            )
    return entries


def status(root: Path) -> Status:
    """The working tree against the index, untracked files included, ignored ones not. Format: `git status --porcelain=v2`."""
    if os.path.lexists(root / ".gitignore") and not (root / ".gitignore").is_file():
        raise GitFailed(".gitignore is not a regular file")  # git would wait for a FIFO
    args = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
    done = _call(root, args, _without_filters(root))
    changed, deleted, untracked = set(), set(), []
    for record in _checked(done).split(b"\0"):
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
    unreadable = sorted({os.fsdecode(path) for path in _UNREADABLE.findall(done.stderr)})
    return Status(frozenset(changed), frozenset(deleted), tuple(untracked), tuple(unreadable))
