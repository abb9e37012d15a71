"""Where a mind lives on disk: `<repository>/.carbon/mind/`, or the user's cache folder when the checkout is read-only.

`index.json` is written last and holds the checksums of the other two, so a crash between the writes leaves a mind that is rebuilt, not
one that is half old and half new.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write, private_dir, read_regular, remove_orphans
from carbon_mind.values import MIND_FOLDER, RepoPath

MAX_BYTES = 4 << 20
_INDEX_FORMAT = 1


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """index.json: what the mind was made from, and what it consists of."""

    version: int
    inputs: str  # SHA-256 over every file's identity and everything else that decides the digest's bytes
    json_sha256: str
    markdown_sha256: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A mind as read back."""

    json: bytes
    markdown: str


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that holds `mind/` and `cache.db`; `fallback` when it is not in the checkout."""

    path: Path
    fallback: bool = False

    @property
    def mind(self) -> Path:
        """The folder of mind.json, mind.md and index.json."""
        return self.path / "mind"

    @property
    def tag_cache(self) -> Path:
        """The SQLite file of parsed tags."""
        return self.path / "cache.db"


def open_folder(root: Path, user_cache: Path, *, owned: bool) -> Folder:
    """The folder for the repository at `root`, made if needed, with a .gitignore that hides all of it.

    A checkout that cannot be written, or one that ships a `.carbon` of its own (`owned` is false), uses the user's cache folder.
    Raises StorageProblem when neither can be written.
    """
    here = root / MIND_FOLDER
    if owned and not here.is_symlink() and not (here / "mind").is_symlink():
        try:
            (here / "mind").mkdir(parents=True, exist_ok=True)
            if not (here / ".gitignore").exists():
                atomic_write(here / ".gitignore", b"*\n")
            remove_orphans(here / "mind")
        except (OSError, StorageProblem):
            pass
        else:
            if os.access(here / "mind", os.W_OK | os.X_OK):
                return Folder(here)
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    there = private_dir(user_cache) / "minds"
    private_dir(there)
    private_dir(there / name)
    private_dir(there / name / "mind")
    return Folder(there / name, fallback=True)


def read(folder: Folder, inputs: str) -> Stored | None:
    """The stored mind if it was made from exactly `inputs` and is whole; None otherwise."""
    try:
        index = msgspec.json.decode(read_regular(folder.mind, RepoPath("index.json"), MAX_BYTES), type=Index)
        if index.version != _INDEX_FORMAT or index.inputs != inputs:
            return None
        document = read_regular(folder.mind, RepoPath("mind.json"), MAX_BYTES)
        markdown = read_regular(folder.mind, RepoPath("mind.md"), MAX_BYTES)
        if _sha256(document) != index.json_sha256 or _sha256(markdown) != index.markdown_sha256:
            return None
        return Stored(document, markdown.decode("utf-8"))
    except (OSError, ValueError):  # ValueError: JSON of another shape (MsgspecError), bytes that are not UTF-8
        return None


def write(folder: Folder, inputs: str, stored: Stored) -> None:
    """Write the mind. Raises StorageProblem; what was there before then still is."""
    markdown = stored.markdown.encode("utf-8")
    index = Index(_INDEX_FORMAT, inputs, _sha256(stored.json), _sha256(markdown))
    atomic_write(folder.mind / "mind.json", stored.json)
    atomic_write(folder.mind / "mind.md", markdown)
    atomic_write(folder.mind / "index.json", msgspec.json.format(msgspec.json.encode(index), indent=2) + b"\n")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
