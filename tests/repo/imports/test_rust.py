"""Rust's imports, from source text to files."""

from __future__ import annotations

import pytest

from tests.repo.imports.helpers import named, visible

WORKSPACE = {
    "Cargo.toml": '[package]\nname = "tool"\n[[bin]]\nname = "tool"\npath = "crates/core/main.rs"\n'
    '[workspace]\nmembers = ["crates/*"]\n',
    "crates/core/main.rs": "mod flags;\nmod search;\n",
    "crates/core/search.rs": "pub struct Worker;\n",
    "crates/core/flags/mod.rs": "mod defs;\npub use crate::flags::defs::Flag;\npub(crate) mod hiargs;\n",
    "crates/core/flags/defs.rs": "pub struct Flag;\n",
    "crates/core/flags/hiargs.rs": "pub struct HiArgs;\n",
    "crates/grep-find/Cargo.toml": '[package]\nname = "grep-find"\n',
    "crates/grep-find/src/lib.rs": 'pub use crate::finder::{Finder, inner::*};\nmod finder;\n#[path = "odd/place.rs"]\nmod odd;\n',
    "crates/grep-find/src/finder.rs": "pub mod inner;\npub struct Finder;\n",
    "crates/grep-find/src/finder/inner.rs": "pub struct Inner;\n",
    "crates/grep-find/src/odd/place.rs": "pub fn here() {}\n",
}
CORE, FIND = "crates/core", "crates/grep-find/src"

IMPORTS = [
    (f"{CORE}/search.rs", "use crate::flags::Flag;", [f"{CORE}/flags/defs.rs"]),
    (
        f"{CORE}/search.rs",
        "use crate::flags::{hiargs::HiArgs, Flag as F};",
        [f"{CORE}/flags/defs.rs", f"{CORE}/flags/hiargs.rs"],
    ),
    (f"{CORE}/search.rs", "use grep_find::Finder;", [f"{FIND}/finder.rs"]),
    (f"{CORE}/search.rs", "use grep_find::finder::inner::Inner;", [f"{FIND}/finder/inner.rs"]),
    (f"{CORE}/search.rs", "use grep_find::Inner;", [f"{FIND}/finder/inner.rs"]),
    (f"{CORE}/flags/hiargs.rs", "use super::defs::Flag;", [f"{CORE}/flags/defs.rs"]),
    (f"{CORE}/flags/hiargs.rs", "use super::super::search::Worker;", [f"{CORE}/search.rs"]),
    (f"{CORE}/flags/hiargs.rs", "use super::Flag;", [f"{CORE}/flags/defs.rs"]),
    (f"{FIND}/finder.rs", "pub mod inner;\nuse self::inner::Inner;", [f"{FIND}/finder/inner.rs"]),
    ("crates/grep-find/tests/all.rs", "use grep_find::Finder;", [f"{FIND}/finder.rs"]),
    # Somebody else's, and what a test module inside the file means.
    (f"{CORE}/search.rs", "use std::io::Read;\nuse regex::Regex;", []),
    (f"{CORE}/search.rs", "pub struct W;\nmod tests { use super::W; }", []),
]


@pytest.mark.parametrize(("path", "text", "targets"), IMPORTS)
def test_an_import_names_files(path: str, text: str, targets: list[str]) -> None:
    assert named({**WORKSPACE, path: f"{text}\n"}, path) == targets


def test_mod_lines_name_their_files() -> None:
    assert named(WORKSPACE, f"{CORE}/main.rs") == [f"{CORE}/flags/mod.rs", f"{CORE}/search.rs"]
    assert f"{FIND}/odd/place.rs" in named(WORKSPACE, f"{FIND}/lib.rs")


def test_what_a_module_re_exports_is_visible_to_its_parent() -> None:
    assert visible(WORKSPACE, f"{CORE}/main.rs") == [f"{CORE}/flags/defs.rs", f"{CORE}/flags/hiargs.rs"]


def test_modules_in_a_circle_end() -> None:
    files = {
        "src/main.rs": "mod main;\nmod a;\n",
        "src/a.rs": '#[path = "main.rs"]\nmod again;\npub use crate::again::X;\n',
    }
    assert named(files, "src/main.rs") == ["src/a.rs"]
