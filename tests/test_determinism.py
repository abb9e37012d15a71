"""The same bytes from every Python, with and without processes, with the compiled ranker and without.

Other interpreters need wheels of their own, so they are given: `CARBON_TEST_PYTHONS=/a/bin/python:/b/bin/python`, each with the
dependencies installed (the package itself is taken from this checkout).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.repo.extract import MAX_BYTES
from carbon_mind.repo.languages import language_of
from carbon_mind.repo.pagerank import HAVE_NATIVE
from carbon_mind.repo.scan import scan
from carbon_mind.repo.workers import extract_files
from tests.conftest import Repository

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests/golden"
OTHERS = [name for name in os.environ.get("CARBON_TEST_PYTHONS", "").split(os.pathsep) if name]

_PRINT = """
import sys
from pathlib import Path
from carbon_mind.pipeline import Silent, build
from carbon_mind.repo.pagerank import ranker_name
from carbon_mind.settings import Settings
mind = build(Path(sys.argv[1]), Settings(cache_dir=sys.argv[2], budget=2000), Silent(), full=True)
print(*sys.version_info[:2], ranker_name(), file=sys.stderr)
sys.stdout.buffer.write(mind.json + mind.markdown.encode())
"""


@pytest.fixture
def varied(sample: Repository) -> Repository:
    """The inputs of the golden tests as one project: every language, with ties, and text outside ASCII."""
    for file in sorted(GOLDEN.rglob("*")):
        if file.is_file() and file.stat().st_size <= MAX_BYTES:
            sample.write(f"src/{file.relative_to(GOLDEN).as_posix()}", file.read_bytes())
    for number in range(30):
        sample.write(
            f"src/tie_{number}.py",
            f"from sample.core import Engine\n\n\nclass Tie{number}(Engine): ...\n\n\nclass Σίσυφος{number}(Engine): ...\n",
        )
    sample.write(
        "package.json",
        '{"name": "größe", "scripts": {"test": "jest", "lint": "eslint ."}, "dependencies": {"vue": "3", "ünï": "1"}}',
    )
    sample.write(
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  b:\n    steps:\n      - run: pytest -q\n  a:\n    steps:\n      - run: tox -e py\n",
    )
    sample.write("straße/İstanbul.py", "# FIXME: İ, ı, ß, ﬁ and 𝔘𝔫𝔦𝔠𝔬𝔡𝔢\ndef ﬁrst() -> None: ...\n")  # noqa: RUF001 - on purpose
    sample.commit()
    return sample


def run(python: str, path: Path, cache: Path, **env: str) -> tuple[bytes, str]:
    """The digest's bytes by an interpreter, and what it is."""
    done = subprocess.run(
        [python, "-c", _PRINT, str(path), str(cache)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr.decode().strip()


@pytest.mark.skipif(not OTHERS, reason="CARBON_TEST_PYTHONS names no interpreters")
@pytest.mark.parametrize("python", OTHERS)
def test_every_python_gives_the_same_bytes(varied: Repository, tmp_path: Path, python: str) -> None:
    expected, _ = run(sys.executable, varied.path, tmp_path / "here")
    found, said = run(python, varied.path, tmp_path / "there", CARBON_MIND_PURE="1")
    assert said.endswith("pure")
    assert found == expected, said


def test_hash_seeds_and_repetition(varied: Repository, tmp_path: Path) -> None:
    results = {
        run(sys.executable, varied.path, tmp_path / "cache", PYTHONHASHSEED=seed)[0]
        for seed in ("0", "0", "1", "2", "3")
    }
    assert len(results) == 1


@pytest.mark.skipif(not HAVE_NATIVE, reason="the native module is not built")
def test_both_rankers_give_the_same_bytes(varied: Repository, tmp_path: Path) -> None:
    pure, said_pure = run(sys.executable, varied.path, tmp_path / "pure", CARBON_MIND_PURE="1")
    native, said_native = run(sys.executable, varied.path, tmp_path / "native", CARBON_MIND_PURE="0")
    assert (said_pure.split()[-1], said_native.split()[-1]) == ("pure", "native")
    assert pure == native


def test_one_process_and_several_find_the_same(varied: Repository) -> None:
    """Enough to parse that processes are worth starting; the order of the results is that of the files."""
    for number in range(12):
        varied.write(
            f"big/m{number}.py",
            "".join(f"def f{number}_{n}(a: int) -> int:\n    return f{n}(a)\n\n\n" for n in range(3500)),
        )
    jobs = [(file, language) for file in scan(varied.path).files if (language := language_of(file.path)) is not None]
    assert sum(file.size for file, _ in jobs) > 1_500_000
    alone = list(extract_files(varied.path, jobs, workers=1))
    assert (
        alone == list(extract_files(varied.path, jobs, workers=2)) == list(extract_files(varied.path, jobs, workers=3))
    )
    assert [file for file, _ in alone] == [file for file, _ in jobs]
