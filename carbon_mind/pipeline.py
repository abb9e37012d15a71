"""The product, as code. Read this first.

    scan -> extract -> rank -> digest          build():  a repository becomes a mind
    digest -> prefix -> engine + store         warm():   a mind becomes a restored KV state
    prompt = prefix + question                 ask():    a question costs only its own tokens

Each step is a module that knows nothing of the next; they meet in `values`. Nothing here prints: progress and notices go through the
`Reporter` that the caller hands in.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from carbon_mind import opening
from carbon_mind.digest import folder as mind_folder
from carbon_mind.digest.folder import Changes, Inputs
from carbon_mind.errors import Disabled
from carbon_mind.opening import Opened, open_engine
from carbon_mind.program import program
from carbon_mind.repo import languages
from carbon_mind.repo.scan import MAX_BYTES, Place, Scan, locate, moved, ripen, scan
from carbon_mind.settings import Settings
from carbon_mind.values import (
    Area,
    Clocks,
    Layer,
    Prefix,
    ProjectFacts,
    RepoPath,
    Skipped,
    SourceFile,
    Tags,
    WarmResult,
)

# An unchanged checkout needs the imports above and no others; what only a rebuild, a warm start or an answer needs is imported
# there. `carbon mind` is run before every session, and its time is that of its imports.
if TYPE_CHECKING:
    from carbon_mind.engine.base import Piece
    from carbon_mind.evidence import Evidence
    from carbon_mind.knowledge.enrich import Enriched
    from carbon_mind.prefix.assemble import Head
    from carbon_mind.repo.classify import Kind
    from carbon_mind.store.states import Store

BOUND = "bound"
"""Name of the count that needs no model; otherwise the count is named after the model's hash."""


class Reporter(Protocol):
    """Where talk goes. The command line shows it, tests collect it, a library user may ignore it (`Silent`)."""

    def notice(self, text: str) -> None:
        """Something the user should know; the work goes on."""

    def progress(self, label: str) -> Callable[[int, int], None]:
        """A new bar; call the result with (done, total). Reaching the total ends it."""


class Silent:
    """A reporter that says nothing."""

    def notice(self, text: str) -> None:
        """Ignored."""

    def progress(self, label: str) -> Callable[[int, int], None]:
        """Ignored."""
        return lambda _done, _total: None


@dataclass(frozen=True, slots=True)
class Counting:
    """How tokens of a digest are counted. `name` enters the mind's identity, so it must name the tokenizer."""

    name: str
    count: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Words:
    """Whose words go into a mind besides what is extracted: the hash of a model, and how it is asked (None: not any more)."""

    model: str
    ask: Callable[[str, str, str, int], str] | None = None


@dataclass(frozen=True, slots=True)
class Mind:
    """A mind and how it came about."""

    root: Path
    folder: mind_folder.Folder
    json: bytes
    markdown: str
    built: bool  # False: what was on disk is current
    files: int
    parsed: int  # files parsed in this run
    seconds: float
    prefix_changed: bool | None = (
        None  # whether the Markdown differs from that of the mind before; None: there was none
    )
    changes: Changes | None = None  # since the mind before, as far as that is known
    enriched: Enriched | None = None  # what came of asking a model


# --- build: a repository becomes a mind ------------------------------------------------------------------------


def build(
    where: Path | Place,
    settings: Settings,
    report: Reporter,
    *,
    counting: Counting | None = None,
    full: bool = False,
    words: Words | None = None,
) -> Mind:
    """The current mind of the repository at `where`; rebuilt only when something that it is made from changed.

    `full` rebuilds and re-parses everything. `words` are a model's; without, those that the mind has stay where nothing changed, and an
    empty model takes them out. Raises Disabled, RepositoryProblem and StorageProblem.
    """
    started = time.perf_counter()
    _require_enabled(settings)
    counting = counting or Counting(BOUND, _bound)
    place = where if isinstance(where, Place) else locate(where)
    seen = scan(place)
    _tell(seen, report)
    folder = mind_folder.open_folder(seen.root, settings.cache, owned=seen.owned)
    if folder.fallback:
        why = "cannot be written" if seen.owned else "tracks a .carbon folder of its own"
        report.notice(f"the checkout {why}: its mind is kept in {folder.path}")
    if folder.seal is None:
        report.notice(
            f"{settings.cache} cannot be written: what is stored cannot be proven ours, so all of it is made anew"
        )
    index = mind_folder.read_index(folder)
    words = words or Words(index.words if index is not None else "")
    inputs = _inputs(seen, settings, counting, words.model)
    before = mind_folder.read(folder, index)
    asked = index is None or words.ask is None or not index.unasked
    if before is not None and index is not None and index.inputs == inputs.sha256 and not full and asked:
        took = time.perf_counter() - started
        return Mind(seen.root, folder, before.json, before.markdown, False, len(seen.files), 0, took, False, Changes())
    known = mind_folder.read_names(folder, index)
    seen, stored, parsed, settled, enriched = _made(place, seen, settings, counting, folder, report, words, full=full)
    inputs = _inputs(seen, settings, counting, words.model)
    mind_folder.write(folder, inputs, stored, known, settled=settled)
    if not settled:
        report.notice("files changed while they were read: the next run looks again")
    return Mind(
        seen.root,
        folder,
        stored.json,
        stored.markdown,
        True,
        len(seen.files),
        parsed,
        time.perf_counter() - started,
        None if before is None else before.markdown != stored.markdown,
        None if index is None or known is None else mind_folder.changes(index, known, inputs),
        enriched,
    )


def _made(
    place: Place,
    seen: Scan,
    settings: Settings,
    counting: Counting,
    folder: mind_folder.Folder,
    report: Reporter,
    words: Words,
    *,
    full: bool,
) -> tuple[Scan, mind_folder.Stored, int, bool, Enriched | None]:
    """The mind of what is there: what was seen, the mind, files parsed, whether nothing moved meanwhile, what a model said.

    Where something did, everything is looked at once more; what did not move comes from the cache then.
    """
    from carbon_mind.digest import build as digest_build
    from carbon_mind.digest.budget import fit
    from carbon_mind.digest.render import FORMAT, Document, to_json
    from carbon_mind.knowledge.enrich import append, briefs, enrich
    from carbon_mind.knowledge.notes import SIZE, notes
    from carbon_mind.knowledge.overview import overview

    parsed = 0
    for attempt in (1, 2):
        if attempt == 2:
            seen = scan(place)
        if ripen(seen):
            seen = scan(place)
        evidence, count = _evidence(seen, folder, report, full=full and attempt == 1)
        parsed += count
        settled = not moved(seen)
        if settled:
            break
    digest = digest_build.build(evidence)
    fitted = fit(digest, settings.budget, counting.count)
    divided = _areas(seen, evidence.kinds, settings)
    noted = notes(evidence, divided)
    listed = overview(evidence.facts.name, noted)
    enriched = None
    if words.model:
        asked = briefs(evidence, fitted.markdown, divided, noted, reader(seen))
        progress = report.progress("asking the model") if words.ask is not None else _unseen
        enriched = enrich(asked, words.ask, folder.words, folder.seal, words.model, progress)
        if enriched.problem:
            report.notice(f"the model was not asked to the end: {enriched.problem}")
        said = enriched.words
        fitted = fit(replace(digest, words=said.get("", ())), settings.budget, counting.count)
        noted = tuple(replace(note, text=append(note.text, said.get(note.path, ()), SIZE)) for note in noted)
    document = Document(FORMAT, fitted.tokens, counting.name, fitted.digest)
    unasked = enriched.unasked if enriched is not None else 0
    stored = mind_folder.Stored(to_json(document), fitted.markdown, listed, noted, words.model, unasked)
    return seen, stored, parsed, settled, enriched


def _unseen(_done: int, _total: int) -> None:
    """Progress of what takes no time."""


def _areas(seen: Scan, kinds: Mapping[RepoPath, str], settings: Settings) -> tuple[Area, ...]:
    from carbon_mind.knowledge.areas import divide

    foreign = {path for path, kind in kinds.items() if kind not in ("source", "test")}
    return divide({file.path: file.blob for file in seen.files}, settings.notes, foreign)


def areas(place: Place, settings: Settings) -> tuple[Area, ...]:
    """The directories that have a note, or would have one, as the working tree is now."""
    seen = scan(place)
    return _areas(seen, _kinds(seen, reader(seen)), settings)


def known(place: Place, settings: Settings, report: Reporter) -> tuple[Evidence, Read]:
    """Everything that is known of the repository, parsed before where it was, and how its files are read."""
    seen = scan(place)
    return _evidence(seen, folder_of(place, settings), report, full=False)[0], reader(seen)


def folder_of(place: Place, settings: Settings) -> mind_folder.Folder:
    """The folder of the mind of `place`, made if needed. Raises StorageProblem."""
    return mind_folder.open_folder(place.root, settings.cache, owned=_owned(place))


def find_folder_of(place: Place, settings: Settings) -> mind_folder.Folder:
    """The same folder, but nothing is made."""
    return mind_folder.find_folder(place.root, settings.cache, owned=_owned(place))


def _owned(place: Place) -> bool:
    from carbon_mind.repo import git

    try:
        return bool(place.notice) or not git.tracks_ours(place.root)
    except git.GitFailed:  # a damaged index: then a scan reads a plain directory, too
        return True


def _require_enabled(settings: Settings) -> None:
    if not settings.enabled:
        raise Disabled(
            "carbon is switched off here (enabled = false)",
            hint="set enabled = true where it was switched off: CARBON_ENABLED, carbon.toml, or the user's config.toml",
        )


def _tell(seen: Scan, report: Reporter) -> None:
    for notice in seen.notices:
        report.notice(notice)
    if unreadable := [item for item in seen.skipped if item.reason.startswith("unreadable")]:
        report.notice(_some("cannot be read and was skipped", [item.path for item in unreadable]))


def _bound(text: str) -> int:
    from carbon_mind.digest.bound import token_bound

    return token_bound(text)


def _some(what: str, paths: list[RepoPath]) -> str:
    from carbon_mind.safety.text import clean

    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return f"{', '.join(clean(path, limit=160) for path in paths[:3])}{more} {what}"


def _inputs(seen: Scan, settings: Settings, counting: Counting, words: str) -> Inputs:
    """All that decides the digest's bytes."""
    names: dict[str, str] = {file.path: file.blob for file in seen.files}
    for item in seen.skipped:
        names[item.path] = f"!{item.reason}"
    return Inputs(
        f"{program()} {languages.fingerprint()}",
        f"budget {settings.budget}, counted by {counting.name}, {settings.notes} notes"
        + (f", words of model {words[:16]}" if words else ""),
        names,
    )


# --- check: is the mind current? -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether a mind is what `build` would make now; `reason` says in words why not."""

    current: bool
    reason: str = ""
    changes: Changes | None = None  # None: there is no mind to compare with, or it does not say what it was made from


def check(where: Path | Place, settings: Settings, report: Reporter) -> Freshness:
    """Compare the mind with what is there; nothing is parsed and nothing written. Raises Disabled and RepositoryProblem."""
    _require_enabled(settings)
    seen = scan(where)
    _tell(seen, report)
    folder = mind_folder.find_folder(seen.root, settings.cache, owned=seen.owned)
    index = mind_folder.read_index(folder)
    inputs = _inputs(seen, settings, Counting(BOUND, _bound), index.words if index is not None else "")
    if index is None:
        return Freshness(False, "no mind yet")
    if mind_folder.read(folder, index) is None:
        return Freshness(False, "the mind is damaged")
    if index.inputs == inputs.sha256:
        return Freshness(True, changes=Changes())
    known = mind_folder.read_names(folder, index)
    if known is None:
        return Freshness(False, "what the mind was made from is not known")
    found = mind_folder.changes(index, known, inputs)
    if found == Changes():
        return Freshness(False, "files changed while the mind was made", found)
    causes = ("program", found.program), ("settings", found.settings), ("files", found.files > 0)
    return Freshness(False, f"changed: {', '.join(name for name, is_so in causes if is_so)}", found)


def _evidence(seen: Scan, folder: mind_folder.Folder, report: Reporter, *, full: bool) -> tuple[Evidence, int]:
    """Everything that there is to know, and the number of files parsed."""
    from carbon_mind.evidence import Evidence
    from carbon_mind.repo.facts.context import Context
    from carbon_mind.repo.imports import resolve
    from carbon_mind.repo.rank import entry_files, rank

    paths = [file.path for file in seen.files]
    read = reader(seen)
    kinds = _kinds(seen, read)
    jobs, skipped, without_grammar = _plan(seen, kinds, read)
    found: list[ProjectFacts] = []
    tags, parsed = _tags(
        seen, jobs, folder, report, lambda: found.append(_facts(seen, folder, read, full=full)), full=full
    )
    (facts,) = found
    skipped += [Skipped(path, found.degraded) for path, found in sorted(tags.items()) if found.degraded]
    entries = entry_files([entry.target for entry in facts.entry_points], tags.keys())
    ranked = rank(tags, kinds, resolve(tags, Context(paths, read)), entries)
    outlined = sum(language.part == "imports" and not tags[file.path].degraded for file, language in jobs)
    return Evidence(paths, skipped, tags, ranked, facts, kinds, without_grammar, outlined), parsed


Read = Callable[[RepoPath], str | None]


def _kinds(seen: Scan, read: Read) -> dict[RepoPath, Kind]:
    """What each file is: source, test, vendored, generated ..."""
    from carbon_mind.repo.classify import Attributes, kinds_of, parse_attributes

    paths = [file.path for file in seen.files]
    attributes = parse_attributes(read(RepoPath(".gitattributes")) or "") if ".gitattributes" in paths else Attributes()
    return kinds_of(paths, attributes)


def _facts(seen: Scan, folder: mind_folder.Folder, read: Read, *, full: bool) -> ProjectFacts:
    """What manifests, build files and pipelines say; they are read again only when one of them changed."""
    from carbon_mind.repo.facts_memory import remembered

    def find(listening: Read) -> ProjectFacts:
        from carbon_mind.repo.facts.project import project_facts

        return project_facts([file.path for file in seen.files], listening)

    return remembered(
        folder.path,
        None if full else folder.seal,
        program(),
        {file.path: file.blob for file in seen.files},
        read,
        find,
        lambda asked: bool(list(moved(seen, asked))),
    )


def reader(seen: Scan) -> Read:
    """Text of a file of the repository; None for what is unknown, unreadable, too large, or may hold credentials."""
    from carbon_mind.safety.files import read_regular
    from carbon_mind.safety.secrets import is_sensitive_path

    known = {file.path for file in seen.files}

    def read(path: RepoPath) -> str | None:
        if path not in known or is_sensitive_path(path):
            return None
        try:
            return read_regular(seen.root, path, MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            return None

    return read


Job = tuple[SourceFile, languages.Language]


def _plan(seen: Scan, kinds: dict[RepoPath, Kind], read: Read) -> tuple[list[Job], list[Skipped], Counter[str]]:
    """Which files are parsed, which are not and why, and the suffixes for which there is no grammar."""
    from carbon_mind.safety.secrets import is_sensitive_path

    jobs: list[Job] = []
    skipped = list(seen.skipped)
    without: Counter[str] = Counter()
    for file in seen.files:
        name = file.path.rsplit("/", 1)[-1]
        language = languages.language_of(file.path)
        if language is None and "." not in name and kinds[file.path] != "vendored":
            # A script tells its language in its first line.
            language = languages.language_of(file.path, (read(file.path) or "")[:200].encode())
        if is_sensitive_path(file.path):
            skipped.append(Skipped(file.path, "may hold credentials"))
        elif file.size > MAX_BYTES:
            skipped.append(Skipped(file.path, "over 1 MiB"))
        elif kinds[file.path] in ("vendored", "generated"):
            if language is not None:
                skipped.append(Skipped(file.path, kinds[file.path]))
        elif language is None:
            without["." + name.rsplit(".", 1)[1] if "." in name.lstrip(".") else "(no suffix)"] += 1
        else:
            ask = languages.untested if kinds[file.path] == "source" else languages.outlined
            jobs.append((file, ask(language)))
    return jobs, skipped, without


def _tags(
    seen: Scan,
    jobs: list[Job],
    folder: mind_folder.Folder,
    report: Reporter,
    meanwhile: Callable[[], None],
    *,
    full: bool,
) -> tuple[dict[RepoPath, Tags], int]:
    """Tags of every job, from the cache or parsed now, and how many were parsed; `meanwhile` is done while others parse."""
    from carbon_mind.repo.cache import TagCache
    from carbon_mind.repo.cache import key as tag_key
    from carbon_mind.repo.workers import extract_files

    keys = {file.path: tag_key(file.blob, languages.versions(language)) for file, language in jobs}
    with TagCache(folder.tag_cache, folder.seal) as cache:
        known = {} if full else cache.get(keys.values())
        tags = {file.path: known[keys[file.path]] for file, _ in jobs if keys[file.path] in known}
        todo = [(file, language) for file, language in jobs if file.path not in tags]
        # A query is compiled in each process that meets its language, so few should; and what is left to share at the end is alike.
        sizes: Counter[str] = Counter()
        for file, language in todo:
            sizes[language.name] += file.size
        todo.sort(key=lambda job: (sizes[job[1].name], job[1].name))
        fresh: dict[RepoPath, Tags] = {}
        progress = report.progress("parsing") if todo else None
        for file, found in extract_files(seen.root, todo, progress=progress, meanwhile=meanwhile):
            tags[file.path] = found
            if found.degraded not in ("unreadable", "no grammar"):  # both may be otherwise the next time
                fresh[file.path] = found
        doubtful = set(moved(seen, fresh))  # tags of a text that may not be the one that the key names
        cache.put({keys[path]: found for path, found in fresh.items() if path not in doubtful})
    return tags, len(todo)


# --- warm: a mind becomes a restored KV state --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Warmed:
    """An engine that stands right behind the prefix, and the proof of how it got there."""

    mind: Mind
    opened: Opened
    head: Head
    prefix: Prefix
    result: WarmResult


@dataclass(frozen=True, slots=True)
class Prepared:
    """A mind whose state is in the store; `warmed` is None where that was so already and no engine was opened."""

    mind: Mind
    result: WarmResult
    warmed: Warmed | None


def prepare(
    where: Path | Place, settings: Settings, report: Reporter, *, fresh: bool = False, prove: bool = False
) -> Prepared:
    """See to it that the state behind the prefix is in the store. Where nothing changed, the model is not even loaded.

    `fresh` ignores stored states, `prove` restores them although nothing changed. Raises CarbonError.
    """
    from carbon_mind.store import notes

    _require_enabled(settings)
    model = opening.model_path(settings)
    header = opening.check_model(model)  # before anything is begun
    mind = build(where, settings, report)
    store = _store(settings, report)
    request = opening.request(settings, model, header, mind.markdown)
    if store is not None and request and not (fresh or prove):
        started = time.perf_counter()
        if (ticket := notes.redeem(store, request)) is not None:
            result = _ready(ticket.layers, time.perf_counter() - started)
            _remember(store, "warm", mind, model, result)
            return Prepared(mind, result, None)
    warmed = _warm(mind, settings, report, None, store, "warm", fresh=fresh)
    result = warmed.result
    # The probe's verdict may be new.
    request = request or opening.request(settings, model, header, mind.markdown)
    if store is not None and request and all(layer.snapshot for layer in result.layers):
        notes.write_ticket(store, request, notes.Ticket(result.layers))
    return Prepared(warmed.mind, result, warmed)


def _ready(layers: tuple[Layer, ...], verified_s: float) -> WarmResult:
    still = tuple(replace(layer, restored=0, bytes_read=0, bytes_written=0) for layer in layers)
    tokens = sum(layer.tokens for layer in layers)
    return WarmResult("ready", tokens, 0, 0, still, Clocks(read_s=verified_s))


def warm(
    where: Path | Place,
    settings: Settings,
    report: Reporter,
    *,
    fresh: bool = False,
    opened: Opened | None = None,
    command: str = "warm",
) -> Warmed:
    """Build the mind, assemble the prefix for the model, and restore its state or prefill and store it.

    `fresh` ignores stored states; `opened` reuses an engine; `command` is for `carbon why`. Raises CarbonError.
    """
    _require_enabled(settings)
    opened = opened or open_engine(settings, report)
    mind = build(where, settings, report)
    return _warm(mind, settings, report, opened, _store(settings, report), command, fresh=fresh)


def _warm(
    mind: Mind,
    settings: Settings,
    report: Reporter,
    opened: Opened | None,
    store: Store | None,
    command: str,
    *,
    fresh: bool,
) -> Warmed:
    from carbon_mind.errors import PrefixTooLong
    from carbon_mind.prefix.assemble import Head, assemble
    from carbon_mind.warm import warm as warm_engine

    opened = opened or open_engine(settings, report)
    engine = opened.engine
    if (tokens := len(engine.tokenize(mind.markdown))) > settings.budget:
        # The bound promised otherwise; with the tokenizer at hand the budget is exact.
        report.notice(f"the digest has {tokens} tokens for this model: fitted again to {settings.budget}")
        mind = build(mind.root, settings, report, counting=model_counting(opened))
    head = Head(mind.markdown, limit=settings.block_chars)
    prefix = assemble(opened.chat, head, engine.tokenize, engine.piece)
    if len(prefix.tokens) + 64 > engine.info.n_ctx:
        raise PrefixTooLong(
            f"the prefix has {len(prefix.tokens)} tokens; the context of {engine.info.n_ctx} leaves no room for a question",
            hint="use a larger --ctx or a smaller --budget",
        )
    result = warm_engine(
        engine,
        store,
        opened.identity,
        prefix,
        labels=(("model", opened.model.name), ("repository", mind.root.name)),
        progress=report.progress("prefill"),
        fresh=fresh,
    )
    if store is not None:
        _remember(store, command, mind, opened.model, result)
    return Warmed(mind, opened, head, prefix, result)


def _store(settings: Settings, report: Reporter) -> Store | None:
    """The snapshot store; without one a session starts cold, and is told why."""
    from carbon_mind.errors import StorageProblem
    from carbon_mind.store.states import Store

    try:
        return Store(settings.snapshots, settings.store_budget_mib << 20)
    except StorageProblem as refused:
        report.notice(f"nothing can be restored or stored: {refused.message}")
        return None


def _remember(store: Store, command: str, mind: Mind, model: Path, result: WarmResult) -> None:
    from carbon_mind.store import notes

    before = notes.read_record(store, str(mind.root))
    rate = before.tokens_per_s if before is not None and before.model == model.name else 0.0
    if result.evaluated and result.clocks.prefill_s:
        rate = result.evaluated / result.clocks.prefill_s
    record = notes.Record(
        when=int(time.time()),
        command=command,
        repository=str(mind.root),
        model=model.name,
        result=result,
        tokens_per_s=rate,
    )
    notes.write_record(store, record)


def model_counting(opened: Opened) -> Counting:
    """Counting by a model's own tokenizer."""
    return Counting(f"model {opened.identity.model[:16]}", lambda text: len(opened.engine.tokenize(text)))


# --- ask: a question costs only its own tokens -------------------------------------------------------------------


@dataclass(slots=True)
class Answer:
    """Counts of one answer; complete once its pieces are consumed."""

    reused: int = 0  # tokens of the prompt that the engine already had
    evaluated: int = 0  # tokens of the prompt that were evaluated
    generated: int = 0
    ttft_s: float = 0.0  # from the question to the first generated token
    seconds: float = 0.0
    pieces: list[Piece] = field(default_factory=list, repr=False)

    @property
    def text(self) -> str:
        """What was generated so far."""
        return "".join(piece.text for piece in self.pieces)


def ask(warmed: Warmed, question: str, max_tokens: int) -> tuple[Answer, Iterator[str]]:
    """An answer to `question`, and the iterator that produces its text piece by piece.

    The state must stand behind the prefix (as `warm` leaves it). Raises PrefixTooLong when the question does not fit.
    """
    answer = Answer()
    return answer, _pieces(warmed, question, max_tokens, answer)


def _pieces(warmed: Warmed, question: str, max_tokens: int, answer: Answer) -> Iterator[str]:
    from carbon_mind.prefix.assemble import render
    from carbon_mind.warm import proceed

    engine = warmed.opened.engine
    started = time.perf_counter()
    before = engine.evaluated
    prompt = engine.tokenize(render(warmed.opened.chat, warmed.head, question))
    answer.reused = proceed(engine, prompt)
    answer.evaluated = engine.evaluated - before
    for piece in engine.generate(max_tokens):
        if not answer.generated:
            answer.ttft_s = time.perf_counter() - started
        answer.generated += 1
        answer.pieces.append(piece)
        yield piece.text
    answer.seconds = time.perf_counter() - started
