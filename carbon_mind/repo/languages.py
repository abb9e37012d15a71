"""The languages that are understood: how a file is recognised, which grammar parses it, which query finds what in it.

Grammars are the official per-grammar wheels, imported when the first file of their language is parsed. One that is not installed is
no error: its files are then listed as without grammar.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

EXTRACTOR = 1
"""Raised when `extract` changes what it finds; part of every cache key."""


@dataclass(frozen=True, slots=True)
class Language:
    """One row of the table. `grammar` is `module:function` of the wheel; the query is queries/<name>.scm."""

    name: str
    suffixes: tuple[str, ...]
    grammar: str
    distribution: str
    names: tuple[str, ...] = ()  # whole file names


@dataclass(frozen=True, slots=True)
class Queries:
    """The three parts of a query file: they run apart because each is needed in another form, or not at all."""

    definitions: tree_sitter.Query
    uses: tree_sitter.Query
    comments: tree_sitter.Query


def _row(name: str, suffixes: str, module: str, function: str = "language", names: str = "") -> Language:
    distribution = module.replace("_", "-")
    return Language(name, tuple(suffixes.split()), f"{module}:{function}", distribution, tuple(names.split()))


LANGUAGES: tuple[Language, ...] = (
    _row("python", ".py .pyi .pyw", "tree_sitter_python"),
    _row("javascript", ".js .jsx .mjs .cjs", "tree_sitter_javascript"),
    _row("typescript", ".ts .mts .cts", "tree_sitter_typescript", "language_typescript"),
    _row("tsx", ".tsx", "tree_sitter_typescript", "language_tsx"),
    _row("go", ".go", "tree_sitter_go"),
    _row("rust", ".rs", "tree_sitter_rust"),
    _row("c", ".c .h", "tree_sitter_c"),
    _row("cpp", ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .inl .tpp .cu .cuh", "tree_sitter_cpp"),
    _row("java", ".java", "tree_sitter_java"),
    _row("ruby", ".rb .rake .gemspec", "tree_sitter_ruby", names="Rakefile Gemfile"),
    _row("c_sharp", ".cs", "tree_sitter_c_sharp"),
    _row("php", ".php", "tree_sitter_php", "language_php"),
    _row("bash", ".sh .bash", "tree_sitter_bash"),
)

_BY_NAME = {language.name: language for language in LANGUAGES}
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}
_BY_FILE = {name: language for language in LANGUAGES for name in language.names}


def language_of(path: str) -> Language | None:
    """The language of a path, by its name alone; None when it is none of ours or its grammar is not installed."""
    name = path.rsplit("/", 1)[-1]
    found = _BY_FILE.get(name)
    if found is None and "." in name:
        found = _BY_SUFFIX.get(name[name.rindex(".") :].lower())
    return found if found is not None and _installed(found.grammar.split(":")[0]) else None


def by_name(name: str) -> Language:
    """The row of that name. Raises KeyError."""
    return _BY_NAME[name]


@functools.cache
def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@functools.cache
def query_text(name: str) -> str:
    """The query file of a language."""
    return files("carbon_mind.repo").joinpath(f"queries/{name}.scm").read_text(encoding="utf-8")


@functools.cache
def versions(language: Language) -> str:
    """What the tags of this language depend on besides the file: extractor, grammar version, query."""
    grammar = importlib.metadata.version(language.distribution)
    query = hashlib.sha256(query_text(language.name).encode()).hexdigest()[:12]
    if language.name == "c":  # a header may turn out to be C++
        query += f"+{versions(_BY_NAME['cpp'])}"
    return f"{language.name} {EXTRACTOR} {grammar} {query}"


@functools.cache
def fingerprint() -> str:
    """Versions of all installed languages in one hash: the digest of a repository depends on it."""
    known = [versions(language) for language in LANGUAGES if _installed(language.grammar.split(":")[0])]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


@functools.cache
def grammar(language: Language) -> tree_sitter.Language:
    """The loaded grammar."""
    import tree_sitter

    module, function = language.grammar.split(":")
    return tree_sitter.Language(getattr(importlib.import_module(module), function)())


@functools.cache
def parser(language: Language) -> tree_sitter.Parser:
    """A parser for the language; one a process."""
    import tree_sitter

    return tree_sitter.Parser(grammar(language))


@functools.cache
def queries(language: Language) -> Queries:
    """The compiled parts of the language's query file, which are separated by the lines `; uses` and `; comments`."""
    import tree_sitter

    definitions, rest = query_text(language.name).split("\n; uses\n")
    uses, comments = rest.split("\n; comments\n")
    loaded = grammar(language)
    return Queries(*(tree_sitter.Query(loaded, part) for part in (definitions, uses, comments)))
