"""The MCP server as a client meets it: a real process, the SDK's own client, golden tool texts, errors that end nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent, TextResourceContents

from carbon_mind.digest.bound import token_bound
from carbon_mind.safety.trust import HEADER, OPEN
from carbon_mind.serve.mcp import RESOURCE, server
from tests.cli.test_commands import carbon
from tests.conftest import Repository

GOLDEN = Path(__file__).parents[1] / "golden" / "mcp" / "tools.json"
TOKENS = 560
"""What the four tools may cost in every request of a client, by the bound that never counts too few."""


@asynccontextmanager
async def session(root: Path) -> AsyncIterator[ClientSession]:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "carbon_mind", "mcp", str(root)], env=dict(os.environ)
    )
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as opened:
        await opened.initialize()
        yield opened


def run(root: Path, work: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        async with session(root) as opened:
            return await work(opened)

    return anyio.run(whole)


async def call(opened: ClientSession, tool: str, **arguments: object) -> tuple[str, bool]:
    result = await opened.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text, bool(result.is_error)


class Nothing:
    """A mind that is never asked."""

    def show(self) -> str:
        raise NotImplementedError

    listing = show

    def lookup(self, path: str) -> str:
        raise NotImplementedError(path)

    symbol = search = lookup


def test_the_tools_are_short_and_golden() -> None:
    tools = anyio.run(server(Nothing()).list_tools)
    shown = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools], indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(shown)
    assert shown == GOLDEN.read_text()
    compact = json.dumps(json.loads(shown), separators=(",", ":"))
    assert token_bound(compact) <= TOKENS
    assert max(len(tool.description or "") for tool in tools) <= 200


def test_every_tool_answers_from_the_repository(sample: Repository) -> None:
    async def work(opened: ClientSession) -> None:
        assert opened.initialize_result is not None
        assert {tool.name for tool in (await opened.list_tools()).tools} == {
            *("mind_lookup", "mind_list", "mind_symbol", "mind_search")
        }
        text, failed = await call(opened, "mind_lookup", path="sample/core.py")
        assert (text.splitlines()[0], failed) == ("# sample/ (4 files, python)", False)
        assert "- sample/: 4 files" in (await call(opened, "mind_list"))[0]
        assert "- sample/core.py:1 class Engine (class)" in (await call(opened, "mind_symbol", name="Engine"))[0]
        assert "- sample/core.py - " in (await call(opened, "mind_search", query="build an engine"))[0]
        (resource,) = (await opened.list_resources()).resources
        assert str(resource.uri) == RESOURCE
        (content,) = (await opened.read_resource(RESOURCE)).contents
        assert isinstance(content, TextResourceContents)
        assert content.text.startswith(f"{OPEN}\n{HEADER}\n# sample: repository digest")

    run(sample.path, work)


def test_an_answer_follows_an_edit(sample: Repository) -> None:
    async def work(opened: ClientSession) -> None:
        assert "not defined" in (await call(opened, "mind_symbol", name="fresh_name"))[0]
        sample.write("sample/fresh.py", "def fresh_name() -> None: ...\n")
        with anyio.fail_after(30):
            while "sample/fresh.py:1" not in (await call(opened, "mind_symbol", name="fresh_name"))[0]:  # noqa: ASYNC110 - what changes is a file
                await anyio.sleep(0.2)

    run(sample.path, work)


def test_what_is_wrong_is_a_tool_error_and_the_server_goes_on(sample: Repository) -> None:
    async def work(opened: ClientSession) -> None:
        for tool, arguments in (
            ("mind_lookup", {"path": "/etc/passwd"}),
            ("mind_lookup", {"path": "../other"}),
            ("mind_lookup", {"path": ""}),
            ("mind_lookup", {"path": "x" * 1001}),
            ("mind_lookup", {"path": 7}),
            ("mind_lookup", {}),
            ("mind_nothing", {}),
        ):
            text, failed = await call(opened, tool, **arguments)
            assert failed, (tool, arguments)
            assert "root:" not in text
        text, failed = await call(opened, "mind_lookup", path="/etc/passwd")
        assert "outside of the repository" in text
        assert "relative to its root" in text
        assert (await call(opened, "mind_lookup", path="sample"))[1] is False

    run(sample.path, work)


def test_an_untrusted_mind_is_withheld_here_too(sample: Repository) -> None:
    sample.write("AGENTS.md", "Do as I say.\n")

    async def work(opened: ClientSession) -> None:
        for tool, arguments in (
            ("mind_lookup", {"path": "sample"}),
            ("mind_list", {}),
            ("mind_symbol", {"name": "Engine"}),
            ("mind_search", {"query": "engine"}),
        ):
            assert (await call(opened, tool, **arguments))[0].startswith("mind withheld: ")

    run(sample.path, work)


def test_many_questions_at_once_are_all_answered(sample: Repository) -> None:
    async def work(opened: ClientSession) -> None:
        found: list[str] = []

        async def ask(number: int) -> None:
            found.append((await call(opened, "mind_lookup", path=f"sample/file{number}.py"))[0])

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(ask, number)
        assert {text.splitlines()[0] for text in found} == {"# sample/ (4 files, python)"}

    run(sample.path, work)


def test_an_unexpected_error_is_one_line() -> None:
    class Broken(Nothing):
        def lookup(self, path: str) -> str:
            raise ValueError("two\nlines \u202e")

    async def work() -> None:
        with pytest.raises(Exception, match=r"unexpected: ValueError") as caught:
            await server(Broken()).call_tool("mind_lookup", {"path": "x"})
        assert "\n" not in str(caught.value)

    anyio.run(work)


def test_it_ends_with_its_input_and_needs_a_repository(sample: Repository, tmp_path: Path) -> None:
    done = carbon("mcp", sample.path, input="")
    assert (done.returncode, done.stdout) == (0, "")
    missing = carbon("mcp", tmp_path / "nowhere", input="")
    assert missing.returncode == 3
    assert carbon("mcp", input="").returncode == 2
