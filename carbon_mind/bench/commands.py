"""Do the commands that a digest prints exist, and do they start?

That one exists is asked of the repository (the line that shows it is there) and of this machine (its program is). Whether it starts is
tried only when asked: in a fresh clone, with a home of its own, without the network where the system lets an ordinary user cut it, and for
a few seconds. A command is the repository's: whoever asks for this trusts it as far as running its tests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from carbon_mind.repo import git
from carbon_mind.repo.scan import locate
from carbon_mind.safety.files import read_regular
from carbon_mind.values import Command, RepoPath

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_MAX_BYTES = 8 << 20
NOT_STARTED = (126, 127)
"""What a shell says of a program that is not executable, or not there."""


@dataclass(frozen=True, slots=True)
class Check:
    """One command. `status` is None where it was not run, or ran to the end of its time."""

    kind: str
    command: str
    source: str
    shown: bool  # its evidence is in the repository
    program: str
    found: bool  # the program is on this machine, or in the repository
    ran: bool = False
    status: int | None = None

    @property
    def started(self) -> bool:
        """Whether it was run and got as far as running."""
        return self.ran and self.status not in NOT_STARTED


def check(
    where: Path,
    commands: Sequence[Command],
    *,
    run: bool,
    seconds: float = 20.0,
    before: Callable[[str], None] = lambda _command: None,
) -> tuple[Check, ...]:
    """Look at each command, and `run` it for at most `seconds`; `before` is told each one that is run. Raises RepositoryProblem."""
    root = locate(where).root
    found = tuple(_looked_at(root, command) for command in commands)
    if not run:
        return found
    tried = []
    with tempfile.TemporaryDirectory(prefix="carbon-run-") as folder:
        there, home = Path(folder) / root.name, Path(folder) / "home"
        home.mkdir()
        git.run(root, "clone", "--quiet", "--no-hardlinks", str(root), str(there))
        for item in found:
            before(item.command)
            status = _run(item.command, there, home, seconds)
            tried.append(
                Check(item.kind, item.command, item.source, item.shown, item.program, item.found, True, status)
            )
    return tuple(tried)


def _looked_at(root: Path, command: Command) -> Check:
    program = _program(command.command)
    inside = "/" in program and (root / program).is_file()
    return Check(
        command.kind,
        command.command,
        command.source,
        _shown(root, command.source),
        program,
        inside or shutil.which(program) is not None,
    )


def _program(command: str) -> str:
    """The first word that is no assignment, behind a `cd ... &&`."""
    last = command.rpartition("&&")[2] if command.startswith("cd ") else command
    with contextlib.suppress(ValueError):
        return next((word for word in shlex.split(last) if not _ASSIGNED.match(word)), "")
    return last.split()[0] if last.split() else ""


def _shown(root: Path, source: str) -> bool:
    path, _, line = source.partition(":")
    try:
        lines = read_regular(root, RepoPath(path), _MAX_BYTES).count(b"\n") + 1
    except OSError:
        return (root / path).exists()
    return not line.isdecimal() or 1 <= int(line) <= lines


def _run(command: str, there: Path, home: Path, seconds: float) -> int | None:
    """Its exit status; None where its time ran out, which is no failure. It and what it started are ended then."""
    shell = ["sh", "-c", command]
    if (unshare := shutil.which("unshare")) and _cut_off(unshare):
        shell = [unshare, "--net", "--map-root-user", *shell]
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    process = subprocess.Popen(
        shell,
        cwd=there,
        env={**environment, "HOME": str(home), "CI": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def _cut_off(unshare: str) -> bool:
    """Whether an ordinary user may have a network of their own here."""
    return (
        subprocess.run([unshare, "--net", "--map-root-user", "true"], capture_output=True, check=False).returncode == 0
    )
