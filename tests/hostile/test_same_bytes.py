"""Cases 1 to 3: what is around a repository does not show in its digest. Nor does how it was fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repository
from tests.hostile.conftest import ROOT, carbon, copy_of, digest_of, distil, skipped

_PRINT = """
import os, sys
from pathlib import Path
cores = sys.argv[3]
if cores and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
from carbon_mind.machine import usable_cores
from carbon_mind.pipeline import Silent, build
from carbon_mind.settings import Settings
mind = build(Path(sys.argv[1]), Settings(cache_dir=sys.argv[2]), Silent(), full=True)
sys.stdout.buffer.write(mind.json + mind.markdown.encode())
print(usable_cores(), mind.parsed, file=sys.stderr)
"""


def large(repository: Repository) -> Repository:
    """So much to parse that a pool of processes is started, with ties, and with names outside ASCII."""
    for module in range(40):
        body = [f"from package.module_{(module * 7) % 40} import shared_{(module * 7) % 40}\n\n\n"]
        body += [
            f"class Handler{module}_{number}(Base):\n    def handle_{number}(self, item: int = {number}) -> int:\n"
            f"        return shared_{(module * 7) % 40}(item)\n\n\n"
            for number in range(400)
        ]
        body.append(f"def shared_{module}(item: int) -> int:\n    # FIXME: größer als {module}\n    return item\n")
        repository.write(f"package/module_{module}.py", "".join(body))
    repository.write("package/schön.py", "def schön() -> None: ...\n")
    repository.write(
        "pyproject.toml",
        '[project]\nname = "größe"\nrequires-python = ">=3.11"\n[project.scripts]\na = "package.module_1:shared_1"\n',
    )
    repository.commit()
    return repository


def run(path: Path, tmp_path: Path, cores: str = "", **env: str) -> tuple[bytes, str]:
    """The digest's bytes by a fresh process, and what it said of cores and parsed files."""
    cache = tmp_path / f"cache-{len(list(tmp_path.iterdir()))}"
    done = subprocess.run(
        [sys.executable, "-c", _PRINT, str(path), str(cache), cores],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        check=True,
    )
    return done.stdout, done.stderr.decode()


def test_surroundings_do_not_show(repository: Repository, tmp_path: Path) -> None:
    large(repository)
    expected, said = run(repository.path, tmp_path)
    assert b"gr\xc3\xb6\xc3\x9fe" in expected, "the name, as UTF-8"
    assert said.split()[1] == "41"
    for seed in ("0", "1", "4711"):
        assert run(repository.path, tmp_path, PYTHONHASHSEED=seed)[0] == expected
    for locale in ("C", "C.UTF-8", "POSIX", "tr_TR.UTF-8", "de_DE.ISO-8859-1"):  # one that is missing means C
        assert run(repository.path, tmp_path, LC_ALL=locale, LANG=locale)[0] == expected, locale
    assert (
        run(repository.path, tmp_path, TZ="Pacific/Kiritimati", COLUMNS="40", NO_COLOR="1", TERM="dumb")[0] == expected
    )
    assert run(repository.path, tmp_path, CARBON_MIND_PURE="1")[0] == expected
    elsewhere = copy_of(repository.path, tmp_path / "an other plâce" / "deep" / "x")
    assert run(elsewhere, tmp_path)[0] == expected
    (link := tmp_path / "link").symlink_to(repository.path)
    assert run(link, tmp_path)[0] == expected
    assert run(repository.path / "package", tmp_path)[0] == expected, "from a folder below"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are given to a process on Linux only")
def test_the_number_of_workers_does_not_show(repository: Repository, tmp_path: Path) -> None:
    large(repository)
    several, said = run(repository.path, tmp_path)
    alone, said_alone = run(repository.path, tmp_path, cores="1")
    assert said_alone.split()[0] == "1"
    assert several == alone
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one core: both runs were alone")
    assert int(said.split()[0]) > 1


def test_an_ascii_locale_that_python_does_not_mend(repository: Repository) -> None:
    """PEP 538 and 540 rescue the C locale; an ISO 8859 one, or these switches, show what a name costs then."""
    repository.write("package/zwölf.py", "def shared() -> None:\n    # FIXME: größer\n    ...\n")
    repository.write("package/use.py", "from package.zwölf import shared\n\n\ndef f() -> None:\n    shared()\n")
    repository.commit()
    expected = carbon("mind", "--json", "--full", repository.path)
    assert "package/zwölf.py:2" in expected.stdout
    found = carbon(
        "mind", "--json", "--full", repository.path, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    )
    assert (found.returncode, found.stdout) == (0, expected.stdout)


# --- 2: times --------------------------------------------------------------------------------------------------


def test_touch_costs_no_parse(sample: Repository, tmp_path: Path) -> None:
    first = distil(sample.path, tmp_path / "cache")
    assert (first.built, first.parsed) == (True, 5)
    for when in (10**9, 0, 4 * 10**9):
        for file in sample.path.rglob("*.py"):
            os.utime(file, (when, when))
        again = distil(sample.path, tmp_path / "cache")
        assert (again.built, again.parsed) == (False, 0)
        assert (again.json, again.markdown) == (first.json, first.markdown)


@pytest.mark.parametrize("committed", [True, False])
def test_a_change_with_the_old_time_and_size_is_seen(sample: Repository, tmp_path: Path, committed: bool) -> None:
    if not committed:
        sample.write("sample/extra.py", "def before() -> int: ...\n")
    target = sample.path / ("sample/core.py" if committed else "sample/extra.py")
    distil(sample.path, tmp_path / "cache")
    status, old = target.stat(), target.read_bytes()
    new = old.replace(b"build_engine", b"build_enigma").replace(b"before", b"behind")
    assert len(new) == len(old)
    target.write_bytes(new)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = distil(sample.path, tmp_path / "cache")
    assert (again.built, again.parsed) == (True, 1)
    cold = distil(copy_of(sample.path, tmp_path / "cold"), tmp_path / "cold-cache")
    assert (again.json, again.markdown) == (cold.json, cold.markdown)


# --- 3: shallow, blobless, worktree, archive ---------------------------------------------------------------------


def filled(repository: Repository) -> Repository:
    """Three commits; only the last one is what there is."""
    repository.write("src/old.py", "def old() -> None: ...\n")
    repository.commit("one")
    repository.git("mv", "src/old.py", "src/core.py")
    repository.write("src/core.py", "def core(a: int) -> int:\n    # FIXME: slow\n    return a\n")
    repository.write("src/use.py", "from src.core import core\n\n\ndef use() -> int:\n    return core(1)\n")
    repository.commit("two")
    repository.write("Makefile", "test:\n\tpytest -q\n")
    repository.write("sub/.gitignore", "*.log\n!keep.log\n")
    repository.write("sub/x.sh", "run() { true; }\n")
    repository.write(".gitattributes", "*.sh eol=lf\n/gen/** linguist-generated\n")
    repository.write("gen/out.py", "def generated() -> None: ...\n")
    repository.commit("three")
    return repository


def test_every_way_to_fetch_gives_the_same_digest(repository: Repository, tmp_path: Path) -> None:
    filled(repository)
    repository.git("config", "uploadpack.allowFilter", "true")
    url = repository.path.as_uri()
    expected = distil(repository.path, tmp_path / "cache")
    ways = {
        "clone": ["clone", "-q", url],
        "shallow": ["clone", "-q", "--depth", "1", url],
        "blobless": ["clone", "-q", "--filter=blob:none", url],
        "treeless": ["clone", "-q", "--filter=tree:0", url],
        "single": ["clone", "-q", "--single-branch", "--no-tags", url],
        "shared": ["clone", "-q", "--shared", str(repository.path)],
    }
    for name, args in ways.items():
        subprocess.run(["git", *args, str(tmp_path / name)], check=True, capture_output=True)
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "worktree"))
    repository.git("archive", "--format=tar", "-o", str(tmp_path / "a.tar"), "HEAD")
    (tmp_path / "archive").mkdir()
    subprocess.run(["tar", "-xf", str(tmp_path / "a.tar"), "-C", str(tmp_path / "archive")], check=True)
    for name in (*ways, "worktree", "archive"):
        found = distil(tmp_path / name, tmp_path / f"cache-{name}")
        assert found.markdown == expected.markdown, name
        assert found.json == expected.json, name


def test_a_missing_object_is_fetched_by_nobody(repository: Repository, tmp_path: Path) -> None:
    """A blobless clone with a file gone from the working tree and the remote gone too: still a digest, exit 0."""
    filled(repository)
    repository.git("config", "uploadpack.allowFilter", "true")
    subprocess.run(
        [
            "git",
            "clone",
            "-q",
            "--filter=blob:none",
            "--no-checkout",
            repository.path.as_uri(),
            str(tmp_path / "clone"),
        ],
        check=True,
    )
    clone = tmp_path / "clone"
    subprocess.run(["git", "sparse-checkout", "set", "src"], cwd=clone, check=True, capture_output=True)
    subprocess.run(["git", "checkout", "-q"], cwd=clone, check=True, capture_output=True)
    subprocess.run(["git", "remote", "set-url", "origin", (tmp_path / "gone").as_uri()], cwd=clone, check=True)
    found = carbon("mind", "--print", clone)
    assert found.returncode == 0, found.stderr
    assert "src/core.py" in found.stdout
    mind = distil(clone, tmp_path / "cache")
    assert skipped(mind)["not in the working tree"] == 3, "what sparse checkout left out is named, not fetched"
    assert digest_of(mind).coverage.parsed == 2


def test_an_object_that_is_gone_altogether(repository: Repository, tmp_path: Path) -> None:
    filled(repository)
    expected = distil(repository.path, tmp_path / "cache")
    blob = repository.git("rev-parse", "HEAD:src/core.py").strip()
    (repository.path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    found = distil(repository.path, tmp_path / "cold", full=True)
    assert found.json == expected.json, "the working tree has all that is needed"
    (repository.path / "src/core.py").unlink()
    assert digest_of(distil(repository.path, tmp_path / "cold")).coverage.parsed == expected.parsed - 1
