from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from .server import Site, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = random.Random(1).randbytes(700_000)


@pytest.fixture(autouse=True)
def _own_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip and httpx see neither this machine's configuration nor a proxy."""
    for name in [name for name in os.environ if name.upper().startswith("PIP_") or name.upper().endswith("_PROXY")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving({"/model.gguf": BODY}) as it:
        yield it


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty folder: `tmp_path` itself holds the test's home."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which pip looks for wheels."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
