"""Python's imports, from source text to files."""

from __future__ import annotations

import pytest

from tests.repo.imports.helpers import named, visible

FLASKY = {
    "src/pkg/__init__.py": "from .app import App\nfrom .sub import *\nfrom . import json as json\n",
    "src/pkg/app.py": "class App: ...\n",
    "src/pkg/json/__init__.py": "def dumps(): ...\n",
    "src/pkg/sub/__init__.py": "from .deep import Deep, shallow\n",
    "src/pkg/sub/deep.py": "class Deep: ...\ndef shallow(): ...\n",
    "src/pkg/typing.py": "T = 1\n",
    "tools/helper.py": "def help_out(): ...\n",
    "tests/conftest.py": "",
    "tests/shared.py": "def make(): ...\n",
}

IMPORTS = [
    ("src/user.py", "import pkg.app", ["src/pkg/app.py"]),
    ("src/user.py", "import pkg", ["src/pkg/__init__.py"]),
    ("src/user.py", "from pkg import App", ["src/pkg/app.py"]),
    ("src/user.py", "from pkg import App as Other", ["src/pkg/app.py"]),
    ("src/user.py", "from pkg import Deep", ["src/pkg/sub/deep.py"]),  # through a star and a second package
    ("src/user.py", "from pkg import json", ["src/pkg/json/__init__.py"]),
    ("src/user.py", "from pkg.sub import deep, Deep", ["src/pkg/sub/deep.py"]),
    ("src/user.py", "from pkg import unknown", ["src/pkg/__init__.py"]),
    ("src/pkg/user.py", "from . import app", ["src/pkg/app.py"]),
    ("src/pkg/user.py", "from .sub.deep import Deep", ["src/pkg/sub/deep.py"]),
    ("src/pkg/sub/user.py", "from ..app import App", ["src/pkg/app.py"]),
    ("src/pkg/sub/user.py", "from .. import App, typing", ["src/pkg/app.py", "src/pkg/typing.py"]),
    ("tools/user.py", "import helper", ["tools/helper.py"]),
    ("tests/deep/user.py", "from shared import make", ["tests/shared.py"]),
    # Somebody else's.
    ("src/pkg/user.py", "import typing", []),
    ("src/user.py", "import helper", []),
    ("src/pkg/user.py", "from ....x import y", []),
    ("src/user.py", "import os, sys\nfrom collections import abc", []),
]


@pytest.mark.parametrize(("path", "text", "targets"), IMPORTS)
def test_an_import_names_files(path: str, text: str, targets: list[str]) -> None:
    assert named({**FLASKY, path: f"{text}\n"}, path) == targets


def test_what_a_package_re_exports_is_visible_to_who_imports_it() -> None:
    files = {**FLASKY, "src/user.py": "import pkg\n"}
    assert visible(files, "src/user.py") == ["src/pkg/app.py", "src/pkg/json/__init__.py", "src/pkg/sub/__init__.py"]
    assert visible({**FLASKY, "src/user.py": "from pkg import App\n"}, "src/user.py") == []


def test_re_exports_in_a_circle_end() -> None:
    files = {
        "a/__init__.py": "from b import x\n",
        "b/__init__.py": "from a import x\n",
        "user.py": "from a import x\n",
    }
    assert named(files, "user.py")[0] in ("a/__init__.py", "b/__init__.py")
