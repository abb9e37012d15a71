"""The real OpenCode and the real pi ask the mind over MCP: they offer our tools to a model, call one, and hand its answer back."""

from __future__ import annotations

import pytest

from tests.cli.test_commands import carbon
from tests.clients.conftest import Model, Run
from tests.conftest import Repository

pytest.importorskip("mcp", reason="the mcp extra is not installed")
pytestmark = pytest.mark.slow

TOOLS = ("mind_lookup", "mind_list", "mind_symbol", "mind_search")


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("mind_lookup", {"path": "sample/core.py"}, "# sample/ (4 files, python)"),
        ("mind_symbol", {"name": "build_engine"}, "sample/core.py:6 def build_engine(name: str) -> Engine"),
    ],
)
def test_opencode_asks_the_mind(
    opencode: Run, model: Model, sample: Repository, tool: str, arguments: dict[str, str], told: str
) -> None:
    assert carbon("mcp", "install", "--client", "opencode", cwd=sample.path).returncode == 0
    model.tool, model.arguments = tool, arguments
    done = opencode("where is the engine built")
    assert model.requests, done.stderr
    assert {f"carbon_{name}" for name in TOOLS} <= model.tools()
    assert any(told in result for result in model.results()), (model.results(), done.stderr[-2000:])
    assert "It is in sample/core.py." in done.stdout


def test_pi_asks_the_mind(pi: Run, model: Model, sample: Repository) -> None:
    assert carbon("mcp", "install", "--client", "pi", cwd=sample.path).returncode == 0
    model.tool, model.arguments = "mind_lookup", {"path": "sample/core.py"}
    done = pi("where is the engine built")
    assert model.requests, done.stderr
    assert all(any(name.endswith(tool) for name in model.tools()) for tool in TOOLS), model.tools()
    assert any("# sample/ (4 files, python)" in result for result in model.results()), (model.results(), done.stderr)
    assert "It is in sample/core.py." in done.stdout
