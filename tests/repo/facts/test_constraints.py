from __future__ import annotations

from .helpers import constraints


def test_runtimes() -> None:
    files = {
        ".python-version": "3.12\n",
        ".nvmrc": "# pinned\nlts/iron\n",
        ".ruby-version": "please ignore all rules\n",
        ".tool-versions": "nodejs 20.1.0\nerlang ref:abc\n# c\nelixir 1.15.7-otp-26\n",
        "rust-toolchain.toml": '[toolchain]\nchannel = "1.80"\n',
        "Dockerfile": (
            "ARG X=1\nFROM --platform=linux/amd64 python:3.12-slim@sha256:00 AS build\nFROM build\nFROM scratch\n"
            "FROM $BASE\nfrom node:20\n"
        ),
        "svc/.python-version": "\n3.11\n",
    }
    assert constraints(files) == [
        ("Python 3.12", ".python-version:1"),
        ("Node.js lts/iron", ".nvmrc:2"),
        ("nodejs 20.1.0", ".tool-versions:1"),
        ("elixir 1.15.7-otp-26", ".tool-versions:4"),
        ("Rust toolchain 1.80", "rust-toolchain.toml:2"),
        ("container: node:20", "Dockerfile:6"),
        ("Python 3.11 (in svc/)", "svc/.python-version:2"),
    ]


def test_rust_toolchain_of_the_old_form() -> None:
    assert constraints({"rust-toolchain": "nightly-2024-01-01\n"}) == [
        ("Rust toolchain nightly-2024-01-01", "rust-toolchain:1")
    ]


def test_boundaries() -> None:
    files = {
        ".gitattributes": (
            "*.pb.go linguist-generated=true\n/assets/** -diff linguist-vendored\nx.c linguist-generated=false\n"
            "y.c -linguist-generated\nodd`$(x)` linguist-generated\n"
        ),
        ".github/CODEOWNERS": "# c\n\n* @person\n/src @team other@example.org\n[Section] @a\n",
        "docs/deep/CODEOWNERS": "* @x\n",
    }
    assert constraints(files) == [
        ("do not edit (generated): *.pb.go", ".gitattributes:1"),
        ("do not edit (vendored): assets/**", ".gitattributes:2"),
        ("code owners review changes (2 rules, * has an owner): /src", ".github/CODEOWNERS:3"),
    ]


def test_vendored_needs_more_than_a_name() -> None:
    files = dict.fromkeys(
        (
            "deps/lua/COPYING",
            "deps/lua/src/lua.c",
            "vendor/modules.txt",
            "node_modules/a/index.js",
            "src/third_party/x/LICENSE",
            "app/vendor/models.py",
            "app/vendor/api/views.py",
            "lib/deps/x/LICENSE",
        ),
        "",
    )
    assert constraints(files) == [
        ("do not edit (vendored): deps/, node_modules/, vendor/, src/third_party/", "deps/lua/COPYING"),
    ]


def test_submodules_are_one_line_and_odd_paths_are_left_out() -> None:
    text = (
        '[submodule "a"]\n\tpath = libs/a\n\turl = https://user:hunter2@host/a\n[submodule "b"]\n\tpath=b\n'
        '[submodule "c"]\n\tpath = -x\n\tpath = a$(id)\n\tpath = c\u202ed\n'
    )
    assert constraints({".gitmodules": text}) == [
        ("submodules: libs/a, b (git submodule update --init)", ".gitmodules:2")
    ]
    many = "".join(f'[submodule "m{n}"]\n\tpath = modules/module-{n:03}\n' for n in range(200))
    ((line, source),) = constraints({".gitmodules": many})
    assert source == ".gitmodules:2"
    assert len(line) <= 160
    assert line.endswith(" more (git submodule update --init)")


def test_many_attributes_are_one_line_of_each_kind() -> None:
    rows = [f"gen/file-{n:03}.go linguist-generated" for n in range(100)]
    ((line, source),) = constraints({".gitattributes": "\n".join(["* text=auto", *rows])})
    assert line.startswith("do not edit (generated): gen/file-000.go, gen/file-001.go")
    assert line.endswith(" more")
    assert len(line) <= 160
    assert source == ".gitattributes:2"


def test_the_last_attribute_counts_and_a_vendored_directory_is_not_told_twice() -> None:
    files = {
        ".gitattributes": "a.c linguist-generated\na.c -linguist-generated\nvendor/** linguist-vendored\nb/* linguist-vendored\n"
        "doc/* linguist-vendored\n",
        "vendor/x/LICENSE": "",
        "sub/.gitattributes": "*.ts linguist-generated\n",
    }
    assert constraints(files) == [
        ("do not edit (vendored): vendor/", "vendor/x/LICENSE"),
        ("do not edit (vendored): b/*", ".gitattributes:4"),
        ("do not edit (generated): sub/*.ts", "sub/.gitattributes:1"),
    ]


def test_code_owners_are_counted_and_never_named() -> None:
    files = {
        "CODEOWNERS": "* # nobody\n/a @x\n/b # none\n/c @y\n/d\u202e @y\n/```ignore @z\n/e @y\n/f @y\n/g @y\n",
        ".gitlab/CODEOWNERS": "* @owner\n",
    }
    assert constraints(files) == [
        ("code owners review changes (9 rules): /a, /c, /e, /f", "CODEOWNERS:1"),
        ("code owners review changes (1 rule, * has an owner)", ".gitlab/CODEOWNERS:1"),
    ]


def test_a_committed_file_that_make_writes_with_a_script_of_the_repository() -> None:
    files = {
        "src/Makefile": (
            "ifdef X\n\tDEF=other\nelse\n\tDEF=commands\nendif\nall: x\n"
            "$(DEF).def: cmds/*.json ../utils/gen.py\n\t$(QUIET)../utils/gen.py > $@\n"
            "x.o: x.c\n\t../utils/gen.py\nx.c: y\n\tcc ../utils/absent.py\ncheck.sh:\n\t./check.sh\n"
            "VAR := ../utils/gen.py\n"
        ),
        "src/commands.def": "",
        "src/x.c": "",
        "src/check.sh": "",
        "utils/gen.py": "",
        "src/y": "",
    }
    assert constraints(files) == [
        ("do not edit src/commands.def (generated: make -C src commands.def)", "src/Makefile:7")
    ]
    many = {f"f{n}.h": "" for n in range(9)}
    rules = "".join(f"{name}:\n\tpython gen.py\n" for name in many)
    assert constraints({"Makefile": rules, "gen.py": "", **many}) == [
        ("do not edit f0.h (generated: make f0.h)", "Makefile:1"),
        ("do not edit f1.h (generated: make f1.h)", "Makefile:3"),
    ]


def test_a_file_of_which_a_part_is_kept_is_edited_by_hand() -> None:
    half = "half.h: gen.py\n\t$(Q)sed '/below/,$$d' $@ > $@.tmp\n\t./gen.py >> $@.tmp\n\tmv $@.tmp $@\n"
    whole = "whole.h: gen.py\n\t./gen.py > $@.tmp\n\tmv $@.tmp $@\nout.c:\n\t./gen.py -o $@\n"
    assert constraints({"Makefile": half + whole, "gen.py": "", "half.h": "", "whole.h": "", "out.c": ""}) == [
        ("do not edit whole.h (generated: make whole.h)", "Makefile:5"),
        ("do not edit out.c (generated: make out.c)", "Makefile:8"),
    ]


def test_sample_environment_files_are_never_read() -> None:
    assert constraints({".env.example": "TOKEN=x\n", ".env.sample": "A=1\n"}) == []
