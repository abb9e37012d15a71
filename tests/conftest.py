"""What tests share: private user folders, real git repositories, tiny models, and the one real model."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind.settings import load
from tests import tiny_models

# Found before the tests get a home of their own.
_USER_MODELS = load(None, {}).models


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's settings, caches or git configuration."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [
        name for name in os.environ if name.startswith(("CARBON_", "GIT_", "XDG_")) and name != "CARBON_MIND_PURE"
    ]:
        if name not in ("CARBON_MIND_REQUIRE_NATIVE", "CARBON_TEST_MODEL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CARBON_CACHE_DIR", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M, as `carbon models pull smollm2-135m` leaves it, or the file in CARBON_TEST_MODEL."""
    given = os.environ.get("CARBON_TEST_MODEL")
    path = Path(given) if given else _USER_MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.is_file():
        pytest.skip("SmolLM2-135M is not pulled: run `make model`")
    return path


@pytest.fixture(scope="session")
def gemma3_path() -> Path:
    """Gemma 3 270M, as `carbon models pull gemma3-270m` leaves it: a real model with a sliding window."""
    path = _USER_MODELS / "gemma-3-270m-q4_k_m.gguf"
    if not path.is_file():
        pytest.skip("Gemma 3 270M is not pulled: run `make models`")
    return path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Path of the tiny model of a kind (dense, recurrent, hybrid, sliding), made once a session."""
    pytest.importorskip("llama_cpp", reason="the llama extra is not installed: run `make llama`")
    folder = tmp_path_factory.mktemp("tiny")

    def path(kind: str) -> Path:
        file = folder / f"{kind}.gguf"
        return file if file.exists() else tiny_models.KINDS[kind](file)

    return path


class Repository:
    """A real git repository that a test fills."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "test")
        self.git("config", "user.email", "test@example.invalid")

    def git(self, *args: str) -> str:
        """Output of a git command in the repository."""
        done = subprocess.run(["git", *args], cwd=self.path, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file, with its folders."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def commit(self, message: str = "change") -> None:
        """Add everything and commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty git repository."""
    return Repository(tmp_path / "repository")


SAMPLE = {
    "pyproject.toml": '[project]\nname = "sample"\nrequires-python = ">=3.11"\n[project.scripts]\nsample = "sample.cli:main"\n'
    "[tool.pytest.ini_options]\naddopts = []\n",
    "sample/__init__.py": "",
    "sample/core.py": "class Engine:\n    def start(self, speed: int = 3) -> bool:\n        return speed > 0\n\n\n"
    "def build_engine(name: str) -> Engine:\n    # FIXME: the name is ignored\n    return Engine()\n",
    "sample/cli.py": "from sample.core import build_engine\n\n\ndef main() -> None:\n    build_engine('x').start()\n",
    "sample/server.py": "from sample.core import Engine, build_engine\n\n\ndef serve(engine: Engine) -> None:\n    build_engine('y')\n",
    "tests/test_core.py": "from sample.core import Engine\n\n\ndef test_start() -> None:\n    assert Engine().start()\n",
    "README.md": "# sample\n",
}


@pytest.fixture
def sample(repository: Repository) -> Repository:
    """A small Python project, committed."""
    for path, text in SAMPLE.items():
        repository.write(path, text)
    repository.commit("first")
    return repository
