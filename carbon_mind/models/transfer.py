"""One address -> one verified file, however often the connection breaks or the process dies on the way.

Bytes go to `<name>.part`; `<name>.part.json` says which version of the remote file they belong to. The next try asks
for the rest (`Range`) on the condition that it is still that version (`If-Range`), and starts from zero when the
server says otherwise or does not know ranges (RFC 9110, sections 13.1.5 and 14). The final name appears by a rename,
after the checksum.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from carbon_mind.errors import DownloadFailed, StorageProblem
from carbon_mind.models.hashing import file_sha256
from carbon_mind.safety.files import atomic_write, require_space

if TYPE_CHECKING:
    import ssl

    import httpx

__all__ = ["Progress", "fetch", "remove", "shown"]

Progress = Callable[[str, int, int], None]
"""`progress(label, done, total)` in bytes; `total` is 0 while it is not known."""

_BLOCK = 1 << 20
_REDIRECTS = 10
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_WRITE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITE |= getattr(os, "O_BINARY", 0)


class _TryAgain(Exception):
    """The same request may well succeed a moment later."""


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class _Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the bytes of a `.part` file belong to."""

    sha256: str  # promised, "" when nobody promised anything
    validator: str  # strong ETag, else Last-Modified, else ""
    total: int  # bytes, 0 when the server did not say


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of `fetch`."""

    url: str
    part: Path
    sha256: str
    size: int
    schemes: tuple[str, ...]
    progress: Progress | None
    label: str

    @property
    def note(self) -> Path:
        return self.part.with_name(self.part.name + ".json")

    def report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(self.label, done, total)

    def discard(self) -> None:
        remove(self.part, self.note)


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str = "",
    size: int = 0,
    schemes: Sequence[str] = ("https",),
    progress: Progress | None = None,
    label: str = "",
    attempts: int = 4,
    backoff_s: float = 1.0,
) -> Path:
    """Bring the bytes behind `url` to `target` (0600), resuming what an earlier call left; returns `target`.

    `sha256` and `size` are promises that the bytes must keep ("" and 0: none). Only `schemes` are spoken ("https",
    "http", "file"), and a redirect never leads from https to anything else. After `attempts` failures in a row that
    brought no new byte, waiting `backoff_s` and then twice as long each time, DownloadFailed is raised; the `.part`
    file stays for the next call. Wrong bytes are removed. Raises StorageProblem when they cannot be stored.
    """
    job = _Job(
        url, target.with_name(target.name + ".part"), sha256, size, tuple(schemes), progress, label or target.name
    )
    scheme = _check_scheme(url, job.schemes)
    try:
        if sha256 and target.is_file() and file_sha256(target) == sha256:
            return target
        if scheme == "file":
            _copy(job)
        else:
            _download(job, attempts, backoff_s)
        job.part.replace(target)
        remove(job.note)
    except OSError as error:
        raise StorageProblem(
            f"Cannot store {target}: {error.strerror or error}.",
            hint="Check the folder and its disk, then run the command again: it continues where it stopped.",
        ) from error
    return target


def remove(*paths: Path) -> None:
    """Remove the files that are there."""
    for path in paths:
        path.unlink(missing_ok=True)


def shown(url: str) -> str:
    """The address as it may appear in a message: without user, password, query and fragment."""
    split = urllib.parse.urlsplit(url)
    return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path}"


def _check_scheme(url: str, schemes: Sequence[str]) -> str:
    scheme = urllib.parse.urlsplit(url).scheme.lower()
    if scheme not in schemes:
        raise DownloadFailed(
            f"Refusing to read {shown(url)}: only {' and '.join(f'{name}://' for name in schemes)} can be trusted.",
            hint="Use a mirror or an index that speaks https.",
        )
    return scheme


# --- what has arrived --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _writing(path: Path, *, at: int) -> Iterator[_Sink]:
    """The file, cut to its first `at` bytes and ready for more; unbuffered, so that a kill loses nothing received."""
    with os.fdopen(os.open(path, _WRITE, 0o600), "wb", buffering=0) as file:
        file.truncate(at)
        file.seek(at)
        yield file
        os.fsync(file.fileno())


def _resumable(job: _Job) -> tuple[int, _Origin]:
    """How many bytes of an earlier try can be kept, and what they belong to."""
    nothing = (0, _Origin(job.sha256, "", 0))
    try:
        origin = msgspec.json.decode(job.note.read_bytes()[:_BLOCK], type=_Origin)
        have = job.part.stat().st_size
    except (OSError, msgspec.DecodeError):
        return nothing
    # Without a checksum and without a validator nothing would notice two halves of different files.
    same = origin.sha256 == job.sha256 and bool(job.sha256 or origin.validator)
    if not same or (origin.total and have > origin.total):
        return nothing
    return have, origin


def _refuse_wrong(job: _Job) -> None:
    """Raise DownloadFailed, and remove the bytes, unless they are what was promised."""
    have = job.part.stat().st_size
    if job.size and have != job.size:
        job.discard()
        raise DownloadFailed(
            f"{shown(job.url)} has {have:,} bytes, {job.size:,} were promised.",
            hint="The file at the source was replaced, or something on the way changes it: try another source.",
        )
    if job.sha256 and (found := file_sha256(job.part)) != job.sha256:
        job.discard()
        raise DownloadFailed(
            f"{shown(job.url)} has the SHA-256 {found}, {job.sha256} was promised.",
            hint="The file at the source was replaced, or something on the way changes it: try another source.",
        )


# --- file:// -------------------------------------------------------------------------------------------------------


def _copy(job: _Job) -> None:
    from urllib.request import url2pathname

    split = urllib.parse.urlsplit(job.url)
    if split.netloc not in ("", "localhost"):
        raise DownloadFailed(f"{shown(job.url)} names a file of another machine.", hint="Use file:///path or https://.")
    source = Path(url2pathname(split.path))
    if not source.is_file():
        raise DownloadFailed(f"There is no file {source}.", hint="Check the path of the mirror or of the source.")
    remove(job.note)
    with source.open("rb") as reader:
        total = os.fstat(reader.fileno()).st_size
        require_space(job.part.parent, total)
        done = 0
        with _writing(job.part, at=0) as file:
            while block := reader.read(_BLOCK):
                file.write(block)
                done += len(block)
                job.report(done, total)
    _refuse_wrong(job)


# --- http(s):// ----------------------------------------------------------------------------------------------------


def _download(job: _Job, attempts: int, backoff_s: float) -> None:
    import httpx

    most, _ = _resumable(job)
    failures = 0
    started_over = False
    with _client() as client:
        while True:
            try:
                resumed = _attempt(client, job)
            except (_TryAgain, httpx.TransportError) as error:
                _refuse_hopeless(job, error)
                have, _ = _resumable(job)
                failures = 1 if have > most else failures + 1  # a slow line that breaks often still gets there
                most = max(most, have)
                if failures >= attempts:
                    raise _gave_up(job, error, have) from error
                time.sleep(backoff_s * 2 ** (failures - 1))
                continue
            except httpx.InvalidURL as error:
                raise DownloadFailed(f"{job.url!r} is not an address: {error}.", hint="Correct the source.") from error
            try:
                return _refuse_wrong(job)
            except DownloadFailed:
                if not resumed or started_over:
                    raise
                started_over = True  # halves of two versions, which no validator told apart: once more from zero
                most = 0


def _client() -> httpx.Client:
    import httpx

    try:
        return httpx.Client(
            verify=_tls(),
            timeout=httpx.Timeout(30.0, connect=15.0),
            headers={"User-Agent": "carbon-mind", "Accept-Encoding": "identity"},  # ranges count encoded bytes
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise DownloadFailed(
            f"The proxy settings cannot be used: {error}", hint="Correct HTTPS_PROXY, ALL_PROXY and NO_PROXY."
        ) from error


def _tls() -> ssl.SSLContext:
    """Trust what the operating system trusts, and what the user told pip to trust."""
    import ssl

    context: ssl.SSLContext
    try:
        import truststore

        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    except (ImportError, NotImplementedError, ssl.SSLError):
        context = ssl.create_default_context()
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE"):
        if bundle := os.environ.get(name):
            try:
                context.load_verify_locations(**({"capath": bundle} if Path(bundle).is_dir() else {"cafile": bundle}))
            except OSError as error:  # ssl.SSLError is one
                raise DownloadFailed(
                    f"{name} names {bundle}, which holds no usable certificates.", hint=f"Correct or unset {name}."
                ) from error
    return context


def _attempt(client: httpx.Client, job: _Job) -> bool:
    """One request to the end of its body; true when the bytes continue those of an earlier request."""
    have, origin = _resumable(job)
    if have and have == origin.total:
        return True  # killed between the last byte and the rename
    headers = {}
    if have:
        headers["Range"] = f"bytes={have}-"
        if origin.validator:
            headers["If-Range"] = origin.validator
    with contextlib.closing(_open(client, job, headers)) as response:
        start, total = _place(response, job, have, origin)
        if job.size and total and total != job.size:
            raise DownloadFailed(
                f"{shown(job.url)} has {total:,} bytes, {job.size:,} were promised.",
                hint="The file at the source was replaced: try another source.",
            )
        limit = total or job.size
        require_space(job.part.parent, limit - start)
        with _writing(job.part, at=start) as file:
            if start == 0:  # after the old bytes are gone: a kill in between must not join old and new
                fresh = _Origin(job.sha256, _validator(response), total)
                atomic_write(job.note, msgspec.json.encode(fresh), mode=0o600)
            done = start
            job.report(done, limit)
            for chunk in response.iter_raw():
                done += len(chunk)
                if limit and done > limit:
                    job.discard()
                    raise DownloadFailed(
                        f"{shown(job.url)} sends more than {limit:,} bytes.", hint="Try another source."
                    )
                file.write(chunk)
                job.report(done, limit)
    if total and done != total:
        raise _TryAgain(f"the connection ended after {done:,} of {total:,} bytes")
    return start > 0


def _open(client: httpx.Client, job: _Job, headers: dict[str, str]) -> httpx.Response:
    """The answer to a GET, its body still to come. Redirects are followed here so that each one is looked at."""
    request = client.build_request("GET", job.url, headers=headers)
    for _ in range(_REDIRECTS):
        response = client.send(request, stream=True, follow_redirects=False)
        if response.next_request is None:
            return response
        response.close()
        secure = request.url.scheme == "https"
        request = response.next_request
        _check_scheme(str(request.url), ("https",) if secure else [name for name in job.schemes if name != "file"])
    raise DownloadFailed(f"{shown(job.url)} is redirected in circles.", hint="Try another source.")


def _place(response: httpx.Response, job: _Job, have: int, origin: _Origin) -> tuple[int, int]:
    """Where in the file the body begins, and how long the whole file is (0: not said)."""
    status = response.status_code
    if status == HTTPStatus.OK:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else 0
    if status == HTTPStatus.PARTIAL_CONTENT and have:
        span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        total = int(span[2]) if span and span[2] != "*" else origin.total
        if span and int(span[1]) == have and origin.total in (0, total):
            return have, total
    if status in (HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE) and have:
        job.discard()
        raise _TryAgain("the server's idea of the file changed")
    said = f"{status} {response.reason_phrase}".strip()
    if status in _TRANSIENT:
        raise _TryAgain(f"the server answered {said}")
    raise DownloadFailed(f"{shown(job.url)} answered {said}.", hint=_status_hint(status))


def _status_hint(status: int) -> str:
    if status in (401, 403, 407):
        return (
            "The server wants a login, which carbon does not send: get the file with your own tools and give its path."
        )
    return "The source has moved or is gone: try another source, or get the file yourself and give its path."


def _validator(response: httpx.Response) -> str:
    """Weak ETags may stand for different bytes and are not allowed in If-Range."""
    etag: str = response.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _refuse_hopeless(job: _Job, error: Exception) -> None:
    """Raise at once where waiting changes nothing."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise DownloadFailed(
                f"The certificate of {shown(job.url)} is not trusted: {cause.verify_message}.",
                hint="Behind a company proxy, point SSL_CERT_FILE to its certificates.",
            ) from error
        cause = cause.__cause__ or cause.__context__


def _gave_up(job: _Job, error: Exception, have: int) -> DownloadFailed:
    kept = f" {have:,} bytes are kept." if have else ""
    reason = str(error) or type(error).__name__
    return DownloadFailed(
        f"{shown(job.url)} cannot be read: {reason}.{kept}",
        hint="Check the network and the proxy, then run the command again: it continues where it stopped.",
    )
