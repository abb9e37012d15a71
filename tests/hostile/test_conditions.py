"""Case 12: no network, no leave to write, no grammar, a full AGENTS.md, and two runs at once."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from carbon_mind.digest.bound import token_bound
from carbon_mind.digest.render import from_json
from carbon_mind.repo.languages import LANGUAGES
from tests.conftest import Repository
from tests.hostile.conftest import ROOT, Heard, carbon, digest_of, distil
from tests.repo.unprivileged import run_unprivileged

LIMIT = 32 * 1024


def test_no_socket_is_opened(sample: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a network socket")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    sample.git("remote", "add", "origin", "https://example.invalid/x.git")
    assert distil(sample.path, tmp_path / "cache", full=True).parsed == 5


_READ_ONLY = """
import sys
from pathlib import Path
from tests.hostile.conftest import Heard, distil
heard = Heard()
mind = distil(Path(sys.argv[1]), Path(sys.argv[2]), report=heard)
again = distil(Path(sys.argv[1]), Path(sys.argv[2]))
print(mind.built, again.built, mind.folder.fallback, mind.json == again.json)
print(*heard.notices, sep="\\n")
sys.stdout.write(mind.markdown)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_read_only_checkout(sample: Repository, tmp_path: Path) -> None:
    expected = distil(sample.path, tmp_path / "expected").markdown
    shutil.rmtree(sample.path / ".carbon")
    places = [sample.path, *(path for path in sample.path.rglob("*") if path.is_dir())]
    for place in places:
        place.chmod(0o555)
    try:
        output = run_unprivileged(_READ_ONLY, sample.path, tmp_path / "cache")
    finally:
        for place in places:
            place.chmod(0o755)
    states, notice, markdown = output.split("\n", 2)
    assert states == "True False True True"
    assert notice.startswith("the checkout cannot be written: its mind is kept in ")
    assert markdown == expected
    assert not (sample.path / ".carbon").exists()


_HIDDEN = """
import os, sys
from importlib.abc import MetaPathFinder
gone, traces = sys.argv[1].split(","), sys.argv[2] == "traces"
class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
listdir = os.listdir
def without(folder="."):
    return [name for name in listdir(folder) if traces or name.partition("-")[0] not in gone]
os.listdir = without
sys.argv = ["carbon", *sys.argv[3:]]
from carbon_mind.cli import main
main()
"""


def hidden(modules: str, *args: str | Path, traces: bool = False) -> subprocess.CompletedProcess[str]:
    """The command line where packages are not installed; with `traces` they are, and cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", _HIDDEN, modules, "traces" if traces else "gone", *map(str, args)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def with_rust(sample: Repository) -> None:
    sample.write("src/a.rs", "pub fn rusty() {}\n")
    sample.write("src/b.rs", "mod a;\nfn main() { a::rusty(); }\n")


def test_a_missing_grammar(sample: Repository) -> None:
    with_rust(sample)
    whole = carbon("mind", "--json", sample.path)
    assert "rusty" in whole.stdout
    found = hidden("tree_sitter_rust", "mind", "--json", sample.path)
    assert found.returncode == 0, found.stderr
    assert "rusty" not in found.stdout
    coverage = from_json(found.stdout.encode()).digest.coverage
    assert coverage.parsed == 5
    assert dict(coverage.skipped) == {"no grammar": 2}
    assert carbon("mind", "--json", sample.path).stdout == whole.stdout, "it is back with the grammar"


def test_a_grammar_that_could_not_be_loaded_once(sample: Repository) -> None:
    with_rust(sample)
    hidden("tree_sitter_rust", "mind", sample.path, traces=True)
    found = carbon("mind", "--json", sample.path)
    sample.write("README.md", "changed, so that the mind is built again\n")
    found = carbon("mind", "--json", sample.path)
    assert "rusty" in found.stdout


def test_no_grammar_at_all(sample: Repository) -> None:
    everything = ",".join(sorted({language.module for language in LANGUAGES.values()}))
    found = hidden(everything, "mind", "--print", sample.path)
    assert found.returncode == 0, found.stderr
    assert "`pytest`" in found.stdout, "commands need no grammar"


def test_a_full_agents_file(sample: Repository) -> None:
    mine = ("- " + "words " * 12 + "\n").encode() * 425
    assert 31 * 1024 < len(mine) < LIMIT
    sample.write("AGENTS.md", mine)
    found = carbon("mind", "--write-agents", "--budget", "2000", sample.path)
    after = (sample.path / "AGENTS.md").read_bytes()
    assert len(after) <= LIMIT
    assert after.startswith(mine)
    if found.returncode:
        assert after == mine, "nothing is half written"
        assert "AGENTS.md" in found.stderr
        assert "32,768" in found.stderr
    # One that has no room for anything.
    full = mine + b"x" * (LIMIT - len(mine))
    sample.write("AGENTS.md", full)
    found = carbon("mind", "--write-agents", sample.path)
    assert found.returncode != 0
    assert (sample.path / "AGENTS.md").read_bytes() == full


@pytest.mark.parametrize(
    "mine",
    [
        b"# By hand\n",
        b"# By hand, no newline",
        b"# CRLF\r\n\r\nkeep\r\n",
        b"\xef\xbb\xbf# BOM\n",
        b"latin \xe4\xf6\n",
        b"",
    ],
)
def test_a_hand_written_agents_file_stays(sample: Repository, mine: bytes) -> None:
    sample.write("AGENTS.md", mine)
    first = carbon("mind", "--write-agents", sample.path)
    assert first.returncode == 0, first.stderr
    once = (sample.path / "AGENTS.md").read_bytes()
    assert once.startswith(mine)
    digest = carbon("mind", "--json", sample.path)
    assert "current" in digest.stderr, "its own block does not make it stale"
    assert "AGENTS.md: unchanged" in carbon("mind", "--write-agents", sample.path).stderr
    assert (sample.path / "AGENTS.md").read_bytes() == once


def test_two_runs_at_once(sample: Repository, tmp_path: Path) -> None:
    for number in range(40):
        sample.write(f"more/m{number}.py", f"def more_{number}() -> None: ...\n" * 20)
    expected = distil(sample.path, tmp_path / "alone").markdown
    shutil.rmtree(sample.path / ".carbon")
    command = [sys.executable, "-m", "carbon_mind", "mind", "--print", "--budget", "2000", str(sample.path)]
    for extra in ([], ["--full"]):
        runs = [
            subprocess.Popen(
                [*command, *extra], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
            )
            for _ in range(4)
        ]
        for run in runs:
            output, talk = run.communicate(timeout=120)
            assert run.returncode == 0, talk
            assert output == expected
            assert "Traceback" not in talk
    found = carbon("mind", "--json", "--budget", "2000", sample.path)
    assert "current (" in found.stderr, "what they left is whole and current"
    assert [path.name for path in (sample.path / ".carbon/mind").iterdir() if ".tmp-" in path.name] == []


def test_a_file_that_changes_during_the_run_is_not_remembered_wrongly(sample: Repository, tmp_path: Path) -> None:
    """A reporter that edits a file between the scan and its parse, and takes the edit back afterwards."""
    target = sample.path / "sample/server.py"
    original = target.read_bytes()

    class Editing(Heard):
        def progress(self, label: str):  # type: ignore[no-untyped-def]
            target.write_bytes(b"def passing_thought() -> None: ...\n")
            return super().progress(label)

    distil(sample.path, tmp_path / "cache", report=Editing())
    target.write_bytes(original)
    again = distil(sample.path, tmp_path / "cache")
    cold = distil(sample.path, tmp_path / "cache", full=True)
    assert (again.json, again.markdown) == (cold.json, cold.markdown)


@pytest.mark.parametrize("budget", ["100", "200", "2000"])
def test_the_budget_is_kept(sample: Repository, budget: str) -> None:
    found = carbon("mind", "--print", "--budget", budget, sample.path)
    assert found.returncode == 0
    assert token_bound(found.stdout) <= int(budget)


def test_unwritable_everything(sample: Repository, tmp_path: Path) -> None:
    """Neither the checkout nor the user's cache can be written: a clear message and an exit code, no half a mind."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    (sample.path / ".carbon").write_text("in the way")
    found = carbon("mind", sample.path, env={"CARBON_CACHE_DIR": str(blocked)})
    assert found.returncode != 0
    assert str(blocked) in found.stderr
    assert digest_of(distil(sample.path, tmp_path / "cache")).coverage.parsed == 5, "with a cache it works"
