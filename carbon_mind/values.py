"""What flows between the steps: plain frozen values that know nothing of files, engines or databases.

Paths are repository-relative, with `/` between parts on every system. Two values with the same content are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NewType

RepoPath = NewType("RepoPath", str)
"""Path below the repository's root, `/`-separated, never absolute, never with `..`."""

MODEL_WORDS = "A model's words (not extracted, lowest trust)"
"""Title above what a small model said, in a digest as in a note."""

MIND_FOLDER = ".carbon"
"""Our folder at a repository's root: written by `digest`, never read by `repo`."""

BlobId = NewType("BlobId", str)
"""git's id of a file's bytes: hex SHA-1 over `blob <length>\\0<bytes>` (SHA-256 in a SHA-256 repository)."""

Token = NewType("Token", int)
"""Index into one model's vocabulary."""


# --- repo: files -> facts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A regular file of the working tree: tracked, or untracked and not ignored."""

    path: RepoPath
    blob: BlobId
    size: int  # bytes in the working tree


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was seen and not read, and why. `reason` is a short stable phrase, e.g. "link", "over 1 MiB"."""

    path: RepoPath
    reason: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A named thing that a file defines. `signature` is one line, without the body, at most 160 characters."""

    name: str
    kind: str  # class | function | method | interface | struct | enum | trait | type | module | macro | constant
    line: int  # 1-based
    signature: str
    local: bool = False  # only its own file can name it: C `static`, a Rust item without `pub`, a Java `private` member


@dataclass(frozen=True, slots=True)
class Marker:
    """A known fault that the code names: a tag in a comment, or a test that is switched off or expected to fail.

    `text` is one line: what follows the tag; for a test, its name and the reason given.
    """

    tag: str  # FIXME | BUG | HACK | XXX in a comment; SKIP | XFAIL at a test
    line: int  # 1-based
    text: str


@dataclass(frozen=True, slots=True)
class Tags:
    """What tree-sitter found in one file. Tuples are sorted, so equal content gives equal tags."""

    language: str
    definitions: tuple[Definition, ...] = ()  # by (line, name, kind)
    references: tuple[tuple[str, int], ...] = ()  # (name, number of uses), by name
    imports: tuple[
        str, ...
    ] = ()  # one module or name each, without quotes, by text; the forms are told in `repo/extract_imports`
    packages: tuple[str, ...] = ()  # packages or namespaces that the file declares to be part of, by name
    bases: tuple[tuple[str, int], ...] = ()  # (name of a base class, number of classes derived from it), by name
    markers: tuple[Marker, ...] = ()  # by (line, tag)
    degraded: str = ""  # why symbols are missing ("parse timeout", "too deep", "generated"); "" when all is there


@dataclass(frozen=True, slots=True)
class RankedFile:
    """A file's weight in the symbol graph. All numbers can be recounted with grep."""

    path: RepoPath
    score: float
    used_by: int  # other non-test files that import this one, or see it and use a name that only it defines
    top_symbols: tuple[tuple[Definition, int], ...] = ()  # (definition, uses in other files), most used first
    depends_on: tuple[RepoPath, ...] = ()  # files that its imports name, or whose names it surely uses; by path
    entry: bool = False  # an entry point leads here
    imported_by: int = 0  # other non-test files with an import that resolves to exactly this file


CommandKind = Literal["build", "test", "test-one", "lint", "format", "typecheck", "run"]
COMMAND_KINDS: tuple[CommandKind, ...] = ("build", "test", "test-one", "lint", "format", "typecheck", "run")


@dataclass(frozen=True, slots=True)
class Command:
    """An exact command line with its evidence. `source` is `path:line` (or `path` where a line has no meaning)."""

    kind: CommandKind
    command: str
    source: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """Something an agent must respect and cannot see in one read, with its evidence."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """Where execution starts: `name` as a person types it or knows it, `target` as file or `module:function`."""

    name: str
    target: str
    source: str


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What manifests, build files and tool settings say. Each tuple keeps its order of importance."""

    commands: tuple[Command, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    entry_points: tuple[EntryPoint, ...] = ()
    frameworks: tuple[str, ...] = ()  # names of direct dependencies worth knowing, sorted
    name: str = ""  # the project's own name from a root manifest; the directory's name would differ from clone to clone


# --- digest: facts -> text -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Module:
    """A top component: a directory, what it is made of and what it leans on."""

    path: str
    files: int
    languages: tuple[str, ...]  # most lines first
    depends_on: tuple[str, ...] = ()  # other modules' paths, strongest first
    tests: tuple[str, ...] = ()  # directories or files of the tests that lean on it, strongest first


@dataclass(frozen=True, slots=True)
class CriticalFile:
    """A file that many others lean on. `reason` is made of numbers that a person can check."""

    path: RepoPath
    reason: str
    signatures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A marker in the code: where, which tag, a cleaned excerpt."""

    source: str  # path:line
    tag: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the digest rests on, so that nobody takes silence for absence."""

    files: int
    parsed: int
    skipped: tuple[tuple[str, int], ...] = ()  # (reason, number of files), by reason
    without_grammar: tuple[tuple[str, int], ...] = ()  # (suffix, number of files), most first
    outlined: int = 0  # of the parsed: tests and examples, of which only the imports were asked for


@dataclass(frozen=True, slots=True)
class Digest:
    """The mind: everything that may enter the prefix, in the order in which it is worth its tokens."""

    name: str
    commands: tuple[Command, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    entry_points: tuple[EntryPoint, ...] = ()
    architecture: tuple[Module, ...] = ()
    critical_files: tuple[CriticalFile, ...] = ()
    known_bugs: tuple[KnownBug, ...] = ()
    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # a small model's, checked and marked; lowest trust
    coverage: Coverage = field(default_factory=lambda: Coverage(0, 0))


# --- knowledge: facts fetched on demand --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Area:
    """A directory that gets a note: the files that the note is about, sorted, and what they are by content."""

    path: RepoPath
    files: tuple[RepoPath, ...]
    identity: str  # hex SHA-1 over the sorted `path\0blob` pairs


@dataclass(frozen=True, slots=True)
class Note:
    """One directory's facts: `summary` is one line of a list, `text` at most 1,500 characters, both safe to show."""

    path: RepoPath
    identity: str  # of its area
    files: int
    summary: str
    text: str


# --- prefix, engine, store: text -> tokens -> state ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as a template sees it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Span:
    """A named run of a prefix's tokens that ends before token `end` and begins where the one before it ends."""

    name: str
    end: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """The part of a chat that does not depend on the question, as exact tokens of one model.

    `layers` are its pieces with one reason to change each, stable first; a snapshot is kept at the end of every one, and the last
    ends with the tokens. `spans` say in words what stands where (template, tools, rules, a section of the digest, a date): they
    are for people, and decide nothing.
    """

    tokens: tuple[int, ...]
    layers: tuple[Span, ...]
    spans: tuple[Span, ...] = ()


def beginning_before(spans: Sequence[Span], token: int) -> list[Span]:
    """Those spans that begin before a token; the first always does."""
    return [span for i, span in enumerate(spans) if i == 0 or spans[i - 1].end < token]


def shared_length(left: Sequence[object], right: Sequence[object]) -> int:
    """How many tokens (or letters) two sequences have in common from the start: the place of their first difference."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything but the tokens that decides whether a stored state may be used. Each field is compared; none is advisory.

    Sampling parameters, seed, threads and batch size are absent on purpose: they do not change the state.
    """

    engine: str  # package and version, e.g. "llama-cpp-python 0.3.36"
    build: str  # SHA-256 over the engine's shared libraries
    model: str  # SHA-256 over the model's bytes, every part
    context: tuple[
        tuple[str, str], ...
    ]  # (parameter, value) as resolved, by name: n_ctx, type_k, flash_attn, rope, lora ...
    environment: tuple[tuple[str, str], ...] = ()  # LLAMA_* and GGML_* variables that are set, by name
    prompt: tuple[
        tuple[str, str], ...
    ] = ()  # how text became tokens: hash of the chat template, its arguments, BOS policy


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a warm start, in seconds, and what was done in them; a step that did not happen is 0."""

    read_s: float = 0.0  # snapshot files -> verified bytes in memory
    restore_s: float = 0.0  # bytes -> engine state
    prefill_s: float = 0.0  # tokens evaluated to complete the prefix
    save_s: float = 0.0  # engine state -> snapshot files


@dataclass(frozen=True, slots=True)
class Change:
    """One field of an identity that is not what it was."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two prefixes part, in words."""

    at: int  # the first differing token
    where: str  # what stands there: a span of the wanted prefix, or of the stored one where the wanted one ends
    stored: str  # text from there on, a few tokens of it
    wanted: str


@dataclass(frozen=True, slots=True)
class Miss:
    """Why tokens had to be evaluated although there is a store; `reason` is one line that says it all."""

    reason: str
    changes: tuple[Change, ...] = ()  # the closest stored state is of another setup
    difference: Difference | None = None  # the closest stored prefix holds other tokens
    rejected: tuple[str, ...] = ()  # snapshots that were set aside, and why
    not_stored: str = ""  # why the new state was not kept


@dataclass(frozen=True, slots=True)
class Layer:
    """What became of one layer of the prefix."""

    name: str
    tokens: int  # of its own
    restored: int  # of them from disk
    snapshot: str  # file name in the store; "" when it is not there
    bytes_read: int
    bytes_written: int


WarmState = Literal["ready", "hot", "restored", "extended", "prefilled"]


@dataclass(frozen=True, slots=True)
class WarmResult:
    """What a warm start did, counted.

    `ready`: every layer is stored and whole, and no engine was opened. Otherwise `evaluated + restored + kept == tokens`: all was in
    the engine still (`hot`), all came from disk (`restored`), a part of it from either (`extended`), or nothing (`prefilled`).
    """

    state: WarmState
    tokens: int
    evaluated: int
    restored: int
    layers: tuple[Layer, ...]
    clocks: Clocks
    miss: Miss | None = None  # None on a hit
    kept: int = 0  # tokens that the engine held before

    @property
    def bytes_read(self) -> int:
        """Payload bytes that came from disk."""
        return sum(layer.bytes_read for layer in self.layers)

    @property
    def bytes_written(self) -> int:
        """Bytes of new snapshot files."""
        return sum(layer.bytes_written for layer in self.layers)

    @property
    def lost(self) -> tuple[int, float]:
        """Tokens that were evaluated, and what they cost in seconds."""
        return self.evaluated, self.clocks.prefill_s
