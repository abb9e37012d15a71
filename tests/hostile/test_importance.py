"""Case 11: what matters comes first. Repositories with the shapes that put vendored, generated and test files on top elsewhere."""

from __future__ import annotations

from pathlib import Path

from carbon_mind.repo.classify import kind_of
from carbon_mind.values import RepoPath
from tests.conftest import Repository
from tests.hostile.conftest import digest_of, distil

TOP = 15


def top(repository: Repository, tmp_path: Path) -> list[RepoPath]:
    digest = digest_of(distil(repository.path, tmp_path / "cache"))
    return [file.path for file in digest.critical_files][:TOP]


def test_a_server_in_c_with_vendored_libraries(repository: Repository, tmp_path: Path) -> None:
    """src/server.c calls everything and is called by few; a vendored header is included by everybody."""
    parts = ["dict", "list", "zset", "net", "blob", "cfg", "repl", "evict", "latency", "sort", "geo", "stream"]
    repository.write("deps/fast/fast.h", "#define FAST 1\nint fast_parse(const char *s);\nint fast_count(int a);\n")
    repository.write(
        "deps/fast/fast.c",
        '#include "fast.h"\nint fast_parse(const char *s) { return 1; }\nint fast_count(int a) { return a; }\n',
    )
    for number in range(20):
        repository.write(
            f"deps/alloc/a{number}.c", '#include "../fast/fast.h"\nvoid x(void) { fast_parse("a"); fast_count(1); }\n'
        )
    repository.write(
        "src/server.h",
        "struct client;\nvoid serverLog(int level, const char *s);\nvoid addReply(struct client *c);\nextern int server_port;\n",
    )
    calls = "".join(f"    {part}Init();\n    {part}Cron();\n" for part in parts)
    repository.write(
        "src/server.c",
        '#include "server.h"\n'
        + "".join(f'#include "{part}.h"\n' for part in parts)
        + "int server_port = 1;\nvoid serverLog(int level, const char *s) { }\nvoid call(struct client *c) { }\n"
        + f"int main(int argc, char **argv) {{\n{calls}    return 0;\n}}\n",
    )
    for part in parts:
        repository.write(f"src/{part}.h", f"void {part}Init(void);\nvoid {part}Cron(void);\n")
        repository.write(
            f"src/{part}.c",
            f'#include "server.h"\n#include "{part}.h"\n#include "../deps/fast/fast.h"\n'
            f'void {part}Init(void) {{ serverLog(1, "x"); fast_parse("y"); fast_count(2); }}\n'
            f"void {part}Cron(void) {{ addReply(0); call(0); }}\n",
        )
        repository.write(
            f"tests/unit/test_{part}.c",
            f'#include "../../src/{part}.h"\nint main(void) {{ {part}Init(); fast_parse("x"); return 0; }}\n',
        )
    repository.write(
        "src/Makefile", "all: server\n\nserver: server.o\n\t$(CC) -o server server.o\n\ntest:\n\t./runtest\n"
    )
    repository.commit()
    found = top(repository, tmp_path)
    assert "src/server.c" in found
    assert "src/server.h" in found
    assert not [path for path in found if path.startswith(("deps/", "tests/"))]


def test_a_go_module_with_generated_code(repository: Repository, tmp_path: Path) -> None:
    repository.write("go.mod", "module example.org/prom\n\ngo 1.22\n")
    packages = ["tsdb", "rules", "scrape", "web", "storage", "promql", "config", "discovery"]
    repository.write(
        "prompb/types.pb.go",
        "package prompb\n\ntype Sample struct{ V int }\n\nfunc (s *Sample) GetValue() int { return s.V }\n",
    )
    repository.write(
        "vendor/example.com/log/log.go", "package log\n\nfunc Warnf(s string) {}\n\ntype Logger struct{}\n"
    )
    for package in packages:
        title = package.title()
        repository.write(
            f"{package}/{package}.go",
            f'package {package}\n\nimport (\n\t"example.com/log"\n\t"example.org/prom/prompb"\n)\n\n'
            f"type {title}Manager struct{{}}\n\n"
            f'func New{title}Manager() *{title}Manager {{\n\tlog.Warnf("x")\n\t_ = prompb.Sample{{}}\n\treturn nil\n}}\n',
        )
        repository.write(
            f"{package}/{package}_test.go",
            f'package {package}\n\nimport "testing"\n\nfunc Test{title}(t *testing.T) {{\n\tNew{title}Manager()\n\thelper{title}()\n}}\n\n'
            f"func helper{title}() {{}}\n",
        )
    imports = "".join(f'\t"example.org/prom/{package}"\n' for package in packages)
    calls = "".join(f"\t{package}.New{package.title()}Manager()\n" for package in packages)
    repository.write("cmd/prom/main.go", f"package main\n\nimport (\n{imports})\n\nfunc main() {{\n{calls}}}\n")
    repository.write("cmd/promtool/main.go", f"package main\n\nimport (\n{imports})\n\nfunc main() {{\n{calls}}}\n")
    repository.commit()
    found = top(repository, tmp_path)
    assert "cmd/prom/main.go" in found
    assert "cmd/promtool/main.go" in found
    assert not [path for path in found if path.endswith(("_test.go", ".pb.go")) or path.startswith("vendor/")]
    assert len([path for path in found if path.split("/")[0] in packages]) >= 6


def test_a_cargo_workspace(repository: Repository, tmp_path: Path) -> None:
    crates = ["cli", "globset", "grep", "ignore", "matcher", "printer", "regex", "searcher"]
    repository.write(
        "Cargo.toml",
        '[package]\nname = "rg"\nversion = "1.0.0"\n\n[[bin]]\nname = "rg"\npath = "crates/core/main.rs"\n\n'
        f"[workspace]\nmembers = [{', '.join(repr(f'crates/{crate}') for crate in crates)}]\n".replace("'", '"')
        + "\n[dependencies]\n"
        + "".join(f'grep-{crate} = {{ path = "crates/{crate}" }}\n' for crate in crates),
    )
    for crate in crates:
        builder = f"{crate.title()}Builder"
        repository.write(f"crates/{crate}/Cargo.toml", f'[package]\nname = "grep-{crate}"\nversion = "1.0.0"\n')
        repository.write(
            f"crates/{crate}/src/lib.rs",
            f"mod inner;\npub use inner::{builder};\npub fn open_{crate}() -> {builder} {{ {builder}::fresh() }}\n",
        )
        repository.write(
            f"crates/{crate}/src/inner.rs",
            f"pub struct {builder};\nimpl {builder} {{ pub fn fresh() -> {builder} {{ {builder} }} }}\n",
        )
        repository.write(
            f"crates/{crate}/benches/bench.rs",
            f"use grep_{crate}::{builder};\nfn main() {{ {builder}::fresh(); }}\n",
        )
    uses = "".join(f"use grep_{crate}::{crate.title()}Builder;\n" for crate in crates)
    calls = "".join(f"    {crate.title()}Builder::fresh();\n" for crate in crates)
    repository.write("crates/core/main.rs", f"mod flags;\n{uses}\nfn main() {{\n{calls}    flags::parse_flags();\n}}\n")
    repository.write("crates/core/flags.rs", "pub fn parse_flags() {}\n")
    repository.write("tests/util.rs", "pub struct Dir;\nimpl Dir { pub fn create_dir() {} }\n")
    for number in range(12):
        repository.write(f"tests/t{number}.rs", "mod util;\n#[test]\nfn t() { util::Dir::create_dir(); }\n")
    repository.commit()
    found = top(repository, tmp_path)
    assert "crates/core/main.rs" in found
    assert not [path for path in found if path.startswith("tests/") or "/benches/" in path]
    assert len([path for path in found if path.startswith("crates/")]) == len(found) >= 8


def test_everything_listed_is_this_project_s_own_code(repository: Repository, tmp_path: Path) -> None:
    """One file of each kind that is not, each used by forty files: none of them is among the first fifteen."""
    others = [
        "vendor/a.py", "third_party/b.py", "node_modules/c.js", "deps/d.py", "testdata/e.py", "tests/f.py", "src/g_test.py",
        "src/h_pb2.py", "dist/i.js", "src/j.min.js", "docs/k.py", "examples/l.py", "generated/m.py", "marked/n.py", "bought/o.py",
    ]  # fmt: skip
    repository.write(".gitattributes", "marked/** linguist-generated\nbought/** linguist-vendored=true\n")
    for number, path in enumerate(others):
        text = (
            f"export function common_{number}() {{}}\n"
            if path.endswith("js")
            else f"def common_{number}() -> None: ...\n"
        )
        repository.write(path, text)
    for number in range(40):
        imports = "".join(
            f"from {path.removesuffix('.py').replace('/', '.')} import common_{i}\n"
            for i, path in enumerate(others)
            if path.endswith("py")
        )
        calls = "".join(f"common_{i}()\n" for i in range(len(others)))
        repository.write(
            f"src/own_{number}.py",
            f"{imports}from src.base import base_thing\n\n\ndef own_{number}() -> None: ...\n\n\nbase_thing()\n{calls}",
        )
    repository.write("src/base.py", "def base_thing() -> None: ...\n")
    repository.commit()
    found = top(repository, tmp_path)
    assert found[0] == "src/base.py"
    assert not set(others) & set(found)
    assert all(kind_of(RepoPath(path)) == "source" for path in found)
