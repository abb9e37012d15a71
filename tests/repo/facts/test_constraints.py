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
        ("container base image python:3.12-slim", "Dockerfile:2"),
        ("container base image node:20", "Dockerfile:6"),
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
        ".env.example": (
            "# DB_OLD=1\nexport DATABASE_URL=postgres://user:hunter2@host/db\nSECRET_KEY = abc\nnot a name=1\n"
        ),
    }
    assert constraints(files) == [
        ("do not edit *.pb.go (generated)", ".gitattributes:1"),
        ("do not edit assets/** (vendored)", ".gitattributes:2"),
        ("environment: DATABASE_URL, SECRET_KEY", ".env.example:2"),
        ("code owners review changes: .github/CODEOWNERS has 2 rules", ".github/CODEOWNERS:3"),
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
        ("do not edit deps/ (vendored)", "deps/lua/COPYING"),
        ("do not edit node_modules/ (vendored)", "node_modules/a/index.js"),
        ("do not edit vendor/ (vendored)", "vendor/modules.txt"),
        ("do not edit src/third_party/ (vendored)", "src/third_party/x/LICENSE"),
    ]
