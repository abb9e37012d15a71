"""Source to tags: one parse and one query per file.

A query (`queries/*.scm`) captures, and this module counts, cleans and sorts. What the capture names mean:

    @definition.<kind> with @name   something is defined; @body is where its signature ends, if not at a field of that node
    @default, @inner, @skip         shown as `...` in a signature; as `{...}`; left out of it
    @reference, @component          a use; of @component only names in upper case (a class, not a variable or an HTML tag)
    @shared                         others can name the definition whatever its signature says
    @enclosed                       a block whose names nobody outside of the file has
    @own                            a name that is introduced without being defined for others: never a use
    @base                           the name of what a class derives from
    @import                         as `extract_imports` spells it
    @import.from, @import.name      one name of a module
    @import.own, @import.in         Rust's `mod x;` (as @import.item), and the module that it stands in
    @attribute, @key, @value        Rust's #[path = "..."], #[ignore], #[ignore = "..."]
    @off, @off.how                  what may switch a test off: `Off` in `extract_marks`; with @off.name (for @off.next the definition
                                    that follows), @off.arguments, @off.block, or as a statement in @off.body (of a block given
                                    to @off.in); @off.key must be `pytestmark`
    @package, @package.body         a package that the file is part of; its block, where it is one
    @importer, @mixer               the function that must be called for the @import or @base of the same match to count
    @comment                        searched for markers

Whatever the bytes, `extract` answers, and always with the same tags: its limits count bytes and steps of the parser, never time.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from carbon_mind.repo.extract_imports import spelled
from carbon_mind.repo.extract_marks import MAX_MARKER, Said, cut, generated, markers, perhaps_off, switched_off
from carbon_mind.repo.extract_scope import exports, outermost
from carbon_mind.repo.languages import Language, grammar, query_text, settle
from carbon_mind.repo.outline import head, may_switch_off
from carbon_mind.safety.secrets import redact
from carbon_mind.values import Definition, Marker, Tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import tree_sitter

__all__ = ["MAX_BYTES", "extract"]

MAX_BYTES = 1 << 20
MAX_SIGNATURE = 160

# Code has 5 to 10 bytes of newline-free text per token and some 30 per line. Above this it was written by a machine.
_MINIFIED_FROM = 16_384
_MINIFIED_LINE = 400

# Nesting of brackets, and depth of the tree (a chain of calls, a long `else if`). Nobody writes that; both cost time in the square.
_NESTED = 1_000
_DEEP = 2_000

# Two scanners look ahead over everything of a kind at each of its pieces, within one step of the parser: Python's over comment lines
# in a row (8,000 of them take 1.7 s, and the square of it beyond), bash's over redirections and here documents.
_COMMENT_RUN = re.compile(rb"(?m)(?:^[ \t]*+#[^\n]*+\n){1000,}+")
_MANY_REDIRECTIONS = 2_000

# tree-sitter asks for leave to go on every 100 steps: 0.005 times per byte read is usual, 0.03 the most in 200 MB of real code, 0.1
# the most that one-letter tokens can bring about. What is beyond has the parser going round in circles.
_QUESTIONS = 1_000
_QUESTIONS_PER_BYTE = 0.15


# --- one file ------------------------------------------------------------------------------------------------


def extract(source: bytes, language: Language) -> Tags:
    """The tags of one file's bytes. Raises nothing; what it cannot read gives tags without symbols and a `degraded`:

    "no grammar", "too large", "not text", "generated", "minified", "too deep", "parse timeout".
    """
    language = settle(language, source)
    if grammar(language) is None:
        return Tags(language.name, degraded="no grammar")
    if len(source) > MAX_BYTES:
        return Tags(language.name, degraded="too large")
    text = _as_utf8(source)
    if text is None:
        return Tags(language.name, degraded="not text")
    if generated(text, language.name):
        return Tags(language.name, degraded="generated")
    if len(text) >= _MINIFIED_FROM and len(text) > _MINIFIED_LINE * (text.count(b"\n") + 1):
        return Tags(language.name, degraded="minified")
    outline = language.part == "imports"
    if outline:
        if may_switch_off(text, language.name):
            language = replace(language, part="all")
        else:
            text = head(text, language.name)
    if language.name == "python":
        text = _COMMENT_RUN.sub(lambda run: b"\n" * run[0].count(b"\n"), text)
    if _nested(text, language) or (language.name == "bash" and text.count(b"<") > _MANY_REDIRECTIONS):
        return Tags(language.name, degraded="too deep")
    root = _parse(text, language)
    if root is None:
        return Tags(language.name, degraded="parse timeout")
    if _too_deep(root):
        return Tags(language.name, degraded="too deep")
    tags = _collect(text, language, root)
    return _without_credentials(_outline(tags) if outline else tags)


def _outline(tags: Tags) -> Tags:
    """The same of every outlined file, whether all of it had to be parsed or not."""
    off = tuple(mark for mark in tags.markers if mark.tag in ("SKIP", "XFAIL"))
    return Tags(tags.language, imports=tags.imports, packages=tags.packages, markers=off)


def _without_credentials(tags: Tags) -> Tags:
    """Tags are written to a cache, so what they quote is redacted here and not only in the digest."""
    names = _named([item.name for item in tags.definitions])
    signatures = [cut(line, MAX_SIGNATURE) for line in _redacted([item.signature for item in tags.definitions])]
    definitions = tuple(
        item if (item.name, item.signature) == (name, signature) else replace(item, name=name, signature=signature)
        for item, name, signature in zip(tags.definitions, names, signatures, strict=True)
    )
    marks = zip(tags.markers, _redacted([item.text for item in tags.markers]), strict=True)
    return replace(
        tags,
        definitions=definitions,
        references=_counted(tags.references),
        imports=tuple(sorted(set(_named(tags.imports)))),
        packages=tuple(sorted(set(_named(tags.packages)))),
        bases=_counted(tags.bases),
        markers=tuple(replace(item, text=cut(shown, MAX_MARKER)) for item, shown in marks),
    )


def _counted(names: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    before = [name for name, _ in names]
    after = _named(before)
    if after == before:
        return names
    counts: Counter[str] = Counter()
    for name, (_, count) in zip(after, names, strict=True):
        counts[name] += count
    return tuple(sorted(counts.items()))


_SHORT = 16  # no credential is shorter, unless it says that it is one


def _named(names: Sequence[str]) -> Sequence[str]:
    """Names without credentials: hardly one of them is long enough, or anything but a word, so that it has to be looked at."""
    odd = [name for name in names if len(name) >= _SHORT or not name.isidentifier()]
    shown = dict(zip(odd, _redacted(odd), strict=True))
    return names if all(name == other for name, other in shown.items()) else [shown.get(name, name) for name in names]


def _redacted(lines: Sequence[str]) -> Sequence[str]:
    """Each line without its credentials; it is cut later, because half a credential does not look like one."""
    together = ("\n" * 8).join(lines)  # too far from each other for one to be what a blob in the next is called
    if redact(together) == together:  # nearly always; and one look at all of them costs a tenth of one at each
        return lines
    return [redact(line) for line in lines]


_SURROGATES = {0xDC80 + i: 0x80 + i for i in range(0x80)}


def _as_utf8(source: bytes) -> bytes | None:
    """The same text in UTF-8 with `\\n` line ends and without byte order mark; None for what is no text."""
    if source.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        source = source.decode("utf-32", "replace").encode()
    elif source.startswith((b"\xff\xfe", b"\xfe\xff")):
        source = source.decode("utf-16", "replace").encode()
    if b"\0" in source:
        return None
    source = source.removeprefix(b"\xef\xbb\xbf")
    try:
        source.decode()
    except UnicodeDecodeError:
        # Latin-1, or UTF-8 with a few bytes of it: each byte that is no UTF-8 is the Latin-1 character of that number.
        source = source.decode("utf-8", "surrogateescape").translate(_SURROGATES).encode()
    if b"\r" in source:
        source = source.replace(b"\r\n", b"\n")
        if b"\n" not in source:
            source = source.replace(b"\r", b"\n")
    return source


def _parse(text: bytes, language: Language) -> tree_sitter.Node | None:
    """The root of the syntax tree, or None where the parser takes more steps than any real file needs."""
    import tree_sitter

    view = memoryview(text)  # slices point into `text`: the parser reads without copies, and from memory that stays
    asked = 0
    stopped = False

    def stop(offset: int, _error: bool) -> bool:
        nonlocal asked, stopped
        asked += 1
        stopped = asked > _QUESTIONS + offset * _QUESTIONS_PER_BYTE
        return stopped

    try:
        # A new parser each time: a stopped one would go on with the old text.
        tree = tree_sitter.Parser(grammar(language)).parse(lambda offset, _: view[offset:], progress_callback=stop)
    except ValueError:
        return None
    return None if stopped else tree.root_node


_NOT_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_NOT_BRACKETS_OR_ANGLES = bytes(set(range(256)) - set(b"()[]{}<>;"))
_STEPS = {ord(char): step for chars, step in (("([{", 1), (")]}", -1), ("<>;", 0)) for char in chars}


def _nested(text: bytes, language: Language) -> bool:
    """Whether brackets are nested deeper than _NESTED, wherever they stand: the parser may be what suffers from it.

    In languages with `a < b` and `a<b>` in one place, angles count too, as long as no statement ends.
    """
    brackets = text.translate(None, _NOT_BRACKETS_OR_ANGLES if language.angles else _NOT_BRACKETS)
    if len(brackets) <= _NESTED:
        return False
    depth = angles = 0
    for char in brackets:
        step = _STEPS[char]
        if step:
            depth += step
            if depth > _NESTED:
                return True
            if depth < 0:
                depth = 0  # those in strings and comments need not match
        elif char == 0x3C:
            angles += 1
            if angles > _NESTED:
                return True
        else:
            angles = angles - 1 if char == 0x3E and angles else 0
    return False


def _too_deep(root: tree_sitter.Node) -> bool:
    """Whether some node lies deeper than _DEEP; sure to see it from twice that depth on.

    Looking at each node would cost more than the query. But the nodes below one that is that deep follow each other, and where the
    tree is twice as deep there are at least _DEEP of them, so every _DEEP-th node is enough.
    """
    cursor = root.walk()
    for index in range(0, root.descendant_count, _DEEP):
        cursor.goto_descendant(index)
        if cursor.depth >= _DEEP:
            return True
    return False


if TYPE_CHECKING:
    _Taker = Callable[[bytes, "_Captured", "Nodes"], None]


@dataclass(frozen=True, slots=True)
class _Query:
    query: tree_sitter.Query
    kinds: tuple[str, ...]  # by number of pattern: the kind that it defines; "" for none
    plain: tuple[bool, ...]  # by number of pattern: whether it captures references and nothing else
    special: tuple[tuple[_Taker, ...], ...]  # by number of pattern: what takes its rarer captures
    called: tuple[
        str, ...
    ]  # by number of pattern: the capture of a function or attribute that few matches are about; "" for none


_DEFINITION = re.compile(r"@definition\.(\w+)")
_CAPTURE = re.compile(r"@([\w.]+)")


def _query(language: Language) -> _Query:
    tables = grammar(language)
    assert tables is not None  # noqa: S101 - only called with a grammar at hand
    return _compiled(tables, query_text(language))


@functools.cache
def _compiled(tables: tree_sitter.Language, text: str) -> _Query:
    """By what it is made from: rows of the table that ask the same of one grammar (C++ and its headers) share 0.1 s of work."""
    import tree_sitter

    query = tree_sitter.Query(tables, text)
    raw = text.encode()
    patterns = [
        re.sub(r"(?m);.*$", "", raw[query.start_byte_for_pattern(i) : query.end_byte_for_pattern(i)].decode())
        for i in range(query.pattern_count)
    ]
    kinds = tuple((_DEFINITION.findall(pattern) or [""])[0] for pattern in patterns)
    captures = [set(_CAPTURE.findall(pattern)) for pattern in patterns]
    special = tuple(tuple(take for name, take in _SPECIAL.items() if name in names) for names in captures)
    called = tuple(next((name for name in ("off.how", "importer") if name in names), "") for names in captures)
    return _Query(query, kinds, tuple(names == {"reference"} for names in captures), special, called)


# --- matches -> tags -----------------------------------------------------------------------------------------

Nodes = dict[str, "list[tree_sitter.Node]"]  # by capture
Match = tuple[int, Nodes]  # number of the pattern, and what it caught
Span = tuple[int, int]  # start and end byte


@dataclass(frozen=True, slots=True)
class _Found:
    """A match that defines something."""

    pattern: int
    kind: str
    node: tree_sitter.Node
    name: tree_sitter.Node
    body: tree_sitter.Node | None
    shared: bool  # whatever its signature says, others can name it


@dataclass(frozen=True, slots=True)
class _Package:
    """A package that the file declares: its own name, the end of its block (0 for the file), and whether it holds anything itself."""

    name: str
    end: int
    holds: bool


@dataclass(slots=True)
class _Captured:
    """What the matches hold, by start byte: two patterns that capture one node count once."""

    definitions: dict[int, _Found] = field(default_factory=dict)
    references: dict[int, int] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)  # names where they are introduced: no references
    bases: dict[int, int] = field(default_factory=dict)
    comments: dict[int, int] = field(default_factory=dict)
    holes: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # in signatures: end, and what to put there
    enclosed: dict[int, int] = field(default_factory=dict)  # blocks whose names nobody outside of the file has
    off: list[Nodes] = field(default_factory=list)
    ignored: dict[int, tuple[int, str]] = field(default_factory=dict)  # by end byte: line and reason of #[ignore]
    imports: set[str] = field(default_factory=set)
    modules: dict[int, tuple[tuple[str, ...], str]] = field(default_factory=dict)  # in other files: outer modules, name
    paths: dict[int, str] = field(default_factory=dict)  # by end byte: #[path = "..."]
    packages: dict[int, _Package] = field(default_factory=dict)


def _collect(text: bytes, language: Language, root: tree_sitter.Node) -> Tags:
    import tree_sitter

    captured = _sort_out(text, language, tree_sitter.QueryCursor(_query(language).query).matches(root))
    definitions = _definitions(text, language, captured, root)
    for start in captured.own:
        captured.references.pop(start, None)
    return Tags(
        language.name,
        definitions=definitions,
        references=_counts(text, captured.references),
        imports=_imports(text, captured),
        packages=_packages(captured),
        bases=tuple(base for base in _counts(text, captured.bases) if base[0] not in language.roots),
        markers=_marks(text, language, captured),
    )


def _counts(text: bytes, spans: dict[int, int]) -> tuple[tuple[str, int], ...]:
    """Each name in `spans` and how often it is there, by name; names of one character tell nothing."""
    counts: Counter[str] = Counter()
    for raw, count in Counter(text[start:end] for start, end in spans.items()).items():
        name = raw.decode("utf-8", "replace")
        if len(name) > 1 and len(name.split(None, 1)) == 1:
            counts[name] += count
    return tuple(sorted(counts.items()))


def _sort_out(text: bytes, language: Language, matches: Iterable[Match]) -> _Captured:
    query = _query(language)
    kinds, plain, special, called = query.kinds, query.plain, query.special, query.called
    importers = {name.encode() for name in language.importers}
    captured = _Captured()
    references = captured.references
    for pattern, nodes in matches:
        if plain[pattern]:
            for node in nodes["reference"]:
                references[node.start_byte] = node.end_byte
        elif "comment" in nodes:
            for node in nodes["comment"]:
                captured.comments[node.start_byte] = node.end_byte
        else:
            if called[pattern]:
                node = nodes[called[pattern]][0]
                name = text[node.start_byte : min(node.end_byte, node.start_byte + _LONG)]
                if name not in importers and not perhaps_off(name):
                    continue
            for take in special[pattern]:
                take(text, captured, nodes)
            _take(text, language, captured, pattern, kinds[pattern], nodes)
    return captured


def _take(
    text: bytes,
    language: Language,
    captured: _Captured,
    pattern: int,
    kind: str,
    nodes: Nodes,
) -> None:
    if kind and "name" in nodes:
        name = nodes["name"][0]
        known = captured.definitions.get(name.start_byte)
        if known is None or pattern < known.pattern:
            body = nodes["body"][0] if "body" in nodes else None
            node = nodes[f"definition.{kind}"][0]
            captured.definitions[name.start_byte] = _Found(pattern, kind, node, name, body, "shared" in nodes)
    for node in nodes.get("reference", ()):
        captured.references[node.start_byte] = node.end_byte
    for node in nodes.get("component", ()):
        if text[node.start_byte : node.end_byte].decode("utf-8", "replace")[:1].isupper():
            captured.references[node.start_byte] = node.end_byte
    for node in nodes.get("own", ()):
        captured.own.add(node.start_byte)
    for node in nodes.get("default", ()):
        gap = text[node.start_byte : node.start_byte + 1].isspace()  # C++: `= {}` starts right behind the sign
        captured.holes[node.start_byte] = (node.end_byte, b" ..." if gap else b"...")
    for node in nodes.get("inner", ()):
        captured.holes[node.start_byte] = (node.end_byte, b"{...}")
    for node in nodes.get("skip", ()):
        captured.holes[node.start_byte] = (node.end_byte, b" ")
    if _called(text, nodes.get("mixer"), language.mixers):
        for node in nodes.get("base", ()):
            captured.bases[node.start_byte] = node.end_byte
    if _called(text, nodes.get("importer"), language.importers):
        caller = text[nodes["importer"][0].start_byte : nodes["importer"][0].end_byte] if "importer" in nodes else b""
        for node in nodes.get("import", ()):
            captured.imports.update(spelled(language.name, text[node.start_byte : node.end_byte], caller))


def _text(text: bytes, node: tree_sitter.Node) -> str:
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _word(text: bytes, nodes: Nodes, capture: str) -> str:
    return "".join(_text(text, nodes[capture][0]).split())


def _take_imported_name(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    captured.imports.add(f"{_word(text, nodes, 'import.from')}:{_word(text, nodes, 'import.name')}")


def _take_own_module(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    outer = (_word(text, nodes, "import.in"),) if "import.in" in nodes else ()
    name = _word(text, nodes, "import.own").removeprefix("r#")
    captured.modules[nodes["import.item"][0].start_byte] = (outer, name)


def _take_attribute(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    node, key = nodes["attribute"][0], _text(text, nodes["key"][0])
    value = _text(text, nodes["value"][0]) if "value" in nodes else ""
    if key == "path" and value:
        captured.paths[node.end_byte] = value.removeprefix("r").strip('#"')
    elif key == "ignore":
        captured.ignored[node.end_byte] = (node.start_point[0] + 1, value)


def _take_off(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    """What may switch a test off; `_switched_off` decides, when all imports are known."""
    how = nodes["off.how"][0]
    if how.end_byte - how.start_byte < _LONG:
        captured.off.append(nodes)


_HOLDS_NOTHING = frozenset({"namespace_declaration", "comment", "using_directive"})


def _take_package(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    blocks = nodes.get("package.body")
    holds = blocks is None or any(node.type not in _HOLDS_NOTHING for node in blocks[0].named_children)
    end = blocks[0].end_byte if blocks else 0
    captured.packages[nodes["package"][0].start_byte] = _Package(_word(text, nodes, "package"), end, holds)


def _take_enclosed(text: bytes, captured: _Captured, nodes: Nodes) -> None:
    captured.enclosed.update((node.start_byte, node.end_byte) for node in nodes["enclosed"])


_SPECIAL: dict[str, _Taker] = {
    "import.from": _take_imported_name,
    "import.own": _take_own_module,
    "attribute": _take_attribute,
    "off.how": _take_off,
    "package": _take_package,
    "enclosed": _take_enclosed,
}


_LONG = 100  # bytes of a function's name; of a chain of calls, the text of each would be a square


def _called(text: bytes, callers: list[tree_sitter.Node] | None, allowed: tuple[str, ...]) -> bool:
    if callers is None:
        return True
    caller = callers[0]
    return caller.end_byte - caller.start_byte < _LONG and _text(text, caller) in allowed


# --- markers -------------------------------------------------------------------------------------------------

_WHOLE_FILE = "every test of this file"


def _marks(text: bytes, language: Language, captured: _Captured) -> tuple[Marker, ...]:
    found: dict[tuple[int, str, str], str] = {}
    for line, said in [*_said(text, captured), *_ignored(text, captured)]:
        mark = switched_off(language.name, said, captured.imports)
        if mark is not None:
            key = line, mark[0], said.name
            found[key] = max(
                found.get(key, ""), mark[1], key=len
            )  # an attribute is caught with and without its arguments
    off = [Marker(tag, line, words) for (line, tag, _), words in found.items()]
    return tuple(sorted([*markers(text, captured.comments), *off], key=lambda mark: (mark.line, mark.tag, mark.text)))


_DECORATED = frozenset({"class", "function", "method"})


def _said(text: bytes, captured: _Captured) -> Iterator[tuple[int, Said]]:
    # A query that looks for the name behind a decorator takes the square of the time, if a thousand decorators stand there.
    decorated = sorted(start for start, item in captured.definitions.items() if item.kind in _DECORATED)
    for nodes in captured.off:
        node = nodes["off"][0]
        if "off.key" in nodes and _word(text, nodes, "off.key") != "pytestmark":
            continue
        how = _word(text, nodes, "off.how") + "()" * ("off.arguments" in nodes) + "{}" * ("off.block" in nodes)
        if "off.next" in nodes:
            index = bisect_left(decorated, node.end_byte)
            if index == len(decorated):
                continue
            name = _text(text, captured.definitions[decorated[index]].name)
        else:
            name = " ".join(_text(text, nodes["off.name"][0]).split()) if "off.name" in nodes else _WHOLE_FILE
        outer = _word(text, nodes, "off.in") if "off.in" in nodes else name
        before = None
        if "off.body" in nodes:
            start = nodes["off.body"][0].start_byte
            if node.start_byte - start > _FAR:
                continue
            before = text[start : node.start_byte].decode("utf-8", "replace")
        arguments = _text(text, nodes["off.arguments"][0])[:_FAR] if "off.arguments" in nodes else ""
        if not arguments.startswith("("):
            arguments = f"({arguments})"
        yield node.start_point[0] + 1, Said(how, name, arguments, outer, before)


def _ignored(text: bytes, captured: _Captured) -> Iterator[tuple[int, Said]]:
    """Rust's functions with #[ignore]."""
    functions = sorted(
        (item.node.start_byte, name) for name, item in captured.definitions.items() if item.kind in _HIDING
    )
    for end, (line, reason) in captured.ignored.items():
        index = bisect_left(functions, (end, 0))
        if index == len(functions):
            continue
        start, name = functions[index]
        if start - end <= _FAR and _BETWEEN.fullmatch(text, end, start):
            item = captured.definitions[name].name
            yield line, Said("ignore", _text(text, item), f"({reason})")


# --- imports -------------------------------------------------------------------------------------------------

_BETWEEN = re.compile(rb"(?>\s|//[^\n]*\n|/\*.*?\*/|#\[[^\n;]*\])*+", re.DOTALL)
_FAR = 1_000  # bytes between an attribute and what it is said of


def _imports(text: bytes, captured: _Captured) -> tuple[str, ...]:
    """What is imported, Rust's modules in other files included: #[path] says in which, if it stands right before one."""
    found = set(captured.imports)
    ends = sorted(captured.paths)
    for start, (outer, name) in captured.modules.items():
        index = bisect_left(ends, start + 1) - 1
        if index >= 0 and start - ends[index] <= _FAR and _BETWEEN.fullmatch(text, ends[index], start):
            if not outer:  # in a module in a module, the path starts elsewhere
                found.add(f"path:{captured.paths[ends[index]]}")
        else:
            found.add("::".join(("self", *outer, name)))
    return tuple(sorted(found))


# --- packages ------------------------------------------------------------------------------------------------


_LONGEST = 1_000  # characters of a name


def _packages(captured: _Captured) -> tuple[str, ...]:
    """The packages that hold something, by name; a block in a block has the names of both."""
    found = set()
    around: list[tuple[int, str]] = []  # (end, name) of the blocks that are open here
    for start in sorted(captured.packages):
        package = captured.packages[start]
        while around and around[-1][0] <= start:
            around.pop()
        name = f"{around[-1][1]}.{package.name}" if around else package.name
        if package.holds and len(name) <= _LONGEST:
            found.add(name)
        if package.end:
            around.append((package.end, name[: _LONGEST + 1]))
    return tuple(sorted(found))


# --- definitions ---------------------------------------------------------------------------------------------

_HIDING = frozenset({"function", "method"})


def _definitions(
    text: bytes, language: Language, captured: _Captured, root: tree_sitter.Node
) -> tuple[Definition, ...]:
    """Definitions that other files can see: nothing that lies in the body of a function."""
    exported = re.compile(language.constant) if language.constant else None
    separator = language.separator.encode()
    holes = sorted([*captured.holes.items(), *((start, (end, b" ")) for start, end in captured.comments.items())])
    starts = [start for start, _ in holes]
    local = _locality(text, language, captured, root)
    found: set[tuple[int, str, str, str, bool]] = set()
    hidden = 0
    for start in sorted(captured.definitions):
        item = captured.definitions[start]
        end = item.name.end_byte
        if separator and item.kind != "module":
            start += text[start:end].rfind(separator) + len(separator) if separator in text[start:end] else 0
        captured.own.add(start)
        name = " ".join(text[start:end].decode("utf-8", "replace").split())
        signature_end, body_end = _ends(item, language)
        if start < hidden and not (language.local_types and item.kind != "constant"):
            continue
        if item.kind in _HIDING:
            hidden = max(hidden, body_end)
        if not name or (exported and item.kind == "constant" and not exported.fullmatch(name)):
            continue
        signature = _signature(text, item.node.start_byte, signature_end, holes, starts)
        found.add((item.name.start_point[0] + 1, name, item.kind, signature, local(item, name, signature)))
    return tuple(Definition(name, kind, line, signature, own) for line, name, kind, signature, own in sorted(found))


def _locality(
    text: bytes, language: Language, captured: _Captured, root: tree_sitter.Node
) -> Callable[[_Found, str, str], bool]:
    """The answer to: is this name, with this signature, of no use in other files? Where that is not sure, it is no."""
    says_so = re.compile(language.local) if language.local else None
    if captured.modules:  # Rust: what is private is also there for the modules below, which are in other files
        says_so = None
    first, last = outermost({} if language.header else captured.enclosed)
    top, exported = exports(text, root) if language.exports else ((), ())

    def local(item: _Found, name: str, signature: str) -> bool:
        if says_so is not None and not item.shared and says_so.match(f"{item.kind} {signature}"):
            return True
        start = item.node.start_byte
        if start in top and name not in exported:
            return True
        index = bisect_left(first, start + 1) - 1
        return index >= 0 and start < last[index]

    return local


def _ends(item: _Found, language: Language) -> Span:
    """Where the signature ends, and where the body does."""
    node, body = item.node, item.body
    if body is not None:
        return body.start_byte, body.end_byte
    for header in language.headers:
        part = node.child_by_field_name(header)
        if part is not None:
            return part.end_byte, node.end_byte
    for name in ("body",) if item.kind == "type" else ("body", "value"):
        part = node.child_by_field_name(name)
        if part is not None:
            return part.start_byte, part.end_byte
    return node.end_byte, node.end_byte


_BEFORE = re.compile(r"\s+([,;)\]])")
_AFTER = re.compile(r"([(\[])\s+")
_ANGLE = re.compile(r"<\s*\n\s*")  # not where it may mean "less than"
_TRAILING_COMMA = re.compile(r",\s+([)\]>])")


def _signature(
    text: bytes, start: int, end: int, holes: Sequence[tuple[int, tuple[int, bytes]]], starts: Sequence[int]
) -> str:
    """The text from `start` to `end` on one line, without what stands in `holes`."""
    parts = []
    for index in range(bisect_left(starts, start), len(starts)):
        hole, (hole_end, instead) = holes[index]
        if hole >= end or end - start <= 0:
            break
        if hole >= start:  # not inside the hole before
            parts += [text[start:hole], instead]
            start = hole_end
    # Twice the limit, because collapsing makes it shorter; and no more, because a "signature" may be a megabyte.
    raw = b"".join([*parts, text[start:end]])[: 16 * MAX_SIGNATURE].decode("utf-8", "ignore")
    line = " ".join(_ANGLE.sub("<", raw.replace("\\\n", " ")).split())
    line = _AFTER.sub(r"\1", _BEFORE.sub(r"\1", _TRAILING_COMMA.sub(r"\1", line)))
    while line.endswith(("=>", "{", ":", ";", "=", ",", " ")):
        line = line.removesuffix("=>").rstrip("{:;=, ")
    return line[: 4 * MAX_SIGNATURE]
