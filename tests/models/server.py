"""A web server on the loopback address that knows ranges and validators, and fails on request."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator


@dataclass(frozen=True)
class Answer:
    """How one request is answered: `status`, and what goes wrong."""

    status: int = 200
    stop_after: int | None = None  # bytes of the body, then the connection is cut
    pause_after: int | None = None  # bytes of the body, then nothing until the server closes
    ranges: bool = True  # False: Range is ignored
    chunked: bool = False  # no Content-Length
    location: str = ""
    shift: int = 0  # a range begins so many bytes after the one that was asked for


@dataclass
class Seen:
    """One request as it arrived, and how many bytes of a body went back."""

    path: str
    range: str | None
    if_range: str | None
    ours: bool  # by carbon, not by pip
    sent: int = 0


@dataclass
class Site:
    """What the server offers, how our next requests are answered (then: well), and what was asked."""

    files: dict[str, bytes]
    etag: str = '"one"'
    last_modified: str = ""
    script: list[Answer] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        seen = Seen(
            self.path, self.headers["Range"], self.headers["If-Range"], self.headers["User-Agent"] == "carbon-mind"
        )
        site.seen.append(seen)
        answer = site.script.pop(0) if site.script and seen.ours else Answer()
        body = site.files.get(self.path)
        if answer.location:
            self._end(answer.status, {"Location": answer.location, "Content-Length": "0"})
        elif answer.status != 200 or body is None:
            self._end(answer.status if answer.status != 200 else 404, {"Content-Length": "0"})
        else:
            self._body(site, seen, answer, body)

    def _body(self, site: Site, seen: Seen, answer: Answer, body: bytes) -> None:
        headers = {"Content-Type": "text/html" if self.path.endswith("/") else "application/octet-stream"}
        if site.etag:
            headers["ETag"] = site.etag
        if site.last_modified:
            headers["Last-Modified"] = site.last_modified
        status, start = 200, 0
        valid = seen.if_range is None or seen.if_range in (site.etag, site.last_modified)
        if seen.range and answer.ranges and valid:
            start = int(re.fullmatch(r"bytes=(\d+)-", seen.range)[1]) + answer.shift  # type: ignore[index]
            if start >= len(body):
                self._end(416, {"Content-Range": f"bytes */{len(body)}", "Content-Length": "0"})
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        rest = body[start:]
        if answer.chunked:
            self.close_connection = True
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(len(rest))
        self._end(status, headers)
        stop = answer.stop_after if answer.stop_after is not None else answer.pause_after
        rest = rest[:stop]
        self.wfile.write(rest)
        seen.sent = len(rest)
        if answer.pause_after is not None:
            site.closing.wait(60)
        if stop is not None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _end(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: Any, **kwargs: Any) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, site: Site, tls: ssl.SSLContext | None) -> None:
        self.site = site
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many tests are about."""


@contextlib.contextmanager
def serving(files: dict[str, bytes], tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    site = Site(files)
    server = _Server(site, tls)
    site.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
