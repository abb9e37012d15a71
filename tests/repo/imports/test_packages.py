"""Go, Java, C#, PHP: a name for many files, wherever they lie."""

from __future__ import annotations

import pytest

from tests.repo.imports.helpers import named, visible

GO = {
    "go.mod": "module example.org/tool\n\ngo 1.22\n\nreplace example.org/forked => ./third/forked\n",
    "cmd/tool/main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.org/tool/labels"\n\tf "example.org/forked"\n'
    '\t"example.org/other/labels"\n)\n',
    "labels/labels.go": "package labels\n\ntype Label struct{}\n",
    "labels/regexp.go": "package labels\n\nfunc Match() {}\n",
    "labels/labels_test.go": 'package labels\n\nimport "testing"\n\nfunc helper(t *testing.T) {}\n',
    "labels/regexp_test.go": "package labels\n",
    "third/forked/go.mod": "module example.org/original\n",
    "third/forked/forked.go": "package forked\n",
    "nested/go.mod": "module example.org/tool/nested\n",
    "nested/deep/deep.go": 'package deep\n\nimport "example.org/tool/nested/deep/one"\n',
    "nested/deep/one/one.go": "package one\n",
}


def test_go_packages_are_directories() -> None:
    assert visible(GO, "cmd/tool/main.go") == ["labels/labels.go", "labels/regexp.go"]
    assert named(GO, "cmd/tool/main.go") == ["third/forked/forked.go"]  # the only file of its package
    assert named(GO, "nested/deep/deep.go") == ["nested/deep/one/one.go"]


def test_in_go_files_of_a_package_see_each_other_and_only_tests_see_tests() -> None:
    assert visible(GO, "labels/labels.go") == ["labels/regexp.go"]
    assert visible(GO, "labels/labels_test.go") == ["labels/labels.go", "labels/regexp.go", "labels/regexp_test.go"]


JAVA = {
    "core/src/main/java/org/x/Thing.java": "package org.x;\npublic class Thing { public static class Inner {} }\nclass Hidden {}\n",
    "core/src/main/java/org/x/util/Checks.java": "package org.x.util;\npublic class Checks { public static void notNull() {} }\n",
    "core/src/main/java/org/x/util/More.java": "package org.x.util;\npublic class More {}\n",
    "app/src/main/java/org/x/Peer.java": "package org.x;\npublic class Peer {}\n",
}
JAVA_IMPORTS = [
    ("org.x.Thing", ["Thing"], []),
    ("org.x.Thing.Inner", ["Thing"], []),
    ("static org.x.util.Checks.notNull", ["Checks"], []),
    ("static org.x.util.Checks.*", ["Checks"], []),
    ("org.x.util.*", [], ["Checks", "More"]),
    ("org.y.Thing", [], []),
    ("java.util.List", [], []),
]


@pytest.mark.parametrize(("text", "exact", "seen"), JAVA_IMPORTS)
def test_java_imports(text: str, exact: list[str], seen: list[str]) -> None:
    files = {**JAVA, "app/src/main/java/z/User.java": f"package z;\nimport {text};\nclass User {{}}\n"}
    stems = {path: path.rpartition("/")[2].removesuffix(".java") for path in files}
    assert [stems[path] for path in named(files, "app/src/main/java/z/User.java")] == exact
    assert [stems[path] for path in visible(files, "app/src/main/java/z/User.java")] == seen


def test_java_packages_reach_across_source_roots() -> None:
    assert visible(JAVA, "app/src/main/java/org/x/Peer.java") == ["core/src/main/java/org/x/Thing.java"]


CSHARP = {
    "src/App/App.csproj": "<Project />",
    "src/App/GlobalUsings.cs": "global using Shop.Shared;\n",
    "src/App/Program.cs": "using Shop.Stock;\nusing System;\nnamespace Shop.Web;\nclass Program {}\n",
    "src/App/Deep/Page.cs": "namespace Shop.Web.Pages { class Page {} }\n",
    "src/Core/Shelf.cs": "namespace Shop.Stock { public class Shelf {} }\n",
    "src/Core/Shared.cs": "namespace Shop.Shared;\npublic static class Text {}\n",
    "src/Core/User.cs": "using static Shop.Shared.Text;\nnamespace Other;\nclass User {}\n",
}


def test_csharp_namespaces() -> None:
    assert visible(CSHARP, "src/App/Program.cs") == [
        "src/App/GlobalUsings.cs",
        "src/Core/Shared.cs",
        "src/Core/Shelf.cs",
    ]
    # A namespace sees those around it, and what its project opens for all.
    assert visible(CSHARP, "src/App/Deep/Page.cs") == [
        "src/App/GlobalUsings.cs",
        "src/App/Program.cs",
        "src/Core/Shared.cs",
    ]
    assert named(CSHARP, "src/Core/User.cs") == ["src/Core/Shared.cs"]
    assert visible(CSHARP, "src/Core/Shelf.cs") == ["src/App/GlobalUsings.cs"]


PHP = {
    "src/Mail/Mailer.php": "<?php\nnamespace App\\Mail;\nclass Mailer {}\n",
    "src/Mail/Letter.php": "<?php\nnamespace App\\Mail;\nclass Letter {}\n",
    "src/helpers.php": "<?php\nnamespace App\\Support;\nfunction retry() {}\n",
    "legacy/global.php": "<?php\nclass Legacy {}\n",
}
PHP_IMPORTS = [
    ("use App\\Mail\\Mailer;", ["src/Mail/Mailer.php"], []),
    ("use App\\Mail\\{Mailer, Letter as L};", ["src/Mail/Letter.php", "src/Mail/Mailer.php"], []),
    ("use function App\\Support\\retry;", ["src/helpers.php"], []),
    ("use App\\Mail;", [], ["src/Mail/Letter.php", "src/Mail/Mailer.php"]),
    ("require __DIR__ . '/../legacy/global.php';", ["legacy/global.php"], []),
    ("require_once 'helpers.php';", ["src/helpers.php"], []),
    ("use Psr\\Log\\LoggerInterface;", [], []),
]


@pytest.mark.parametrize(("text", "exact", "seen"), PHP_IMPORTS)
def test_php_imports(text: str, exact: list[str], seen: list[str]) -> None:
    files = {**PHP, "src/User.php": f"<?php\nnamespace Z;\n{text}\n"}
    assert named(files, "src/User.php") == exact
    assert visible(files, "src/User.php") == seen


def test_php_classes_of_one_namespace_see_each_other() -> None:
    assert visible(PHP, "src/Mail/Mailer.php") == ["src/Mail/Letter.php"]
