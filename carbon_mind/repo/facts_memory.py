"""What manifests said the last time: still true as long as the list of files and what was read of them are the same.

Facts are a function of the names of all files and of the text of a few. Both are remembered with the answer, so that an edit somewhere
in the code costs neither the reading of pipelines nor the import of all that can read them. The file lies in the repository, so it is
believed only with this user's MAC (`safety/seal`), and nothing of it is written that was not redacted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write, read_regular
from carbon_mind.safety.seal import Seal
from carbon_mind.safety.secrets import redact
from carbon_mind.values import ProjectFacts, RepoPath

FILE = RepoPath("facts.json")
MAX_BYTES = 4 << 20

Find = Callable[[Callable[[RepoPath], str | None]], ProjectFacts]


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """facts.json."""

    names: str  # SHA-256 over the program and the names of all files
    read: dict[str, str]  # path: identity of each file that was asked for
    facts: ProjectFacts
    mac: str = ""  # over all of the above


def remembered(
    folder: Path,
    seal: Seal | None,
    program: str,
    blobs: Mapping[RepoPath, str],
    read: Callable[[RepoPath], str | None],
    find: Find,
    unsteady: Callable[[list[RepoPath]], bool],
) -> ProjectFacts:
    """The facts that `find` makes with `read`, without asking it when nothing that it looked at has changed.

    `blobs` are the identities of all files. Of files that are `unsteady` (they changed while they were read) nothing is remembered.
    """
    digest = hashlib.sha256(program.encode())
    for path in blobs:
        digest.update(path.encode("utf-8", "surrogateescape") + b"\0")
    names = digest.hexdigest()
    known = _load(folder, seal)
    if (
        known is not None
        and known.names == names
        and all(_same(path, blob, blobs) for path, blob in known.read.items())
    ):
        return known.facts
    asked: list[RepoPath] = []

    def listening(path: RepoPath) -> str | None:
        asked.append(path)
        return read(path)

    facts = redacted(find(listening))
    paths = sorted(set(asked))
    # A name that is a credential must not be written, and without it the memory could not be checked.
    if seal is not None and not unsteady(paths) and redact("\n".join(paths)) == "\n".join(paths):
        _save(folder, seal, Memory(names, {path: blobs.get(path, "") for path in paths}, facts))
    return facts


def redacted(facts: ProjectFacts) -> ProjectFacts:
    """The facts without credentials."""
    return msgspec.convert(_redacted(msgspec.to_builtins(facts)), ProjectFacts)


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value]


def _same(path: str, blob: str, blobs: Mapping[RepoPath, str]) -> bool:
    return blobs.get(RepoPath(path), "") == blob


def _load(folder: Path, seal: Seal | None) -> Memory | None:
    if seal is None:
        return None
    try:
        found = msgspec.json.decode(read_regular(folder, FILE, MAX_BYTES), type=Memory)
        return found if seal.fits(bytes.fromhex(found.mac), "facts", _sealed(found)) else None
    except (OSError, ValueError):  # ValueError: JSON of another shape (MsgspecError), a MAC that is none
        return None


def _save(folder: Path, seal: Seal, memory: Memory) -> None:
    """Write it; a failure costs a reading the next time, never a result."""
    try:
        data = _sealed(memory)
        mac = seal.mac("facts", data).hex()
        atomic_write(folder / FILE, msgspec.json.encode(msgspec.structs.replace(memory, mac=mac)))
    except (StorageProblem, UnicodeEncodeError):  # a name that is not UTF-8 cannot be written as JSON
        return


def _sealed(memory: Memory) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(memory, mac=""))
