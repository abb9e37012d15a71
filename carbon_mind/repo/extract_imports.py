r"""How imports are spelled in `Tags.imports`: one text per module or name, complete, without quotes, whatever way it was written.

    python      "a.b"; ".", ".mod" as written; and "module:name" for each name of a from-import: "a.b:c", ".:mod", ".x:f"
    rust        each leaf of a `use` tree: "crate::a::b", "super::x", "a" and "a::b" for `a::{self, b}`, "a::*"; "x" for `extern crate x`;
                "self::x" for `mod x;` ("self::a::x" in `mod a { mod x; }`); "path:FILE" for one with #[path = "FILE"]
    go          the path
    java        "a.b.C", "a.b.*"; for a static import "a.b.C.m", "a.b.C.*"
    c_sharp     "A.B": a namespace, or the type of `using static` and of an alias
    php         "A\B\C" for each leaf of a `use`; a required path: "x.php" as written, "./x.php" where it starts at __DIR__
    c, cpp      "x.h" for `#include "x.h"`, "<x.h>" for `#include <x.h>`
    ruby        "x"; "./x" for `require_relative "x"`
    javascript  "./x", "x", of `import`, `export ... from`, `import()`, `require()`; typescript and tsx too
    bash        the word behind `source` or `.`, with its variables

A path or name that is put together at run time is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["spelled"]

MAX_LEAVES = 1_000  # of one tree
_DEPTH = 16  # of groups in groups; each may repeat the path before it


def spelled(language: str, raw: bytes, caller: bytes = b"") -> tuple[str, ...]:
    """The imports in `raw`, which the query of `language` captured; `caller` is the function that does the import, if one does."""
    text = raw.decode("utf-8", "replace")
    if caller == b"require_relative" and not text.startswith("."):
        text = f"./{text}"
    spell = _SPELL.get(language)
    found = spell(text) if spell is not None else (" ".join(text.split()),)
    return tuple(name for name in found if name)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_RUST_TOKEN = re.compile(r"(?:r#)?\w+|[{},*]")


def _rust(text: str) -> Iterator[str]:
    groups: list[tuple[str, ...]] = []
    prefix: tuple[str, ...] = ()
    path: list[str] = []
    renamed = False
    leaves = 0
    for word in [*_RUST_TOKEN.findall(_COMMENT.sub(" ", text)), ","]:
        if word == "{":
            if len(groups) == _DEPTH:
                return
            groups.append(prefix)
            prefix, path = (*prefix, *path), []
        elif word in (",", "}"):
            if path:
                names = [*prefix, *path]
                yield "::".join(names[:-1] if names[-1] == "self" and len(names) > 1 else names)
                leaves += 1
                if leaves == MAX_LEAVES:
                    return
            path, renamed = [], False
            if word == "}" and groups:
                prefix = groups.pop()
        elif word == "as":
            renamed = True
        elif not renamed:
            path.append(word.removeprefix("r#"))


_JAVA_IMPORT = re.compile(r"import\s+(?:static\s+)?([\w$.\s*]+)")


def _java(text: str) -> Iterator[str]:
    match = _JAVA_IMPORT.match(_COMMENT.sub(" ", text))
    if match:
        yield "".join(match[1].split())


def _c_sharp(text: str) -> Iterator[str]:
    yield "".join(_COMMENT.sub(" ", text).split()).removeprefix("global::").partition("<")[0]


_PHP_USE = re.compile(r"use\s+(?:(?:function|const)\s+)?([^;]*)")
_PHP_KIND = re.compile(r"(?:function|const)\s+")
_PHP_ALIAS = re.compile(r"\s+as\s.*", re.DOTALL | re.IGNORECASE)
_PHP_PATH = re.compile(
    r"""\(?\s*(?P<here>(?:__DIR__|dirname\(\s*__FILE__\s*\))\s*\.\s*)?(?P<quote>['"])(?P<path>[^'"$\\\n]+)(?P=quote)\s*\)?"""
)


def _php(text: str) -> Iterator[str]:
    use = _PHP_USE.match(text)
    if use is None:
        path = _PHP_PATH.fullmatch(text)
        if path:
            yield f"./{path['path'].lstrip('/')}" if path["here"] else path["path"]
        return
    prefix, _, group = _COMMENT.sub(" ", use[1]).rpartition("{")
    for item in group.split(",")[:MAX_LEAVES]:
        leaf = _PHP_ALIAS.sub("", _PHP_KIND.sub("", item.strip(" \t\n}"), count=1))
        if leaf:
            yield "".join((prefix + leaf).split()).lstrip("\\")


_SPELL: dict[str, Callable[[str], Iterator[str] | tuple[str, ...]]] = {
    "bash": lambda text: (text.strip("\"'"),),
    "c_sharp": _c_sharp,
    "java": _java,
    "php": _php,
    "python": lambda text: ("".join(text.split()),),
    "rust": _rust,
}
