"""The gateway over HTTP: what agents ask, what people and Prometheus ask, and everything else passed through.

It listens for this machine. A browser's page could reach it, too, so the Host header must name where it listens, and an Origin must be of
this machine. What would change the server's states behind our back (slot files, adapters) is refused.
"""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from carbon_mind.errors import CarbonError
from carbon_mind.serve.gateway import Gateway
from carbon_mind.serve.totals import exposition
from carbon_mind.serve.turn import HOP, Turn
from carbon_mind.serve.wire import NotChat, parse

LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
_MOST = 128 << 20
"""Bytes of a request's body."""
_CHAT = ("/v1/chat/completions", "/chat/completions")
# Whatever else makes the server generate: each would take a slot of its own choosing.
_GENERATING = (
    *("/v1/completions", "/completions", "/completion", "/infill", "/v1/messages", "/v1/responses", "/responses"),
    *("/api/chat", "/api/generate"),
)
_REFUSED = ("/slots", "/lora-adapters", "/props", "/models")


def application(gateway: Gateway, *, host: str) -> ASGIApp:
    """The ASGI application; `host` is where it listens."""

    ask = _Endpoints(gateway)
    anything = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    routes = [
        *(Route(path, ask.chat, methods=["POST"]) for path in _CHAT),
        *(Route(path, ask.generate, methods=["POST"]) for path in _GENERATING),
        Route("/carbon/status", ask.status),
        Route("/carbon/warm", ask.warm, methods=["POST"]),
        Route("/metrics", ask.metrics),
        *(Route(path + rest, ask.guarded, methods=anything) for path in _REFUSED for rest in ("", "/{rest:path}")),
        Route("/{path:path}", ask.other, methods=anything),
    ]
    return Guard(Starlette(routes=routes), host=host, key=gateway.key)


class _Endpoints:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def chat(self, request: Request) -> ASGIApp:
        body = await _body(request)
        if body is None:
            return _TOO_LARGE
        try:
            chat = parse(body)
        except NotChat:
            chat = None
        return Turn(self._gateway, _target(request), request.headers, body, chat)

    async def generate(self, request: Request) -> ASGIApp:
        body = await _body(request)
        return _TOO_LARGE if body is None else Turn(self._gateway, _target(request), request.headers, body, None)

    async def status(self, _request: Request) -> Response:
        return _json(self._gateway.status())

    async def metrics(self, _request: Request) -> Response:
        content, kind = exposition(self._gateway.totals, self._gateway.gauges())
        return Response(content, media_type=kind)

    async def warm(self, request: Request) -> Response:
        try:
            wanted = msgspec.json.decode(await request.body() or b"{}", type=dict[str, str | None])
            return _json(await self._gateway.warm_heads(wanted.get("client"), wanted.get("mode")))
        except msgspec.MsgspecError as wrong:
            return _error(400, f"the body is not {{client, mode}}: {wrong}")
        except CarbonError as problem:
            return _error(503, problem.message)

    async def guarded(self, request: Request) -> Response:
        if request.method == "GET":
            return await self.other(request)
        return _error(
            403, f"{request.url.path} would change what the gateway knows of the server: ask the server itself"
        )

    async def other(self, request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _TOO_LARGE
        try:
            return await _passed(self._gateway, request, body)
        except CarbonError as problem:
            return _error(503, problem.message)
        except httpx.HTTPError as broken:
            return _error(502, f"llama-server does not answer: {str(broken) or type(broken).__name__}")


class Guard:
    """Lets through who may ask."""

    def __init__(self, app: ASGIApp, *, host: str, key: str) -> None:
        self._app = app
        self._hosts = LOOPBACK | {host.lower()}
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 or 401 to anybody else."""
        if scope["type"] == "http":
            refused = self._refused(scope["path"], Headers(scope=scope))
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refused(self, path: str, headers: Headers) -> Response | None:
        if _host(f"//{headers.get('host', '')}") not in self._hosts:
            return _error(403, "the Host header names another machine")
        if (origin := headers.get("origin")) is not None and _host(origin) not in self._hosts:
            return _error(403, "the Origin is another machine")
        if not self._key or path == "/health":
            return None
        shown = headers.get("authorization", "").removeprefix("Bearer ").strip() or headers.get("x-api-key", "")
        if hmac.compare_digest(shown.encode(), self._key.encode()):
            return None
        return _error(401, "this gateway wants its API key: Authorization: Bearer KEY")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _target(request: Request) -> str:
    """Path and query, as they came."""
    path: str = (request.scope.get("raw_path") or request.url.path.encode()).decode("latin-1")
    return f"{path}?{request.url.query}" if request.url.query else path


async def _body(request: Request) -> bytes | None:
    """The whole body; None where it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _MOST:
            return None
        parts.append(part)
    return b"".join(parts)


async def _passed(gateway: Gateway, request: Request, body: bytes) -> Response:
    """Ask the server the same, and relay its answer as it comes."""
    server = await gateway.server()
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP]
    if gateway.key or gateway.upstream.headers:
        headers = [(name, value) for name, value in headers if name.lower() != "authorization"]
    asked = gateway.client.build_request(
        request.method, server.url + _target(request), content=body, headers=[*headers, ("Accept-Encoding", "identity")]
    )
    answer = await gateway.client.send(asked, stream=True)
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
    return StreamingResponse(
        answer.aiter_raw(), status_code=answer.status_code, headers=kept, background=BackgroundTask(answer.aclose)
    )


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _error(status: int, message: str) -> Response:
    body = {"error": {"message": message, "type": "gateway_error", "code": status}}
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json")


_TOO_LARGE = _error(413, f"the body has more than {_MOST:,} bytes")
