from __future__ import annotations

import hashlib
import os
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from carbon_mind.errors import DownloadFailed, StorageProblem
from carbon_mind.models.transfer import fetch

from .conftest import BODY
from .server import Answer, Site, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHA = hashlib.sha256(BODY).hexdigest()
HTTP = ("http",)
HALF = len(BODY) // 2


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def get(site: Site, folder: Path, *, sha256: str = SHA, attempts: int = 4, size: int = 0) -> bytes:
    target = folder / "model.gguf"
    url = f"{site.url}/model.gguf"
    assert fetch(url, target, sha256=sha256, size=size, schemes=HTTP, attempts=attempts, backoff_s=0.0) == target
    assert names(folder) == ["model.gguf"]
    return target.read_bytes()


def test_whole_file_in_one_request(site: Site, work: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    target = work / "model.gguf"
    fetch(
        f"{site.url}/model.gguf",
        target,
        sha256=SHA,
        size=len(BODY),
        schemes=HTTP,
        progress=lambda *report: reports.append(report),
        label="m",
    )
    assert target.read_bytes() == BODY
    assert [seen.range for seen in site.seen] == [None]
    assert reports[0] == ("m", 0, len(BODY))
    assert reports[-1] == ("m", len(BODY), len(BODY))
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)
    if os.name == "posix":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_file_that_is_there_is_not_fetched(site: Site, work: Path) -> None:
    assert get(site, work) == get(site, work) == BODY
    assert len(site.seen) == 1


def test_broken_connection_is_continued(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=200_000), Answer(stop_after=200_000), Answer()]
    assert get(site, work) == BODY
    assert [seen.range for seen in site.seen] == [None, "bytes=200000-", "bytes=400000-"]
    assert [seen.if_range for seen in site.seen] == [None, '"one"', '"one"']
    assert sum(seen.sent for seen in site.seen) == len(BODY)


def test_progress_resets_the_count_of_failures(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=100_000) for _ in range(6)]
    assert get(site, work, attempts=2) == BODY
    assert len(site.seen) == 7


def test_no_progress_ends_it(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=100_000, ranges=False) for _ in range(20)]
    with pytest.raises(DownloadFailed, match="cannot be read") as caught:
        get(site, work)
    assert "100,000 bytes are kept" in caught.value.message
    assert "continues where it stopped" in caught.value.hint
    assert len(site.seen) == 4
    assert names(work) == ["model.gguf.part", "model.gguf.part.json"]


def test_server_that_ignores_ranges(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF), Answer(ranges=False)]
    assert get(site, work) == BODY
    assert [seen.sent for seen in site.seen] == [HALF, len(BODY)]


def test_changed_file_starts_from_zero(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF)]
    new = BODY[::-1]
    with pytest.raises(DownloadFailed):
        get(site, work, sha256=hashlib.sha256(new).hexdigest(), attempts=1)
    site.files["/model.gguf"], site.etag = new, '"two"'
    assert get(site, work, sha256=hashlib.sha256(new).hexdigest()) == new
    assert [(seen.if_range, seen.sent) for seen in site.seen] == [(None, HALF), ('"one"', len(new))]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_changed_file_without_a_validator_is_noticed_by_its_checksum(site: Site, work: Path, etag: str) -> None:
    site.etag = etag
    site.script = [Answer(stop_after=HALF)]
    new = BODY[::-1]
    with pytest.raises(DownloadFailed):
        get(site, work, sha256=hashlib.sha256(new).hexdigest(), attempts=1)
    site.files["/model.gguf"] = new
    assert get(site, work, sha256=hashlib.sha256(new).hexdigest()) == new
    assert [seen.range for seen in site.seen] == [None, f"bytes={HALF}-", None]


def test_last_modified_serves_where_the_etag_is_weak(site: Site, work: Path) -> None:
    site.etag, site.last_modified = 'W/"weak"', "Tue, 15 Nov 1994 12:45:26 GMT"
    site.script = [Answer(stop_after=HALF)]
    assert get(site, work) == BODY
    assert site.seen[1].if_range == site.last_modified


def test_nothing_is_continued_without_checksum_and_validator(site: Site, work: Path) -> None:
    site.etag = ""
    site.script = [Answer(stop_after=HALF)]
    assert get(site, work, sha256="") == BODY
    assert [seen.range for seen in site.seen] == [None, None]


def test_part_of_another_promise_is_not_continued(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF)]
    with pytest.raises(DownloadFailed):
        get(site, work, sha256="0" * 64, attempts=1)
    assert get(site, work) == BODY
    assert site.seen[1].range is None


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"sha256": 1}', b"\xff\xfe", None])
def test_part_with_a_damaged_note_is_not_continued(site: Site, work: Path, note: bytes | None) -> None:
    (work / "model.gguf.part").write_bytes(b"x" * HALF)
    if note is not None:
        (work / "model.gguf.part.json").write_bytes(note)
    assert get(site, work) == BODY
    assert site.seen[0].range is None


def test_part_longer_than_the_file_is_dropped(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF)]
    with pytest.raises(DownloadFailed):
        get(site, work, attempts=1)
    with (work / "model.gguf.part").open("ab") as file:
        file.write(b"x" * len(BODY))
    assert get(site, work) == BODY


def test_complete_part_needs_no_request(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF)]
    with pytest.raises(DownloadFailed):
        get(site, work, attempts=1)
    (work / "model.gguf.part").write_bytes(BODY)
    assert get(site, work) == BODY
    assert len(site.seen) == 1


def test_unknown_length_is_continued_too(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF, chunked=True)]  # looks complete: only the checksum tells
    with pytest.raises(DownloadFailed, match="SHA-256"):
        get(site, work)
    site.script = [Answer(chunked=True)]
    assert get(site, work) == BODY


@pytest.mark.parametrize("status", [500, 503, 429])
def test_transient_status_is_tried_again(site: Site, work: Path, status: int) -> None:
    site.script = [Answer(status), Answer(status), Answer(status)]
    assert get(site, work) == BODY
    assert len(site.seen) == 4
    site.script = [Answer(status)] * 4
    (work / "model.gguf").unlink()
    with pytest.raises(DownloadFailed, match=str(status)):
        get(site, work)
    assert len(site.seen) == 8


@pytest.mark.parametrize("status", [404, 410, 403])
def test_final_status_is_final(site: Site, work: Path, status: int) -> None:
    site.script = [Answer(status)]
    with pytest.raises(DownloadFailed, match=f"answered {status}") as caught:
        get(site, work)
    assert caught.value.hint
    assert len(site.seen) == 1
    assert names(work) == []


def test_wrong_bytes_are_removed(site: Site, work: Path) -> None:
    site.files["/model.gguf"] = BODY[:-1] + bytes([BODY[-1] ^ 1])
    with pytest.raises(DownloadFailed, match=SHA):
        get(site, work)
    assert len(site.seen) == 1
    assert names(work) == []


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [len(BODY) - 1, len(BODY) + 1])
def test_wrong_size_is_refused(site: Site, work: Path, size: int, chunked: bool) -> None:
    site.script = [Answer(chunked=chunked)]
    with pytest.raises(DownloadFailed, match="bytes"):
        get(site, work, size=size)
    assert names(work) == []


def test_nobody_answers(work: Path) -> None:
    with serving({}) as gone:
        url = gone.url
    with pytest.raises(DownloadFailed) as caught:
        fetch(f"{url}/x", work / "x", schemes=HTTP, attempts=2, backoff_s=0.0)
    assert "network" in caught.value.hint


def test_redirect_is_followed_and_continued(site: Site, work: Path) -> None:
    to = Answer(302, location="/model.gguf")
    site.script = [to, Answer(stop_after=HALF), to, Answer()]
    target = work / "m"
    fetch(f"{site.url}/start", target, sha256=SHA, schemes=HTTP, backoff_s=0.0)
    assert target.read_bytes() == BODY
    assert [seen.range for seen in site.seen] == [None, None, f"bytes={HALF}-", f"bytes={HALF}-"]


def test_redirect_in_circles(site: Site, work: Path) -> None:
    site.script = [Answer(302, location="/a")] * 20
    with pytest.raises(DownloadFailed, match="circles"):
        fetch(f"{site.url}/a", work / "m", schemes=HTTP, backoff_s=0.0)


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_redirect_to_another_kind_of_address(site: Site, work: Path, location: str) -> None:
    site.script = [Answer(302, location=location)]
    with pytest.raises(DownloadFailed, match="Refusing"):
        fetch(f"{site.url}/a", work / "m", schemes=("http", "file"), backoff_s=0.0)


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "ftp://127.0.0.1/x", "/etc/hostname", "file:///etc/hostname"])
def test_only_https_unless_said_otherwise(work: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="https://"):
        fetch(url, work / "x")


def test_message_shows_no_password(work: Path) -> None:
    with pytest.raises(DownloadFailed) as caught:
        fetch("http://user:secret@127.0.0.1/x?token=secret", work / "x")
    assert "secret" not in caught.value.message + caught.value.hint


def test_proxy_setting_that_cannot_be_used(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1")
    with pytest.raises(DownloadFailed, match="proxy"):
        fetch("https://localhost/x", work / "x")


def test_certificates_that_cannot_be_used(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", str(work / "missing.pem"))
    with pytest.raises(DownloadFailed, match="PIP_CERT"):
        fetch("https://localhost/x", work / "x")


def test_file_url(work: Path) -> None:
    source = work / "a b%.bin"
    source.write_bytes(BODY)
    target = work / "target"
    fetch(source.as_uri(), target, sha256=SHA, schemes=("file",))
    assert target.read_bytes() == BODY
    assert source.read_bytes() == BODY
    assert names(work) == ["a b%.bin", "target"]


def test_file_url_with_wrong_bytes_or_none(work: Path) -> None:
    source = work / "a.bin"
    source.write_bytes(b"other")
    with pytest.raises(DownloadFailed, match="SHA-256"):
        fetch(source.as_uri(), work / "target", sha256=SHA, schemes=("file",))
    with pytest.raises(DownloadFailed, match="no file"):
        fetch((work / "b.bin").as_uri(), work / "target", schemes=("file",))
    with pytest.raises(DownloadFailed, match="another machine"):
        fetch("file://elsewhere/a.bin", work / "target", schemes=("file",))
    assert names(work) == ["a.bin"]


def test_folder_that_is_missing(site: Site, work: Path) -> None:
    with pytest.raises(StorageProblem, match="Cannot store"):
        fetch(f"{site.url}/model.gguf", work / "missing" / "x", schemes=HTTP)


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_link_in_place_of_the_part_is_not_followed(site: Site, work: Path) -> None:
    victim = work / "victim"
    victim.write_bytes(b"mine")
    (work / "x.part").symlink_to(victim)
    with pytest.raises(StorageProblem):
        fetch(f"{site.url}/model.gguf", work / "x", sha256=SHA, schemes=HTTP)
    assert victim.read_bytes() == b"mine"


def test_range_that_begins_elsewhere_is_not_appended(site: Site, work: Path) -> None:
    site.script = [Answer(stop_after=HALF), Answer(shift=7)]
    assert get(site, work, sha256="") == BODY  # with a checksum, that would notice as well
    assert [seen.range for seen in site.seen] == [None, f"bytes={HALF}-", None]


# --- https, with a certificate made for the test --------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of 127.0.0.1 in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    made = [folder / "key.pem", folder / "certificate.pem"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(made[0]), "-out", str(made[1])]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this openssl cannot make the certificate")
    both = folder / "both.pem"
    both.write_bytes(made[0].read_bytes() + made[1].read_bytes())
    return both


@pytest.fixture
def secure(certificate: Path) -> Iterator[Site]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving({"/model.gguf": BODY}, context) as it:
        yield it


def test_https_with_the_certificates_that_pip_was_given(
    secure: Site, certificate: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CERT", str(certificate))
    target = work / "m"
    assert fetch(f"{secure.url}/model.gguf", target, sha256=SHA).read_bytes() == BODY


def test_untrusted_certificate_ends_it_at_once(secure: Site, work: Path) -> None:
    with pytest.raises(DownloadFailed, match="not trusted") as caught:
        fetch(f"{secure.url}/model.gguf", work / "m", sha256=SHA, backoff_s=100.0)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert secure.seen == []


def test_redirect_from_https_to_http_is_refused(
    site: Site, secure: Site, certificate: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CERT", str(certificate))
    secure.script = [Answer(302, location=f"{site.url}/model.gguf")]
    with pytest.raises(DownloadFailed, match="Refusing"):
        fetch(f"{secure.url}/model.gguf", work / "m", sha256=SHA, schemes=("https", "http"))
    assert site.seen == []


CHILD = """
import sys
from pathlib import Path
from carbon_mind.models.transfer import fetch
fetch(sys.argv[1], Path(sys.argv[2]), sha256=sys.argv[3], schemes=("http",))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_process_loses_no_byte(site: Site, work: Path, how: signal.Signals) -> None:
    site.script = [Answer(pause_after=HALF)]
    target = work / "model.gguf"
    part = work / "model.gguf.part"
    command = [sys.executable, "-c", CHILD, f"{site.url}/model.gguf", str(target), SHA]
    child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": "."}, stderr=subprocess.DEVNULL)
    try:
        for _ in range(3000):
            if child.poll() is not None or (part.exists() and part.stat().st_size == HALF):
                break
            time.sleep(0.01)
        child.send_signal(how)
        assert child.wait(30) != 0
    finally:
        child.kill()
        child.wait()
    assert names(work) == ["model.gguf.part", "model.gguf.part.json"]
    assert get(site, work) == BODY
    assert [seen.sent for seen in site.seen] == [HALF, len(BODY) - HALF]
