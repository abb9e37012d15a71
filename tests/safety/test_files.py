"""Real files, real links, real FIFOs: what is read is below the root, and what is written is whole."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import time
from pathlib import Path

import pytest

from carbon_mind.errors import StorageProblem
from carbon_mind.safety import files
from carbon_mind.safety.files import (
    NotRegular,
    OutsideRoot,
    TooLarge,
    atomic_write,
    private_dir,
    read_regular,
    remove_orphans,
)
from carbon_mind.values import RepoPath

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX files")
HOUR = 3600


@pytest.fixture(params=["chained", "checked"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening must keep the same promises, whatever this system would choose."""
    if request.param == "checked":
        monkeypatch.setattr(files, "_CHAINED", False)
    elif not files._CHAINED:
        pytest.skip("no dir_fd on this system")
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with nothing else in it."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def root(place: Path) -> Path:
    folder = place / "repo"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "top.txt").write_bytes(b"top")
    (folder / "a" / "b" / "deep.bin").write_bytes(bytes(range(256)) * 50)
    (folder / "empty").write_bytes(b"")
    (place / "secret").mkdir()
    (place / "secret" / "key").write_bytes(b"outside")
    return folder


@pytest.mark.usefixtures("either_way")
class TestReading:
    def test_whole_files_at_any_depth(self, root: Path) -> None:
        assert read_regular(root, RepoPath("top.txt"), 100) == b"top"
        assert read_regular(root, RepoPath("a/b/deep.bin"), 12800) == bytes(range(256)) * 50
        assert read_regular(root, RepoPath("empty"), 0) == b""

    def test_one_byte_too_many(self, root: Path) -> None:
        assert read_regular(root, RepoPath("top.txt"), 3) == b"top"
        with pytest.raises(TooLarge):
            read_regular(root, RepoPath("top.txt"), 2)

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/etc/passwd",
            "../secret/key",
            "a/../../secret/key",
            "a//b/deep.bin",
            "./top.txt",
            "a/",
            "x\0y",
            "\ud800",
        ],
    )
    def test_paths_that_are_none(self, root: Path, path: str) -> None:
        with pytest.raises(OutsideRoot):
            read_regular(root, RepoPath(path), 100)

    @posix
    @pytest.mark.parametrize("path", ["link", "dirlink/key", "a/dirlink/key", "a/loop", "inside"])
    def test_no_link_is_followed(self, root: Path, path: str) -> None:
        (root / "link").symlink_to("../secret/key")
        (root / "dirlink").symlink_to("../secret")
        (root / "a" / "dirlink").symlink_to("../../secret")
        (root / "a" / "loop").symlink_to("loop")
        (root / "inside").symlink_to("top.txt")
        with pytest.raises(NotRegular):
            read_regular(root, RepoPath(path), 100)

    def test_directories_are_not_files(self, root: Path) -> None:
        for path in ("a", "a/b", "top.txt/x"):
            with pytest.raises((NotRegular, NotADirectoryError)):
                read_regular(root, RepoPath(path), 100)

    @posix
    def test_fifo_and_socket_neither_hang_nor_pass(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.mkfifo(root / "fifo")
        monkeypatch.chdir(root)  # a socket's address is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("sock")
            for path in ("fifo", "sock"):
                with pytest.raises(NotRegular):
                    read_regular(root, RepoPath(path), 100)

    def test_missing(self, root: Path) -> None:
        for path in ("no", "no/such", "a/no"):
            with pytest.raises(FileNotFoundError):
                read_regular(root, RepoPath(path), 100)

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names that are no UTF-8")
    def test_a_name_that_is_no_utf8(self, root: Path) -> None:
        name = os.fsdecode(b"caf\xe9")
        (root / name).write_bytes(b"coffee")
        assert read_regular(root, RepoPath(name), 100) == b"coffee"

    def test_no_descriptor_is_left_open(self, root: Path) -> None:
        (root / "a" / "link").symlink_to("b")
        before = os.open(root / "top.txt", os.O_RDONLY)
        os.close(before)
        for path in ("a/b/deep.bin", "a/link/deep.bin", "a/b/no", "a/b", "top.txt/x"):
            with contextlib.suppress(OSError):
                read_regular(root, RepoPath(path), 10)
        after = os.open(root / "top.txt", os.O_RDONLY)
        os.close(after)
        assert before == after


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_file_that_lies_about_its_size() -> None:
    proc = Path("/proc")
    process = str(os.getpid())
    assert read_regular(proc, RepoPath(f"{process}/status"), 1 << 20).startswith(b"Name:")
    with pytest.raises(TooLarge):
        read_regular(proc, RepoPath(f"{process}/status"), 10)


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


class TestWriting:
    def test_new_and_again(self, place: Path) -> None:
        target = place / "file"
        atomic_write(target, b"one")
        atomic_write(target, b"two" * 100_000)
        assert target.read_bytes() == b"two" * 100_000
        assert _names(place) == ["file"]

    @posix
    def test_modes(self, place: Path) -> None:
        target = place / "file"
        old = os.umask(0o022)
        try:
            atomic_write(target, b"x", mode=0o600)
            assert stat.S_IMODE(target.stat().st_mode) == 0o600
            atomic_write(target, b"x")
            assert stat.S_IMODE(target.stat().st_mode) == 0o644
            target.chmod(0o775)
            atomic_write(target, b"y", mode=None)
            assert stat.S_IMODE(target.stat().st_mode) == 0o775
        finally:
            os.umask(old)

    @posix
    def test_a_link_is_neither_followed_nor_replaced(self, place: Path) -> None:
        (place / "real").write_bytes(b"real")
        (place / "link").symlink_to("real")
        (place / "dangling").symlink_to("nowhere")
        for name in ("link", "dangling"):
            with pytest.raises(StorageProblem, match="link") as caught:
                atomic_write(place / name, b"new")
            assert caught.value.hint
            assert (place / name).is_symlink()
        assert (place / "real").read_bytes() == b"real"

    def test_a_directory_is_no_target(self, place: Path) -> None:
        (place / "dir").mkdir()
        with pytest.raises(StorageProblem, match="regular"):
            atomic_write(place / "dir", b"new")

    def test_a_missing_folder_says_so(self, place: Path) -> None:
        with pytest.raises(StorageProblem) as caught:
            atomic_write(place / "no" / "file", b"new")
        assert isinstance(caught.value.__cause__, FileNotFoundError)
        assert "folder" in caught.value.hint

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
    def test_a_full_disk_leaves_the_old_file_and_no_rest(self, place: Path) -> None:
        """The limit on file size makes the real write fail half way, as a full disk does."""
        import resource
        import signal

        target = place / "file"
        target.write_bytes(b"old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
            with pytest.raises(StorageProblem) as caught:
                atomic_write(target, b"n" * 100_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, ignored)
        assert isinstance(caught.value.__cause__, OSError)
        assert target.read_bytes() == b"old"
        assert _names(place) == ["file"]

    def test_a_long_name_has_room_for_its_temporary(self, place: Path) -> None:
        target = place / ("n" * 250)
        atomic_write(target, b"x")
        assert target.read_bytes() == b"x"


class TestPrivateDir:
    @posix
    def test_created_with_parents(self, place: Path) -> None:
        folder = place / "x" / "y"
        assert private_dir(folder) == folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert private_dir(folder) == folder

    @posix
    def test_an_open_one_is_closed(self, place: Path) -> None:
        folder = place / "x"
        folder.mkdir(mode=0o755)
        private_dir(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    @posix
    def test_links_and_files_are_refused(self, place: Path) -> None:
        (place / "real").mkdir(mode=0o755)
        (place / "link").symlink_to("real")
        (place / "file").write_bytes(b"")
        for name in ("link", "file", "file/below"):
            with pytest.raises(StorageProblem) as caught:
                private_dir(place / name)
            assert caught.value.hint
        assert stat.S_IMODE((place / "real").stat().st_mode) != 0o700

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
    def test_somebody_elses_is_refused(self, place: Path) -> None:
        folder = place / "x"
        folder.mkdir()
        os.chown(folder, 12345, -1)
        with pytest.raises(StorageProblem, match="another user"):
            private_dir(folder)


class TestOrphans:
    def test_only_our_old_temporaries_go(self, place: Path) -> None:
        old = time.time() - 2 * HOUR
        ours, young, folder = (f"mind.json.tmp-{digit * 16}" for digit in "abc")
        others = ["mind.json", "notes.tmp-x", "notes.tmp-" + "a" * 17, "x.tmp-" + "g" * 16, "x.tmp-" + "a" * 16 + ".md"]
        (place / folder).mkdir()
        for name in [ours, young, *others]:
            (place / name).write_bytes(b"")
        for name in [ours, folder, *others]:
            os.utime(place / name, (old, old))
        remove_orphans(place)
        assert sorted(_names(place)) == sorted([young, folder, *others])

    def test_what_a_write_leaves_is_what_is_swept(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process killed between write and rename: neither the rename nor the clean-up happens."""

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, "replace", killed)
        monkeypatch.setattr(Path, "unlink", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            atomic_write(place / "file", b"x")
        monkeypatch.undo()
        (left,) = place.iterdir()
        os.utime(left, (0, 0))
        remove_orphans(place)
        assert list(place.iterdir()) == []

    def test_a_missing_folder_is_clean(self, place: Path) -> None:
        remove_orphans(place / "no")
        assert not (place / "no").exists()
