"""Imports and packages in every way that a language lets one write them, and on trees that nobody would write."""

from __future__ import annotations

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES


def imports(language: str, source: str) -> list[str]:
    return list(extract(source.encode(), LANGUAGES[language]).imports)


def packages(language: str, source: str) -> list[str]:
    return list(extract(source.encode(), LANGUAGES[language]).packages)


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("python", "import a.b as c, d\n", ["a.b", "d"]),
        ("python", "from a.b import c\n", ["a.b", "a.b:c"]),
        ("python", "from . import mod, other as o\n", [".", ".:mod", ".:other"]),
        ("python", "from .. x import (f, # why\n  g as h,\n)\n", ["..x", "..x:f", "..x:g"]),
        ("python", "from a import *\n", ["a"]),
        ("python", "from __future__ import annotations\n", []),
        ("python", "def f():\n    from .lazy import g\n", [".lazy", ".lazy:g"]),
        ("rust", "use a;\nuse ::b::c;\n", ["a", "b::c"]),
        ("rust", "use crate::{a::b, c as d};\n", ["crate::a::b", "crate::c"]),
        ("rust", "use a::{self, b};\nuse c::{self as d};\n", ["a", "a::b", "c"]),
        ("rust", "use a::{b::{c, d::*, // e, f\n}, /* g, */ h::{self, i}};\n", ["a::b::c", "a::b::d::*", "a::h", "a::h::i"]),
        ("rust", "use super::x;\nuse self::y::*;\nuse {b, c::d};\n", ["b", "c::d", "self::y::*", "super::x"]),
        ("rust", "pub(crate) use r#type::r#as as r#use;\n", ["type::as"]),
        ("rust", "use a::{};\nuse b as _;\n", ["b"]),
        ("rust", "extern crate alloc;\nextern crate b as c;\n", ["alloc", "b"]),
        ("rust", "mod a;\npub mod r#type;\nmod inner { fn f() {} mod deep; }\n", ["self::a", "self::inner::deep", "self::type"]),
        ("rust", '#[path = "odd/x.rs"]\nmod x;\nmod y;\n', ["path:odd/x.rs", "self::y"]),
        ("rust", '#[path = "x_unix.rs"]\n// the unix one\n#[cfg(unix)]\npub mod x;\n', ["path:x_unix.rs"]),
        ("rust", '#[doc = "x.rs"]\nmod x;\n#[path = "y.rs"]\nstruct S;\nmod z;\n', ["self::x", "self::z"]),
        ("go", 'import (\n\t"fmt"\n\tx "a.b/c"\n\t_ `d`\n)\n', ["a.b/c", "d", "fmt"]),
        ("java", "import a.b.C;\nimport a.b.*;\n", ["a.b.*", "a.b.C"]),
        ("java", "import static a.b.C.m;\nimport static a . b.D.*;\n", ["a.b.C.m", "a.b.D.*"]),
        ("c_sharp", "using A.B;\nglobal using C;\nusing static System.Math;\n", ["A.B", "C", "System.Math"]),
        ("c_sharp", "using X = A.B<C>;\nusing Y = global::D.E;\nusing Z = F;\n", ["A.B", "D.E", "F"]),
        ("php", "<?php use A\\B, \\C\\D as E;\n", ["A\\B", "C\\D"]),
        ("php", "<?php use function A\\f;\nuse const A\\C;\n", ["A\\C", "A\\f"]),
        ("php", "<?php use A\\{B, C\\D as E, function f, const G,};\n", ["A\\B", "A\\C\\D", "A\\G", "A\\f"]),
        ("php", "<?php use function A\\{f, /* g, */ h};\n", ["A\\f", "A\\h"]),
        ("php", "<?php require 'a.php'; include_once('../b.php');\n", ["../b.php", "a.php"]),
        ("php", '<?php require __DIR__ . "/a.php"; include dirname(__FILE__).\'/b.php\';\n', ["./a.php", "./b.php"]),
        ("php", '<?php require $x; require ROOT . "/a.php"; require "$x.php"; function () use ($x) {};\n', []),
        ("c", '#include "x.h"\n#include <sys/y.h>\n#include Z\n', ["<sys/y.h>", "x.h"]),
        ("javascript", "import a from './a';\nexport { b } from 'b';\nexport * from './c.js';\n", ["./a", "./c.js", "b"]),
        ("javascript", "const d = require('d'); const e = await import(`./e`); import(`./${f}`); g('h');\n", ["./e", "d"]),
        ("typescript", "import type { A } from './a';\nimport b = require('b');\nexport type * from 'c';\n", ["./a", "b", "c"]),
        ("ruby", "require 'a/b'\nrequire_relative 'c'\nload x\n", ["./c", "a/b"]),
        ("bash", 'source "$HERE/a.sh"\n. ./b.sh\n', ["$HERE/a.sh", "./b.sh"]),
    ],
)  # fmt: skip
def test_how_imports_are_spelled(language: str, source: str, expected: list[str]) -> None:
    assert imports(language, source) == expected


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("go", "package ring\n", ["ring"]),
        ("java", "package a . b.c;\nclass D {}\n", ["a.b.c"]),
        ("c_sharp", "namespace A.B;\nclass C {}\n", ["A.B"]),
        ("c_sharp", "namespace A { class C {} namespace B.D { class E {} } }\nnamespace F { }\n", ["A", "A.B.D"]),
        ("c_sharp", "namespace A { using X; // only this\n namespace B { class E {} } }\n", ["A.B"]),
        ("php", "<?php namespace A\\B { class C {} } namespace D { class E {} } namespace { f(); }\n", ["A\\B", "D"]),
        ("python", "import a\n", []),
    ],
)
def test_the_packages_that_a_file_is_part_of(language: str, source: str, expected: list[str]) -> None:
    assert packages(language, source) == expected


def test_a_tree_without_end_has_an_end() -> None:
    wide = imports("rust", "use a::{" + ",\n".join(f"b{i}" for i in range(20_000)) + "};\n")
    assert len(wide) == 1_000
    deep = imports("rust", "use " + "a::{b, " * 500 + "c" + "}" * 500 + ";\n")
    assert len(deep) == 16
    assert len(imports("php", "<?php use A\\{" + ",\n".join(f"B{i}" for i in range(20_000)) + "};\n")) == 1_000


def test_ten_thousand_attributes_and_modules_cost_no_square() -> None:
    # A walk back from each module would take hours, so a test that ends has passed.
    source = '#[path = "x.rs"]\n' * 20_000 + "mod a;\n" + "mod b;\n" * 20_000 + "/*" * 20_000
    assert imports("rust", source) == ["path:x.rs", "self::b"]
    assert extract(("namespace Name {" * 900 + "class C {}" + "}" * 900).encode(), LANGUAGES["c_sharp"]).packages == ()
