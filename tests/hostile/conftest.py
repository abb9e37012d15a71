"""What the hostile repositories share: a way to distil in this process and in one of its own, and a look at every byte left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from carbon_mind.digest.render import from_json
from carbon_mind.pipeline import Mind, build
from carbon_mind.settings import Settings
from carbon_mind.values import Digest

ROOT = Path(__file__).parents[2]


@dataclass
class Heard:
    """A reporter that keeps its notices."""

    notices: list[str] = field(default_factory=list)

    def notice(self, text: str) -> None:
        """Kept."""
        self.notices.append(text)

    def progress(self, label: str) -> Callable[[int, int], None]:
        """Ignored."""
        return lambda _done, _total: None


def distil(path: Path, cache: Path, *, full: bool = False, budget: int = 2000, report: Heard | None = None) -> Mind:
    """The mind of the repository at `path`, in this process; the largest budget, so that little is cut."""
    return build(path, Settings(cache_dir=str(cache), budget=budget), report or Heard(), full=full)


def digest_of(mind: Mind) -> Digest:
    """The typed digest in mind.json."""
    return from_json(mind.json).digest


def skipped(mind: Mind) -> dict[str, int]:
    """How many files were skipped, by reason."""
    return dict(digest_of(mind).coverage.skipped)


def carbon(*args: str | Path, cwd: Path | None = None, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with `env` on top of the environment."""
    done = subprocess.run(
        [sys.executable, "-m", "carbon_mind", *map(str, args)],
        cwd=cwd or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def copy_of(source: Path, target: Path) -> Path:
    """The same files elsewhere, with the git folder and without ours: other inodes, other times, another path."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".carbon"))
    return target


def written(*folders: Path) -> dict[str, bytes]:
    """Every byte below our folders: minds, caches, and SQLite's side files."""
    return {
        str(file): file.read_bytes() + os.fsencode(file.name)
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
