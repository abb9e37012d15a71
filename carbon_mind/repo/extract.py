"""Source to tags: what a file defines, uses, imports, derives from, and confesses in its comments.

`extract` is pure and never raises, whatever the bytes are: a file that cannot be understood in bounded work keeps its name and loses
its symbols (`Tags.degraded` says why). The bounds are sizes and depths, not clocks, so that the result is the same on a slow machine.
`extract_files` reads many files, in this process or in a pool of processes (py-tree-sitter holds the GIL, so threads gain nothing).
"""

from __future__ import annotations

import bisect
import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from carbon_mind.repo import languages
from carbon_mind.repo.languages import Language
from carbon_mind.safety.files import read_regular
from carbon_mind.values import Definition, Marker, SourceFile, Tags

if TYPE_CHECKING:
    import tree_sitter

MAX_BYTES = 1 << 20
MAX_SIGNATURE = 160
MAX_MARKER = 200
MAX_DEPTH = 1000
"""Brackets inside one another. Hand-written code stays below 100; the parse tree of 20,000 takes a query minutes."""
MAX_START_DEPTH = 500
"""Tree levels below which no pattern starts: the bound for nesting without brackets (`else if` chains, `a + a + ...`)."""
MAX_DEFINITIONS = 20_000
POOL_BYTES = 1_500_000
"""Source bytes above which a pool pays for its start (0.13 s)."""
MAX_WORKERS = 8
_CHUNK_BYTES = 400_000

_TAG_HINT = re.compile(rb"FIXME|BUG|HACK|XXX")
_MARKER = re.compile(r"(?:^|(?<=[\s/*#;!(-]))(FIXME|BUG|HACK|XXX)(?=$|[:\s(!,.-])(?:\([^)\n]{0,60}\))?[:\s!,.-]*([^\n]*)")
_MARKER_START = re.compile(r"^[\s/*#;!<-]*$")
_BRACKETS = re.compile(rb"[\[({]|[\])}]")
_CPP = re.compile(rb"^\s*(?:class\s+\w+[^;]*[{:]|namespace\b|template\s*<|public:|private:|protected:|using\s+\w)", re.M)
_BODY_TAIL = re.compile(r"(?:\s*(?:=>|\{|:|=|\bthen|\bdo))+\s*$")
_SPACE = re.compile(r"\s+")
_QUOTES = "\"'`"


def extract(source: bytes, language: Language) -> Tags:
    """The tags of one file. Never raises."""
    source = _utf8(source)
    if language.name == "c" and _CPP.search(source[:65536]):
        language = languages.by_name("cpp")
    if reason := _unparsable(source):
        return Tags(language.name, degraded=reason)
    queries = languages.queries(language)
    root = languages.parser(language).parse(source).root_node
    uses = _captures(queries.uses, root)
    defaults = sorted((node.start_byte, node.end_byte) for node in uses.get("default", ()))
    definitions = _definitions(source, queries.definitions, root, defaults, language.name)
    return Tags(
        language=language.name,
        definitions=tuple(sorted(definitions, key=lambda item: (item.line, item.name, item.kind))),
        references=_counted(source, uses.get("reference", ())),
        imports=tuple(sorted({_import(_text(source, node), language.name) for node in uses.get("import", ())} - {""})),
        bases=_counted(source, uses.get("base", ())),
        markers=_markers(source, queries.comments, root),
        degraded="" if len(definitions) <= MAX_DEFINITIONS else "too many definitions",
    )


def _utf8(source: bytes) -> bytes:
    """UTF-16 with a byte order mark as UTF-8; a UTF-8 mark removed; anything else as it is."""
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        return source.decode("utf-16", "replace").encode("utf-8", "replace")
    return source.removeprefix(b"\xef\xbb\xbf")


def _unparsable(source: bytes) -> str:
    """Why the file is not parsed, "" when it is."""
    if len(source) > MAX_BYTES:
        return "over 1 MiB"
    if b"\0" in source:
        return "not text"
    newlines = source.count(b"\n") + 1
    if len(source) > 20_000 and len(source) / newlines > 500:
        return "minified"
    if source.count(b"(") + source.count(b"[") + source.count(b"{") > MAX_DEPTH and _depth(source) > MAX_DEPTH:
        return "too deep"
    return ""


def _depth(source: bytes) -> int:
    """Deepest nesting of brackets, those in strings and comments included; a surplus of closing ones does not go below 0."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(source):
        if found[0] in b"[({":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


def _cursor(query: tree_sitter.Query) -> tree_sitter.QueryCursor:
    import tree_sitter

    cursor = tree_sitter.QueryCursor(query)
    cursor.set_max_start_depth(MAX_START_DEPTH)
    return cursor


def _captures(query: tree_sitter.Query, root: tree_sitter.Node) -> dict[str, list[tree_sitter.Node]]:
    return _cursor(query).captures(root)


def _text(source: bytes, node: tree_sitter.Node) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _counted(source: bytes, nodes: Iterable[tree_sitter.Node]) -> tuple[tuple[str, int], ...]:
    counts = Counter(source[node.start_byte : node.end_byte] for node in nodes)
    named = ((name.decode("utf-8", "replace"), count) for name, count in counts.items() if 1 < len(name) <= 100)
    merged: Counter[str] = Counter()
    for name, count in named:  # two invalid byte strings may become one text
        merged[name] += count
    return tuple(sorted(merged.items()))


def _definitions(
    source: bytes, query: tree_sitter.Query, root: tree_sitter.Node, defaults: list[tuple[int, int]], language: str
) -> list[Definition]:
    found: dict[tuple[int, str], Definition] = {}
    for _, captures in _cursor(query).matches(root):
        name_node = captures["name"][0]
        kind, nodes = next((key, nodes) for key, nodes in captures.items() if key.startswith("definition."))
        name = _SPACE.sub(" ", _text(source, name_node))[:100]
        if not name:
            continue
        line = name_node.start_point[0] + 1
        signature = _signature(source, nodes[0], defaults, language)
        found.setdefault((name_node.start_byte, name), Definition(name, kind.removeprefix("definition."), line, signature))
        if len(found) > MAX_DEFINITIONS:
            break
    return list(found.values())


def _body_start(node: tree_sitter.Node) -> int:
    """Where the part begins that a signature leaves out."""
    body = node.child_by_field_name("body")
    if body is None and (value := node.child_by_field_name("value")) is not None:
        # `const f = (a) => {...}`: the function is the value; a plain value is left out altogether.
        body = value.child_by_field_name("body") or value
    return body.start_byte if body is not None else node.end_byte


def _signature(source: bytes, node: tree_sitter.Node, defaults: list[tuple[int, int]], language: str) -> str:
    start, stop = node.start_byte, min(_body_start(node), node.start_byte + 2000)
    pieces = []
    at = start
    for first, last in islice(defaults, bisect.bisect_left(defaults, (start, 0)), None):
        if first >= stop:
            break
        if first >= at:
            pieces += [source[at:first], b"..."]
            at = last
    if at < stop:
        pieces.append(source[at:stop])
    text = b"".join(pieces).decode("utf-8", "replace")
    if node.type in ("preproc_function_def", "assignment", "const_item", "static_item"):
        text = text.split("\n", 1)[0]
    text = _BODY_TAIL.sub("", _SPACE.sub(" ", text).strip()).rstrip(" ;")
    if language == "python" and node.type == "assignment":
        text = text.split("=", 1)[0].strip()
    return text if len(text) <= MAX_SIGNATURE else text[: MAX_SIGNATURE - 3].rstrip() + "..."


def _import(text: str, language: str) -> str:
    text = _SPACE.sub("", text) if language == "rust" else _SPACE.sub(" ", text).strip()
    if language == "rust":
        text = text.split("{", 1)[0].removesuffix("::")
    if language in ("c", "cpp") and text.startswith("<"):
        return text[:200]
    return text.strip(_QUOTES)[:200]


def _markers(source: bytes, query: tree_sitter.Query, root: tree_sitter.Node) -> tuple[Marker, ...]:
    if not _TAG_HINT.search(source):
        return ()
    found: set[Marker] = set()
    for node in _captures(query, root).get("comment", ()):
        raw = source[node.start_byte : node.end_byte]
        if not _TAG_HINT.search(raw):
            continue
        for number, line in enumerate(raw.decode("utf-8", "replace").splitlines()):
            for match in _MARKER.finditer(line[:1000]):
                before, after = line[: match.start()], line[match.end(1) : match.end(1) + 1]
                # In the middle of a sentence only `TAG:` and `TAG(` are markers; "a HACK of mine" is prose.
                if _MARKER_START.match(before) or after in (":", "("):
                    text = match[2].removesuffix("*/").removesuffix("-->").strip(" *\t")
                    found.add(Marker(match[1], node.start_point[0] + number + 1, _SPACE.sub(" ", text)[:MAX_MARKER]))
                    break
    return tuple(sorted(found, key=lambda marker: (marker.line, marker.tag, marker.text)))


# --- many files ------------------------------------------------------------------------------------------------

Job = tuple[SourceFile, Language]
Progress = Callable[[int, int], None]


def extract_files(
    root: Path, jobs: Sequence[Job], *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[tuple[SourceFile, Tags]]:
    """Tags of every job, in the order of the jobs whatever the number of workers. `progress` counts files."""
    workers = min(workers or _usable_cores(), MAX_WORKERS)
    chunks = _chunks(jobs)
    parallel = workers > 1 and len(chunks) > 1 and sum(file.size for file, _ in jobs) > POOL_BYTES
    results = _in_pool(root, chunks, workers) if parallel else (_extract_chunk(root, chunk) for chunk in chunks)
    done = 0
    for chunk, found in zip(chunks, results, strict=True):
        for (file, _), tags in zip(chunk, found, strict=True):
            yield file, tags
        done += len(chunk)
        if progress is not None:
            progress(done, len(jobs))


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _chunks(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs in runs of about _CHUNK_BYTES, in order."""
    chunks: list[list[Job]] = []
    size = _CHUNK_BYTES
    for job in jobs:
        if size >= _CHUNK_BYTES:
            chunks.append([])
            size = 0
        chunks[-1].append(job)
        size += job[0].size
    return chunks


def _extract_one(root: Path, file: SourceFile, language: Language) -> Tags:
    try:
        source = read_regular(root, file.path, MAX_BYTES)
    except OSError:
        return Tags(language.name, degraded="unreadable")
    return extract(source, language)


def _extract_chunk(root: Path, chunk: Sequence[Job]) -> list[Tags]:
    return [_extract_one(root, file, language) for file, language in chunk]


def _in_pool(root: Path, chunks: Sequence[Sequence[Job]], workers: int) -> Iterator[list[Tags]]:
    """As `_extract_chunk` for each chunk, in a forkserver pool; a chunk that kills its worker is repeated file by file."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    todo = list(chunks)
    with _importable_main():
        while todo:
            with ProcessPoolExecutor(min(workers, len(todo)), mp_context=context) as pool:
                futures = [pool.submit(_extract_chunk, root, chunk) for chunk in todo]
                try:
                    while futures:
                        yield futures[0].result()
                        futures.pop(0)
                        todo.pop(0)
                except BrokenProcessPool:
                    pool.shutdown(wait=False, cancel_futures=True)
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
            if todo:  # somebody's file killed a worker; the first unfinished chunk is taken apart, the rest goes on
                yield [_in_child(context, root, job) for job in todo.pop(0)]


def _in_child(context: object, root: Path, job: Job) -> Tags:
    """One file in a process of its own, so that only this file pays if its parser crashes."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(1, mp_context=context) as pool:  # type: ignore[arg-type]
        try:
            return pool.submit(_extract_one, root, *job).result()
        except BrokenProcessPool:
            return Tags(job[1].name, degraded="parser crashed")


@contextlib.contextmanager
def _importable_main() -> Iterator[None]:
    """Workers import the parent's `__main__`; a console script or `python -c` must not be run again there, and needs not."""
    import sys

    main = sys.modules.get("__main__")
    saved = {name: getattr(main, name) for name in ("__file__", "__spec__") if main is not None and hasattr(main, name)}
    try:
        for name in saved:
            setattr(main, name, None)
        if "__file__" in saved:
            del main.__file__  # type: ignore[union-attr]
        yield
    finally:
        for name, value in saved.items():
            setattr(main, name, value)
