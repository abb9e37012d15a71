"""Which definitions only their own file can name: those and no others, because who is not sure must not say so."""

from __future__ import annotations

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import language_of

JS_TAIL = "\nfunction a() {}\nconst b = () => 1\nclass C {}\nvar d = 1, e = () => 2\n"


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("a.c", "static int f(void) { return 1; }\nint g(int a[static 2]) { return 2; }\nstruct S { int x; };\n", "f"),
        ("a.h", "static inline int f(void) { return 1; }\n", ""),
        ("a.c", "inline static const T *f(void) { return 0; }\nSTATIC int g(void) { return 1; }\n", "f"),
        ("a.c", "#define F(x) static x\ntypedef int (*static_fn)(void);\n", ""),
        ("a.cpp", "static const int K = 1;\nconst int L = 2;\nstruct S { static int m() { return 1; } };\n", "K"),
        ("a.cpp", "namespace n { namespace { int f() { return 1; } struct S { int x; }; } int g() { return 2; } }\n", "S f"),
        ("a.hpp", "namespace { int f() { return 1; } }\nstatic int g() { return 2; }\n", ""),
        ("a.h", "namespace n { static int g() { return 2; } }\n", ""),
        ("a.rs", "struct A;\npub struct B;\npub(crate) fn c() {}\npub(super) fn d() {}\nfn e() {}\n", "A e"),
        ("a.rs", "impl A { fn f() {} pub fn g() {} }\nimpl T for A { fn h() {} }\nimpl T<u8> for A { fn i() {} }\n", "f"),
        ("a.rs", "trait T { fn a(); fn b() {} }\npub trait U { fn c() {} }\nmacro_rules! m { () => {} }\n", "T"),
        ("a.rs", "mod below;\nfn helper() {}\n", ""),
        ("a.rs", "mod inside { pub fn f() {} fn g() {} }\n", "g inside"),
        ("A.java", "class A { private void m() {} void n() {} private A() {} private class B {} }\n", "A B m"),
        ("A.java", 'class A { @Name("private ") public static void m() {} }\n', ""),
        ("a.cs", "class A { private static void M() {} private protected void N() {} void O() {} }\n", "M"),
        ("a.cs", "file static class A {}\ninternal class B { public void M(int file) {} }\n", "A"),
        ("a.php", "<?php class A { final private static function f() {} public function g() {} private const C = 1; }", "C f"),
        ("a.ts", "export class A { private m() {} n() {} private static async o() {} private q = () => 1 }\n", "m o q"),
        ("a.ts", "export class A { private() {} public() {} }\n", ""),
        ("a.go", "package a\nfunc f() {}\n", ""),
        ("a.py", "def _f(): pass\n", ""),
        ("a.js", JS_TAIL, ""),
        ("a.js", "import x from 'x'" + JS_TAIL, "C a b"),
        ("a.js", "export { a, b as f }" + JS_TAIL, "C"),
        ("a.js", "export default C\nexport const z = () => 1\nexport function y() {}" + JS_TAIL, "a b"),
        ("a.js", "export default wrap({ a, x: b })" + JS_TAIL, "C"),
        ("a.js", "module.exports = { a, x: { b } }" + JS_TAIL, "C"),
        ("a.js", "exports.a = a; module.exports.c = C" + JS_TAIL, "b"),
        ("a.js", "module.exports = {}\nObject.assign(module.exports, { a })" + JS_TAIL, ""),
        ("a.js", "import 'x'\nwindow.a = a\nA.prototype.x = function () { b() }" + JS_TAIL, "C b"),
        ("a.js", "import 'x'\nif (y) { function nested() {} }\nlater(() => { function inner() {} })\n", ""),
        ("a.ts", "export = a" + JS_TAIL, "C b"),
        ("a.ts", "import 'x'\ninterface I {}\ntype T = I\nenum E {}\nabstract class K {}\nexport type { T }\n", "E I K"),
        ("a.d.ts", "import 'x'\ndeclare function f(): void\ninterface I {}\n", ""),
    ],
)  # fmt: skip
def test_what_only_its_own_file_can_name(path: str, source: str, expected: str) -> None:
    language = language_of(path)
    assert language is not None
    found = extract(source.encode(), language)
    assert found.degraded == ""
    assert sorted({item.name for item in found.definitions if item.local}) == expected.split()
