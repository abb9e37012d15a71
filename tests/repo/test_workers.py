"""Many files in several processes: the same tags in the same order, and a file that kills its parser costs only itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbon_mind.repo.languages import LANGUAGES, Language
from carbon_mind.repo.workers import POOL_FROM, extract_files
from carbon_mind.values import BlobId, RepoPath, SourceFile, Tags

PYTHON = LANGUAGES["python"]


def names(tags: Tags) -> list[str]:
    return [definition.name for definition in tags.definitions]


def many(root: Path, count: int = 60, size: int = 40_000) -> list[tuple[SourceFile, Language]]:
    """More source than one process is used for."""
    jobs = []
    for i in range(count):
        text = f"def first_{i}(): pass\n" + "x = 1\n" * (size // 6)
        (root / f"m{i:03}.py").write_text(text)
        jobs.append((SourceFile(RepoPath(f"m{i:03}.py"), BlobId(str(i)), len(text)), PYTHON))
    return jobs


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    jobs = many(tmp_path)
    seen: list[tuple[int, int]] = []
    alone = list(extract_files(tmp_path, jobs, workers=1))
    together = list(extract_files(tmp_path, jobs, workers=2, progress=lambda done, total: seen.append((done, total))))
    assert alone == together
    assert [file for file, _ in together] == [file for file, _ in jobs]
    assert seen[-1] == (60, 60)
    assert names(together[7][1]) == ["first_7"]


def test_a_file_that_went_away_or_became_a_link_is_unreadable(tmp_path: Path) -> None:
    jobs = many(tmp_path, count=3, size=100)
    (tmp_path / "m000.py").unlink()
    (tmp_path / "m001.py").unlink()
    (tmp_path / "m001.py").symlink_to(tmp_path / "m002.py")
    assert [tags.degraded for _, tags in extract_files(tmp_path, jobs)] == ["unreadable", "unreadable", ""]


KILLER = """
import os, signal
def language():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("size", [pytest.param(40_000, id="large"), pytest.param(4_000, id="small, forks only")])
@pytest.mark.parametrize("where", [(0,), (59,), (0, 59), (30,)])
def test_a_file_that_kills_its_parser_costs_only_itself(tmp_path: Path, where: tuple[int, ...], size: int) -> None:
    if size * 60 < POOL_FROM and not sys.platform.startswith("linux"):
        pytest.skip("so little is parsed in this process where it cannot fork")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "killer_grammar.py").write_text(KILLER)
    root = tmp_path / "root"
    root.mkdir()
    code = f"""
from pathlib import Path
from carbon_mind.repo.workers import extract_files
from carbon_mind.repo.languages import LANGUAGES, Language
from tests.repo.test_workers import many
root = Path({str(root)!r})
jobs = many(root, size={size})
for i in {where!r}:
    jobs[i] = (jobs[i][0], Language("python", "killer_grammar", ("python.scm",)))
for file, tags in extract_files(root, jobs, workers=2):
    print(file.path, tags.degraded, [item.name for item in tags.definitions])
"""
    checkout = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path / "lib"), str(checkout)))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    expected = [f"m{i:03}.py parser crashed []" if i in where else f"m{i:03}.py  ['first_{i}']" for i in range(60)]
    assert done.stdout.splitlines() == expected


def test_an_interrupt_ends_the_workers_too(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from carbon_mind.repo.workers import extract_files
from tests.repo.test_workers import many
root = Path({str(tmp_path)!r})
try:
    for file, _ in extract_files(root, many(root), workers=2):
        os.killpg(0, signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = child.communicate(timeout=60)
    assert out == "interrupted\n"
    assert "Traceback" not in err
    for _ in range(100):  # the last of them may need a moment to notice
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    pytest.fail("a worker is still there")
