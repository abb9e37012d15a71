"""Where a mind lives on disk: `<repository>/.carbon/mind/`, or the user's cache folder when the checkout is read-only.

`index.json` is written last and holds the checksums of the others, so a crash between the writes leaves a mind that is rebuilt, not
one that is half old and half new. It carries a MAC (`safety/seal`): a mind that came with an archive is not believed. `files` names
what the mind was made from, file by file; it is read only to say what has changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import atomic_write, private_dir, read_regular, remove_orphans
from carbon_mind.safety.seal import Seal, open_seal
from carbon_mind.values import MIND_FOLDER, Note, RepoPath

MAX_BYTES = 4 << 20
_MAX_NAMES = 64 << 20
_INDEX_FORMAT = 3
_IDENTITY = (
    20  # characters of an identity that `files` keeps: enough to tell whether a file changed, which is all it is for
)

NOTES = "dirs"
_SHOWN_PATH = 400
_SLUG = re.compile(r"[A-Za-z0-9._-]+-[0-9a-f]{8}\.md")
UNREAD = ("!", "unread-")
"""What an identity that stands for no content begins with: the reason for skipping a file, or only its size."""

Names = dict[str, str]
"""What a mind was made from: path -> identity of its content, or `!` and why it was skipped."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that decides a digest's bytes: the program, its settings, and every file's name and content."""

    program: str
    settings: str
    names: Names

    @property
    def sha256(self) -> str:
        """One hash over all of it."""
        digest = hashlib.sha256(f"{self.program}\0{self.settings}\0".encode())
        for path, identity in self.names.items():
            digest.update(f"{path}\0{identity}\0".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One note as the index knows it. `path` is cleaned like every text of the repository: for people, and to be looked up by."""

    path: str
    identity: str
    files: int
    summary: str
    file: str  # its name in dirs/
    sha256: str
    size: int  # bytes


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """index.json: what the mind was made from, and what it consists of."""

    version: int
    inputs: str  # `Inputs.sha256`; "" when files changed while they were read, so that it matches nothing
    program: str
    settings: str
    files_sha256: str
    json_sha256: str
    markdown_sha256: str
    overview_sha256: str = ""
    notes: tuple[Entry, ...] = ()
    words: str = ""  # SHA-256 of the model whose words are in it
    unasked: int = 0  # directories that it was not asked about yet
    mac: str = ""  # over all of the above


@dataclass(frozen=True, slots=True)
class Stored:
    """A mind as it is written and read back; the notes and their list are read one by one (`read_note`, `read_overview`)."""

    json: bytes
    markdown: str
    overview: str = ""
    notes: tuple[Note, ...] = ()
    words: str = ""
    unasked: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder that holds `mind/` and `cache.db`; `fallback` when it is not in the checkout.

    `seal` tells our own files from a stranger's; without it nothing in the folder is believed.
    """

    path: Path
    fallback: bool = False
    seal: Seal | None = field(default=None, compare=False, repr=False)

    @property
    def mind(self) -> Path:
        """The folder of mind.json, mind.md, files and index.json."""
        return self.path / "mind"

    @property
    def words(self) -> Path:
        """The folder of what a small model said."""
        return self.path / "words"

    @property
    def tag_cache(self) -> Path:
        """The SQLite file of parsed tags."""
        return self.path / "cache.db"


def open_folder(root: Path, user_cache: Path, *, owned: bool) -> Folder:
    """The folder for the repository at `root`, made if needed, with a .gitignore that hides all of it.

    A checkout that cannot be written, or one that ships a `.carbon` of its own (`owned` is false), uses the user's cache folder.
    Raises StorageProblem when neither can be written.
    """
    seal = open_seal(user_cache, make=True)
    here = root / MIND_FOLDER
    if owned and not _is_link(here):
        try:
            (here / "mind").mkdir(parents=True, exist_ok=True)
            if not (here / ".gitignore").exists():
                atomic_write(here / ".gitignore", b"*\n")
            for folder in (here / "mind", here / "mind" / NOTES):
                remove_orphans(folder)
        except (OSError, StorageProblem):
            pass
        else:
            if _writable(here):
                return Folder(here, seal=seal)
    there = _elsewhere(root, user_cache)
    private_dir(user_cache)
    for folder in (there.parent, there, there / "mind", there / "mind" / NOTES):
        private_dir(folder)
    return Folder(there, fallback=True, seal=seal)


def find_folder(root: Path, user_cache: Path, *, owned: bool) -> Folder:
    """The folder that `open_folder` would give, as far as that can be told without making or writing anything."""
    seal = open_seal(user_cache, make=False)
    here = root / MIND_FOLDER
    if owned and not _is_link(here) and _writable(here):
        return Folder(here, seal=seal)
    return Folder(_elsewhere(root, user_cache), fallback=True, seal=seal)


def _is_link(here: Path) -> bool:
    return any(path.is_symlink() for path in (here, here / "mind", here / "mind" / NOTES, here / "words"))


def _writable(here: Path) -> bool:
    return os.access(here / "mind", os.W_OK | os.X_OK)


def _elsewhere(root: Path, user_cache: Path) -> Path:
    return user_cache / "minds" / hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]


# --- reading ---------------------------------------------------------------------------------------------------


def read_index(folder: Folder) -> Index | None:
    """The index, if it is there and this user's carbon wrote it."""
    try:
        index = msgspec.json.decode(read_regular(folder.mind, RepoPath("index.json"), MAX_BYTES), type=Index)
        ours = (
            index.version == _INDEX_FORMAT
            and folder.seal is not None
            and folder.seal.fits(bytes.fromhex(index.mac), "mind", _sealed(index))
        )
    except (OSError, ValueError):  # ValueError: JSON of another shape (MsgspecError), a MAC that is not hexadecimal
        return None
    return index if ours else None


def read(folder: Folder, index: Index | None) -> Stored | None:
    """The mind that `index` describes, if it is whole."""
    if index is None:
        return None
    try:
        document = read_regular(folder.mind, RepoPath("mind.json"), MAX_BYTES)
        markdown = read_regular(folder.mind, RepoPath("mind.md"), MAX_BYTES)
        if _sha256(document) != index.json_sha256 or _sha256(markdown) != index.markdown_sha256:
            return None
        return Stored(document, markdown.decode("utf-8"))
    except (OSError, ValueError):  # ValueError: bytes that are not UTF-8
        return None


def read_names(folder: Folder, index: Index | None) -> Names | None:
    """What the mind of `index` was made from, with shortened identities; None when that is not known."""
    if index is None:
        return None
    try:
        data = read_regular(folder.mind, RepoPath("files"), _MAX_NAMES)
    except OSError:
        return None
    if _sha256(data) != index.files_sha256:
        return None
    fields = data.decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(fields[0:-1:2], fields[1:-1:2], strict=True))


def read_note(folder: Folder, entry: Entry) -> str | None:
    """The text of a note, if it is the one that the index means."""
    return _text(folder, f"{NOTES}/{entry.file}", entry.sha256)


def read_overview(folder: Folder, index: Index) -> str | None:
    """The list of notes, if it is the one that the index means."""
    return _text(folder, "overview.md", index.overview_sha256)


def _text(folder: Folder, name: str, sha256: str) -> str | None:
    try:
        data = read_regular(folder.mind, RepoPath(name), MAX_BYTES)
        return data.decode("utf-8") if _sha256(data) == sha256 else None
    except (OSError, ValueError):
        return None


# --- writing ---------------------------------------------------------------------------------------------------


def write(folder: Folder, inputs: Inputs, stored: Stored, known: Names | None = None, *, settled: bool = True) -> None:
    """Write the mind; a file that holds the same bytes already is left alone, so that nobody who watches it is disturbed.

    `known` is what was read back before: only paths that are not in it have to be looked at for credentials.
    Unless `settled` the mind is kept but will match nothing. Raises StorageProblem; what was there before then still is.
    """
    markdown, overview = (text.encode("utf-8") for text in (stored.markdown, stored.overview))
    entries = _write_notes(folder, stored.notes)
    names = _encode(_shown(inputs.names, known or {}).items())
    index = Index(
        _INDEX_FORMAT,
        inputs.sha256 if settled else "",
        inputs.program,
        inputs.settings,
        _sha256(names),
        _sha256(stored.json),
        _sha256(markdown),
        _sha256(overview),
        entries,
        stored.words,
        stored.unasked,
    )
    mac = folder.seal.mac("mind", _sealed(index)).hex() if folder.seal is not None else ""
    index = msgspec.structs.replace(index, mac=mac)
    for name, data in (
        ("files", names),
        ("mind.json", stored.json),
        ("mind.md", markdown),
        ("overview.md", overview),
    ):
        if not _holds(folder, name, data):
            atomic_write(folder.mind / name, data)
    atomic_write(folder.mind / "index.json", msgspec.json.format(msgspec.json.encode(index), indent=2) + b"\n")
    _remove_notes(folder, {entry.file for entry in entries})


def _write_notes(folder: Folder, notes: Sequence[Note]) -> tuple[Entry, ...]:
    """Write each note that is not there already."""
    from carbon_mind.safety.safe import safe

    entries = []
    if notes:
        with contextlib.suppress(OSError):  # then the first write says why
            (folder.mind / NOTES).mkdir(exist_ok=True)
    for note in notes:
        data = note.text.encode("utf-8")
        path = safe(note.path, _SHOWN_PATH)
        entry = Entry(path, note.identity, note.files, note.summary, _slug(note.path), _sha256(data), len(data))
        if not _holds(folder, f"{NOTES}/{entry.file}", data):
            atomic_write(folder.mind / NOTES / entry.file, data)
        entries.append(entry)
    return tuple(entries)


def _slug(path: str) -> str:
    """A file name for a directory's note: readable, and another one for every directory."""
    from carbon_mind.safety.secrets import redact

    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", redact(path).replace("/", "--")).strip("-.")[:48]
    return f"{readable or 'dir'}-{hashlib.sha1(os.fsencode(path), usedforsecurity=False).hexdigest()[:8]}.md"


def _remove_notes(folder: Folder, kept: Container[str]) -> None:
    """Notes of directories that are gone, or that have no note any more. Only what has a name that we give."""
    with contextlib.suppress(OSError):
        for item in os.scandir(folder.mind / NOTES):
            if _SLUG.fullmatch(item.name) and item.name not in kept and item.is_file(follow_symlinks=False):
                (folder.mind / NOTES / item.name).unlink()


def _shown(names: Names, known: Names) -> Names:
    """The same without credentials, which even the name of a file may hold; those in `known` were looked at before."""
    from carbon_mind.safety.secrets import redact

    new = [path for path in names if path not in known]
    if redact("\n".join(new)) == "\n".join(new):
        return names
    return {path if path in known else redact(path): identity for path, identity in names.items()}


def _encode(names: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{path}\0{identity[:_IDENTITY]}\0" for path, identity in names).encode("utf-8", "surrogateescape")


def _holds(folder: Folder, name: str, data: bytes) -> bool:
    try:
        return read_regular(folder.mind, RepoPath(name), len(data)) == data
    except OSError:
        return False


def _sealed(index: Index) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(index, mac=""))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- what changed ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from what a mind was made from. Paths are sorted; a renamed file is neither added nor removed."""

    program: bool = False
    settings: bool = False
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # (old path, new path) with the same content

    @property
    def files(self) -> int:
        """How many files differ."""
        return len(self.added) + len(self.changed) + len(self.removed) + len(self.renamed)


def changes(index: Index, before: Names, now: Inputs) -> Changes:
    """What differs between the mind of `index`, made from the files `before`, and what it would be made from now."""
    current = {path: identity[:_IDENTITY] for path, identity in _shown(now.names, before).items()}
    removed = {path: identity for path, identity in before.items() if path not in current}
    added = {path: identity for path, identity in current.items() if path not in before}
    renamed: list[tuple[str, str]] = []
    sources: dict[str, list[str]] = {}
    for path in sorted(removed, reverse=True):
        if not removed[path].startswith(UNREAD):
            sources.setdefault(removed[path], []).append(path)
    for path in sorted(added):
        candidates = sources.get(added[path])
        renamed += [(candidates.pop(), path)] if candidates else []
    old, new = {pair[0] for pair in renamed}, {pair[1] for pair in renamed}
    return Changes(
        program=index.program != now.program,
        settings=index.settings != now.settings,
        added=tuple(sorted(added.keys() - new)),
        changed=tuple(sorted(path for path in current.keys() & before.keys() if current[path] != before[path])),
        removed=tuple(sorted(removed.keys() - old)),
        renamed=tuple(sorted(renamed)),
    )
