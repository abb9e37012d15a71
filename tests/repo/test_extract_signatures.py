"""What a signature shows: names and types on one line, no body of any kind, no value."""

from __future__ import annotations

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES


@pytest.mark.parametrize(
    ("language", "source", "name", "expected"),
    [
        ("c", "typedef struct _client { context *c; } *client;", "client", "typedef struct _client *client"),
        ("c", "struct x { int a; } f(void) { return y; }", "f", "struct x f(void)"),
        ("c", "typedef struct { struct { int a; } in; } outer[2];", "outer", "typedef struct outer[2]"),
        ("c", "typedef enum e { A, B } *e_p;", "e_p", "typedef enum e *e_p"),
        ("c", "#define MAX(a, \\\n  b) ((a) > (b) ? (a) : (b))\n", "MAX", "#define MAX(a, b)"),
        ("c", "#define LOG(fmt, ...) log(fmt)  // why\n", "LOG", "#define LOG(fmt, ...)"),
        ("c", "#define LIMIT /* bytes */ (1 << 20)\n", "LIMIT", "#define LIMIT"),
        ("cpp", "class A { int x; } f(int a = 3, B b = {}) { }", "f", "class A f(int a = ..., B b = ...)"),
        ("cpp", "const int AA = 1, BB = 2;", "BB", "const int AA = ..., BB"),
        ("c_sharp", 'class A { public const string AA = "x", BB = "y"; }', "BB", "public const string AA = ..., BB"),
        ("go", "func F(a int) (b struct{ c int }, d chan struct{}) { }", "F", "func F(a int) (b struct{...}, d chan struct{})"),
        ("java", 'class A { public static final String AA = "x", BB = "y"; }', "BB", "public static final String AA = ..., BB"),
        ("javascript", "function f({ a: b = 1 }, [c = 'x']) {}", "f", "function f({ a: b = ... }, [c = ...])"),
        ("typescript", "function f({ a: b = 1 }: P = {}, [c = 'x'] = []) {}", "f", "function f({ a: b = ... }: P = ..., [c = ...] = ...)"),
        ("php", "<?php const AA = 'x', BB = 'y';", "BB", "const AA = ..., BB"),
        ("bash", "declare -r AA=x BB=y\n", "BB", "declare -r AA=... BB"),
        ("python", "def f(a=(1, 'x'), *, b: str = 'y'): ...", "f", "def f(a=..., *, b: str = ...)"),
        ("ruby", "def f(a = 'x', b: 'y')\nend", "f", "def f(a = ..., b: ...)"),
        ("rust", "pub fn f<T: A = B>(a: [u8; 3]) -> T where T: C { }", "f", "pub fn f<T: A = B>(a: [u8; 3]) -> T where T: C"),
    ],
)  # fmt: skip
def test_a_signature_has_no_body_and_no_value(language: str, source: str, name: str, expected: str) -> None:
    found = extract(source.encode(), LANGUAGES[language]).definitions
    assert [item.signature for item in found if item.name == name] == [expected]


def test_the_class_of_all_classes_is_no_base() -> None:
    assert extract(b"class A(object, Bb): pass\n", LANGUAGES["python"]).bases == (("Bb", 1),)
    assert extract(b"class A < Object; end\nclass B < Aa; end\n", LANGUAGES["ruby"]).bases == (("Aa", 1),)
    assert extract(b"class Aa extends Object implements Bb {}\n", LANGUAGES["java"]).bases == (("Bb", 1),)
