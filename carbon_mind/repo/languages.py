"""Which language a file is in, and what it takes to read it: one table, one row per language.

A row is data. Its grammar is a package of its own that is imported on first use; a language whose grammar is not installed is
still known by name, so that a report can say what was left out. What its query captures is told in `extract`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tree_sitter

__all__ = ["LANGUAGES", "Language", "fingerprint", "grammar", "language_of", "query_text", "settle", "versions"]

_HERE = Path(__file__).parent
_QUERIES = _HERE / "queries"
_CODE = (  # all of ours that decides what the tags of a given source are
    _HERE / "extract.py",
    _HERE / "extract_imports.py",
    _HERE / "extract_marks.py",
    _HERE / "extract_scope.py",
    _HERE / "languages.py",
    _HERE / "outline.py",
    _HERE.parent / "safety" / "credentials.py",
    _HERE.parent / "safety" / "secrets.py",
)


Part = Literal["all", "code", "imports"]


@dataclass(frozen=True, slots=True)
class Language:
    """A row of the table. Values compare by content, so a row survives a trip to another process."""

    name: str  # as it appears in Tags.language
    module: str  # of the grammar; its distribution has the same name with `-`
    queries: tuple[str, ...]  # files of queries/, read as one text: an earlier pattern wins over a later one
    suffixes: tuple[str, ...] = ()  # in lower case
    filenames: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()  # of a script's first line, without their version
    function: str = "language"  # of `module`
    constant: str = ""  # expression for the names of constants that others can use; "" takes them all
    importers: tuple[str, ...] = ()  # functions whose first argument is an import
    mixers: tuple[str, ...] = ()  # functions whose arguments are bases
    roots: tuple[str, ...] = ()  # the class that every class derives from: it tells nothing as a base
    separator: str = ""  # a definition's name starts behind the last one
    headers: tuple[str, ...] = ()  # fields that end a signature, where no delimiter stands before the body
    local_types: bool = False  # functions do not nest: a definition that seems to lie in one is a mistake of the parser
    angles: bool = (
        False  # the parser tries `a < b` both as comparison and as type arguments, at a cost that grows with nesting
    )
    unsettled: bool = False  # a file of this row may turn out to be in C++
    part: Part = "all"  # of the query: what is asked of a file; `outlined` and `untested` choose
    header: bool = False  # what is `static` here is in every file that includes this one
    exports: bool = False  # a file may be a module, and only what it exports is there for others
    local: str = ""  # expression for `<kind> <signature>` of what only its own file, or its own class, can name


_ECMA = ("require", "import")
_STATIC = r"(?:function|constant) [^(]*\bstatic\b"
_PRIVATE = r"\w+ (?:[\w-]+ )*private "
_UPPER = "[A-Z][A-Z0-9_]+"

_TABLE = (
    Language(
        "bash",
        "tree_sitter_bash",
        ("bash.scm",),
        suffixes=(".sh", ".bash", ".bats"),
        filenames=(".bashrc", ".bash_profile", ".profile", "PKGBUILD"),
        interpreters=("sh", "bash", "dash", "ash", "ksh", "zsh"),
        constant=_UPPER,
        importers=("source", "."),
    ),
    Language("c", "tree_sitter_c", ("c.scm",), suffixes=(".c",), local_types=True, local=_STATIC),
    Language(
        "c_sharp",
        "tree_sitter_c_sharp",
        ("c_sharp.scm",),
        suffixes=(".cs", ".csx"),
        angles=True,
        local=r"(?!.*\bprotected )\w+ (?:\w+ )*(?:private |file (?:\w+ )*(?:class|struct|interface|enum|record|delegate)\b)",
    ),
    Language(
        "cpp",
        "tree_sitter_cpp",
        ("cpp.scm", "c.scm"),
        suffixes=(".cc", ".cpp", ".cxx", ".c++", ".cu"),
        separator="::",
        local_types=True,
        local=_STATIC,
    ),
    Language("go", "tree_sitter_go", ("go.scm",), suffixes=(".go",), constant="[A-Z].*"),
    Language(
        "java", "tree_sitter_java", ("java.scm",), suffixes=(".java",), roots=("Object",), angles=True, local=_PRIVATE
    ),
    Language(
        "javascript",
        "tree_sitter_javascript",
        ("ecma.scm", "jsx.scm", "javascript.scm"),
        suffixes=(".js", ".jsx", ".mjs", ".cjs"),
        filenames=("Jakefile",),
        interpreters=("node", "nodejs"),
        importers=_ECMA,
        exports=True,
    ),
    Language(
        "php",
        "tree_sitter_php",
        ("php.scm",),
        suffixes=(".php", ".phtml"),
        interpreters=("php",),
        function="language_php",
        local=_PRIVATE,
    ),
    Language(
        "python",
        "tree_sitter_python",
        ("python.scm",),
        suffixes=(".py", ".pyi", ".pyw"),
        filenames=("SConstruct", "SConscript", "wscript"),
        roots=("object",),
        interpreters=("python", "pypy"),
        constant=_UPPER,
    ),
    Language(
        "ruby",
        "tree_sitter_ruby",
        ("ruby.scm",),
        suffixes=(".rb", ".rake", ".gemspec", ".ru", ".podspec"),
        filenames=("Rakefile", "Gemfile", "Guardfile", "Vagrantfile", "Podfile", "Brewfile", "Fastfile", "Dangerfile"),
        interpreters=("ruby", "jruby"),
        importers=("require", "require_relative", "load"),
        roots=("Object", "BasicObject"),
        mixers=("include", "extend", "prepend"),
        headers=("parameters", "superclass", "name"),
    ),
    Language("rust", "tree_sitter_rust", ("rust.scm",), suffixes=(".rs",), local=r"(?!macro )\w+ (?!pub\b)"),
    Language(
        "tsx",
        "tree_sitter_typescript",
        ("ecma.scm", "jsx.scm", "typescript.scm"),
        suffixes=(".tsx",),
        function="language_tsx",
        importers=_ECMA,
        exports=True,
        local=_PRIVATE,
    ),
    Language(
        "typescript",
        "tree_sitter_typescript",
        ("ecma.scm", "typescript.scm"),
        suffixes=(".ts", ".mts", ".cts"),
        interpreters=("deno", "bun", "ts-node", "tsx"),
        function="language_typescript",
        importers=_ECMA,
        exports=True,
        local=_PRIVATE,
    ),
    # Grammars of the extra `languages`: where one is not installed, its files are named in the coverage and not parsed.
    Language("kotlin", "tree_sitter_kotlin", ("kotlin.scm",), suffixes=(".kt", ".kts"), angles=True),
    Language(
        "lua",
        "tree_sitter_lua",
        ("lua.scm",),
        suffixes=(".lua",),
        interpreters=("lua", "luajit"),
        importers=("require",),
    ),
    Language("scala", "tree_sitter_scala", ("scala.scm",), suffixes=(".scala", ".sc")),
    Language("swift", "tree_sitter_swift", ("swift.scm",), suffixes=(".swift",), interpreters=("swift",)),
    Language("zig", "tree_sitter_zig", ("zig.scm",), suffixes=(".zig",), importers=("@import",)),
)

LANGUAGES: dict[str, Language] = {language.name: language for language in _TABLE}

# Rows of their own, because a header's names are everybody's; and only the text tells whether a `.h` is C or C++, so that the path
# must do until the text is read.
_C_HEADER = replace(LANGUAGES["c"], suffixes=(), header=True, local="")
_CPP_HEADER = replace(
    LANGUAGES["cpp"],
    suffixes=(".hh", ".hpp", ".hxx", ".h++", ".ipp", ".inl", ".tpp", ".cuh"),
    header=True,
    local="",
)
_HEADER = replace(_C_HEADER, suffixes=(".h",), unsettled=True)

_BY_SUFFIX = {suffix: language for language in (*_TABLE, _CPP_HEADER, _HEADER) for suffix in language.suffixes}
_BY_FILENAME = {name: language for language in _TABLE for name in language.filenames}
_BY_INTERPRETER = {name: language for language in _TABLE for name in language.interpreters}


# --- recognising ---------------------------------------------------------------------------------------------


def language_of(path: str, head: bytes = b"") -> Language | None:
    """The language of a file, or None. `head` is the start of its bytes, or all of them, where the caller has them.

    Without `head` a script that has no suffix stays unknown, and a `.h` gets a row that `settle` decides later.
    """
    name = path.rsplit("/", 1)[-1]
    found = _BY_FILENAME.get(name)
    if found is None and "." in name[1:]:
        found = _BY_SUFFIX.get("." + name.rsplit(".", 1)[1].lower())
        return settle(found, head) if found is not None and head else found
    return found or _by_first_line(head)


_SHEBANG = re.compile(rb"#![ \t]*(\S+)([^\n]*)")
_VERSION = re.compile(r"[0-9.]+$")


def _by_first_line(head: bytes) -> Language | None:
    match = _SHEBANG.match(head.removeprefix(b"\xef\xbb\xbf"))
    if match is None:
        return None
    program, arguments = match[1].decode("latin-1"), match[2].decode("latin-1").split()
    name = program.rsplit("/", 1)[-1]
    if name == "env":  # `env -S python3 -u`, `env LANG=C bash`
        words = [word for word in arguments if not word.startswith("-") and "=" not in word]
        name = words[0].rsplit("/", 1)[-1] if words else ""
    return _BY_INTERPRETER.get(_VERSION.sub("", name))


# Each expression eats up to the end where its closing part is missing: a search from every start would be quadratic.
_COMMENTS = re.compile(rb"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
# What a C header shows to C++ alone does not make it C++.
_GUARDED = re.compile(
    rb"^[ \t]*#[ \t]*if[^\n]*__cplusplus.*?(?:^[ \t]*#[ \t]*(?:else|elif|endif)|\Z)", re.DOTALL | re.MULTILINE
)
_CPP = re.compile(
    rb"^[ \t]*(?:(?:public|private|protected)[ \t]*:|template[ \t]*<|(?:inline[ \t]+)?namespace\b[^;=\n]*(?:\{|$)"
    rb"|using[ \t]+(?:namespace[ \t]+)?\w[\w:]*[ \t]*[;=]|(?:enum[ \t]+)?class[ \t]+\w[^;({]{0,300}\{)",
    re.MULTILINE,
)


def settle(language: Language, source: bytes) -> Language:
    """The language that `source` is in, for a row that leaves it open: a `.h` is C unless its text clearly is C++."""
    if not language.unsettled:
        return language
    text = _GUARDED.sub(b"", _COMMENTS.sub(b" ", source))
    found = _CPP_HEADER if _CPP.search(text) else _C_HEADER
    return replace(found, part=language.part)


@functools.cache
def untested(language: Language) -> Language:
    """The row for a file in which no test that is switched off is looked for: those patterns are slow to compile."""
    return replace(language, part="code")


# Where a test names what it tests in an import; elsewhere it may stand in the same package and say nothing.
_OUTLINED = frozenset(["bash", "c", "cpp", "javascript", "lua", "php", "python", "rust", "tsx", "typescript", "zig"])


@functools.cache
def outlined(language: Language) -> Language:
    """The row for a file of which only the imports matter, as far as they tell what it is about."""
    return replace(language, part="imports" if language.name in _OUTLINED else "all")


# --- grammars ------------------------------------------------------------------------------------------------


def grammar(language: Language) -> tree_sitter.Language | None:
    """The parser's tables, or None where the grammar's package is not installed or too old or new for tree-sitter."""
    return _tables(language.module, language.function)


@functools.cache
def _tables(module: str, function: str) -> tree_sitter.Language | None:
    import tree_sitter

    try:
        return tree_sitter.Language(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, ValueError):
        return None


@functools.cache
def query_text(language: Language) -> str:
    """The query of a language: its files, one after the other, or those of their patterns that tell what is asked for."""
    text = "".join((_QUERIES / name).read_text(encoding="utf-8") for name in language.queries)
    if language.part == "all" or (language.part == "code" and "@off" not in text):
        return text
    return "\n".join(pattern for pattern in _patterns(text) if _wanted(pattern, language.part)) + "\n"


def _wanted(pattern: str, part: Part) -> bool:
    if part == "imports":
        return _IMPORTING.search(pattern) is not None
    return "@off" not in pattern or _IMPORTING.search(pattern) is not None


_IMPORTING = re.compile(r"@(import|package|attribute)\b")
_PIECES = re.compile(r""";[^\n]*|"(?:\\.|[^"\\])*"|[(\[]|[)\]]|[^;"()\[\]]+""")


def _patterns(query: str) -> list[str]:
    """The patterns of a query without its comments, each with the captures behind it."""
    found = [""]
    depth = 0
    for piece in _PIECES.findall(query):
        if piece.startswith(";"):
            continue
        if piece in "([":
            if depth == 0:
                found.append("")
            depth += 1
        elif piece in ")]":
            depth -= 1
        found[-1] += piece
    return [pattern.strip() for pattern in found if pattern.strip()]


@functools.cache
def versions(language: Language) -> str:
    """All that decides which tags come out of a given source, as a short text; part of a cache key."""
    if language.unsettled:
        rows = (_C_HEADER, _CPP_HEADER)
        return " or ".join(versions(replace(row, part=language.part)) for row in rows)
    package = language.module.replace("_", "-")
    digest = hashlib.sha256(query_text(language).encode()).hexdigest()[:16]
    name = f"{language.name} header" if language.header else language.name
    runtime = f"tree-sitter-{_version('tree-sitter')}"
    outline = " outline" if language.part == "imports" else ""
    return f"{name} {package}-{_version(package)} {runtime} sha256:{digest} {_extractor()}{outline}"


@functools.cache
def _extractor() -> str:
    """The version of our own code. A number raised by hand would be forgotten; at worst, a changed comment costs one more parse."""
    digest = hashlib.sha256()
    for path in _CODE:
        digest.update(path.read_bytes())
    return f"extractor-{digest.hexdigest()[:16]}"


@functools.cache
def _version(package: str) -> str:
    """The version of an installed distribution, as its folder is named: importlib.metadata parses each one's mail headers, at 1 ms."""
    return _distributions().get(package, "absent")


@functools.cache
def _distributions() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))  # noqa: PTH208 - names are all that is wanted
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                project, _, version = name.rpartition(".")[0].partition("-")
                found.setdefault(re.sub(r"[-_.]+", "-", project).lower(), version)
    return found


@functools.cache
def fingerprint() -> str:
    """SHA-256 over `versions` of every language: equal when every source gives the same tags as before."""
    text = "\n".join(versions(language) for language in (*_TABLE, _CPP_HEADER, _HEADER))
    return hashlib.sha256(text.encode()).hexdigest()
