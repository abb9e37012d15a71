"""The gateway in front of the real llama-server: what is evaluated, by the server's own counts, over restarts, sessions and days."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("xllamacpp", reason="the server extra is not installed")
pytest.importorskip("starlette", reason="the gateway extra is not installed")

from tests.cli.test_commands import carbon
from tests.conftest import Repository
from tests.serve.gateway import RULES, TOOL, Answer, Serving, assistant, eventually, serving, system, user

CONTEXT = ("--ctx", "16384")
Tiny = Callable[[str], Path]


@pytest.fixture(params=["agent", "agent-hybrid"])
def kind(request: pytest.FixtureRequest, tiny: Tiny) -> Path:
    """A model that can go back, and one that cannot."""
    return tiny(request.param)


@pytest.fixture
def agent(tiny: Tiny) -> Path:
    return tiny("agent")


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


# --- the head --------------------------------------------------------------------------------------------------


def test_a_head_is_evaluated_once_then_hot_then_restored_after_a_restart(kind: Path) -> None:
    with serving("--model", kind, *CONTEXT) as gateway:
        cold = gateway.ask(system(), user("first"))
        assert (cold.status, cold.head) == (200, "prefilled")
        assert cold.headers["x-carbon-miss"] == "nothing has been stored yet"
        assert cold.cost > 1500
        hot = gateway.ask(system(), user("first"), assistant(cold.text), user("more"))
        assert (hot.head, hot.cost < 120) == ("hot", True)
        other = gateway.ask(system(), user("another session"), session="t")
        assert (other.head, other.cost < 64) == ("restored", True)
        assert gateway.stop() == 0
    with serving("--model", kind, *CONTEXT) as gateway:
        ready = gateway.status()["tokens"]
        assert ready["restored"] > 1500, "it is put into a slot at the start"
        assert ready["evaluated"] == 0
        again = gateway.ask(system(), user("first"), session="u")
        assert (again.head, again.text) == ("hot", cold.text)
        assert again.cached == ready["restored"]
        assert again.cost <= len("first") + 64
        more = gateway.ask(system(), user("another session"), session="t")
        assert (more.head, more.restored, more.text) == ("restored", more.cached, other.text)
        assert more.cost <= len("another session") + 64
        status = gateway.status()
    assert status["hit_rate"] == 1
    assert status["lost_heads"] == 0


def test_a_head_that_differs_says_where(agent: Path, private_home: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"), headers={"User-Agent": "opencode/1"})
        changed = gateway.ask(system(RULES.replace("not guess", "never guess", 1)), user("first"), session="t")
        assert changed.head == "extended", "a dense model goes on from where the heads part"
        assert "(system): stored " in changed.headers["x-carbon-miss"]
        eventually(lambda: any("differs from token" in line for line in gateway.log))


def test_why_explains_the_last_request_from_a_directory(agent: Path, sample: Repository) -> None:
    text = f"{RULES}\nWorking directory: {sample.path}\n"
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(text), user("first"))
        gateway.ask(system(text.replace("exact", "brief", 1)), user("first"), session="t")
    told = carbon("why", cwd=sample.path)
    assert told.returncode == 0, told.stderr
    assert "serve (opencode)" in told.stdout
    assert "in system" in told.stdout


def test_a_head_beyond_the_context_is_the_servers_to_refuse(agent: Path) -> None:
    with serving("--model", agent, "--ctx", "1024") as gateway:
        refused = gateway.ask(system(), user("x"))
        assert refused.status == 400
        assert json.loads(refused.raw)["error"]["type"] == "exceed_context_size_error"


# --- slots -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", ["1", "2"])
def test_a_request_beside_never_costs_the_head(kind: Path, slots: str) -> None:
    title = system("You are a title generator. Say a title.")
    with serving("--model", kind, *CONTEXT, "--slots", slots) as gateway:
        first = gateway.ask(title, user("first"), tools=[])
        assert first.head == "side"
        cold = gateway.ask(system(), user("first"))
        gateway.ask(title, user("first"), tools=[])
        gateway.ask(system("a subagent " * 40), user("x"), session="sub", headers={"x-parent-session-id": "s"})
        after = gateway.ask(system(), user("first"), assistant(cold.text), user("more"))
        assert after.cost < 120, (after.head, after.headers)
        assert gateway.status()["lost_heads"] == 0


def test_two_agents_at_once_and_a_third_keep_head_and_history(agent: Path) -> None:
    heads = [system(f"Agent {i}. {RULES}") for i in range(3)]
    history: list[list[dict[str, Any]]] = [[head] for head in heads]
    with serving("--model", agent, *CONTEXT) as gateway:

        def turn(i: int, word: str) -> Answer:
            history[i].append(user(word))
            answer = gateway.ask(*history[i], session=f"agent-{i}")
            history[i].append(assistant(answer.text))
            return answer

        with ThreadPoolExecutor(2) as pool:
            assert [answer.status for answer in pool.map(lambda i: turn(i, "begin " * 40), (0, 1))] == [200, 200]
        with ThreadPoolExecutor(2) as pool:
            assert all(answer.cost < 120 for answer in pool.map(lambda i: turn(i, "on"), (0, 1)))
        turn(2, "a third " * 40)
        for i in (0, 1, 2):  # each finds its history again, although there are two slots
            found = turn(i, "and on")
            assert found.cost < 120, (i, found.head, found.headers)
        assert gateway.status()["lost_heads"] == 0


def test_many_clients_at_once_and_many_requests_in_sequence(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"), session="s-0")
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: gateway.ask(system(), user("first"), session=f"s-{i}"), range(24)))
        assert {answer.status for answer in answers} == {200}, gateway.log
        assert all(answer.cost < 64 for answer in answers)
        for _ in range(40):
            assert gateway.ask(system(), user("first"), session="s-0").cost < 64
        status = gateway.status()
        assert status["lost_heads"] == 0
        assert not any(slot["busy"] for slot in status["slots"])


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_server_that_dies_in_mid_answer_is_told_and_started_again(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"))
        (server,) = children(gateway.process.pid)
        body = {"messages": [system(), user("tell me a lot")], "tools": [TOOL], "stream": True, "max_tokens": 8000}
        body |= {"temperature": 0, "ignore_eos": True}
        lines: list[str] = []
        with httpx.stream(
            "POST", f"{gateway.url}/v1/chat/completions", json=body, timeout=60, headers={"User-Agent": "opencode/1"}
        ) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                if len(lines) == 20:
                    os.kill(server, signal.SIGKILL)
        assert '"error"' in lines[-2] + lines[-1]
        assert "[DONE]" not in "".join(lines)
        after = gateway.ask(system(), user("first"), session="t")
        assert (after.status, after.head) == (200, "restored")
        assert after.cost < 64
        assert gateway.status()["restarts"] == 1


def test_a_server_that_was_found_dead_costs_no_request(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"))
        (server,) = children(gateway.process.pid)
        os.kill(server, signal.SIGKILL)
        after = gateway.ask(system(), user("first"), session="t")
        assert (after.status, after.head, after.cost < 64) == (200, "restored", True)


def test_a_client_that_goes_away_stops_the_server_and_leaves_the_head(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"))
        body = {"messages": [system(), user("a lot")], "tools": [TOOL], "stream": True, "max_tokens": 12000}
        body |= {"temperature": 0, "ignore_eos": True}
        headers = {"User-Agent": "opencode/1", "x-session-affinity": "s"}
        with httpx.stream(
            "POST", f"{gateway.url}/v1/chat/completions", json=body, timeout=60, headers=headers
        ) as answer:
            for number, _ in enumerate(answer.iter_lines()):
                if number == 10:
                    break
        eventually(lambda: gateway.status()["cancelled"] == 1)
        upstream = gateway.status()["upstream"]["url"]
        eventually(lambda: not any(slot["is_processing"] for slot in httpx.get(f"{upstream}/slots").json()))
        assert gateway.ask(system(), user("first")).cost < 64


def test_a_head_that_was_left_half_done_goes_on_from_there(agent: Path) -> None:
    long = system(RULES * 8)
    with serving("--model", agent, *CONTEXT, env={"CARBON_N_BATCH": "64", "CARBON_THREADS": "1"}) as gateway:
        body = {"messages": [long, user("x")], "tools": [TOOL], "stream": True, "max_tokens": 2}
        headers = {"User-Agent": "opencode/1", "x-session-affinity": "s"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=1.0)
        eventually(lambda: gateway.status()["cancelled"] == 1)
        answer = gateway.ask(long, user("x"))
        assert int(answer.headers["x-carbon-kept-tokens"]) >= 64
        assert answer.head == "extended"


def test_a_damaged_snapshot_is_set_aside_and_never_reaches_the_server(agent: Path, private_home: Path) -> None:
    store = private_home / "cache" / "snapshots"
    with serving("--model", agent, *CONTEXT) as gateway:
        cold = gateway.ask(system(), user("first"))
    snapshots = list(store.glob("*.kv"))
    assert snapshots
    for path in snapshots:
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 255
        path.write_bytes(damaged)
    with serving("--model", agent, *CONTEXT) as gateway:
        assert list(store.glob("*.rejected"))
        assert gateway.status()["tokens"]["evaluated"] == 0, "nothing is evaluated that nobody asked for"
        again = gateway.ask(system(), user("first"))
        assert (again.status, again.head, again.text) == (200, "prefilled", cold.text)


# --- passing through -----------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(agent: Path) -> Iterator[Serving]:
    with serving("--model", agent, *CONTEXT) as found:
        yield found


def test_what_is_passed_through(gateway: Serving) -> None:
    models = httpx.get(f"{gateway.url}/v1/models").json()
    assert models["data"][0]["id"]
    assert httpx.get(f"{gateway.url}/health").json() == {"status": "ok"}
    done = gateway.post("/v1/completions", {"prompt": "a b c", "max_tokens": 3, "temperature": 0})
    assert done.status == 200
    assert json.loads(done.raw)["usage"]["completion_tokens"] <= 3
    assert gateway.post("/tokenize", {"content": "abc"}).status == 200
    assert httpx.get(f"{gateway.url}/nothing").status_code == 404
    whole = gateway.ask(system(), user("first"), stream=False)
    assert whole.events[0]["object"] == "chat.completion"
    assert gateway.post("/v1/chat/completions", {"messages": "none"}).status >= 400
    assert gateway.post("/v1/chat/completions", [1]).status >= 400


def test_a_tool_call_that_the_server_parses_comes_as_it_is(gateway: Serving) -> None:
    answer = gateway.ask(system(), user("read"), tool_choice="required", max_tokens=200, stream=False)
    (choice,) = answer.events[0]["choices"]
    if choice["finish_reason"] == "tool_calls":
        assert choice["message"]["tool_calls"][0]["function"]["name"] == "read"
    else:
        assert choice["finish_reason"] == "length"


@pytest.mark.parametrize(
    "broken",
    [
        {"tools": [{"type": "function"}]},
        {"tools": [{"type": "function", "function": {"name": 1}}]},
        {"messages": [{"role": "system", "content": RULES}, {"role": "user"}]},
        {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": 7}]},
        {"tool_choice": "nonsense"},
        {"response_format": {"type": "nonsense"}},
        {"max_tokens": "many"},
    ],
)
def test_what_the_server_refuses_it_refuses_itself(gateway: Serving, broken: dict[str, Any]) -> None:
    body = {"messages": [system(), user("x")], "tools": [TOOL], "max_tokens": 2, **broken}
    direct = httpx.post(f"{gateway.status()['upstream']['url']}/v1/chat/completions", json=body, timeout=60)
    through = gateway.post("/v1/chat/completions", body)
    assert through.status == direct.status_code
    if direct.status_code != 200:
        assert json.loads(through.raw) == direct.json()


def test_state_is_not_changed_behind_its_back(gateway: Serving) -> None:
    assert gateway.post("/slots/0?action=erase", {}).status == 403
    assert gateway.post("/lora-adapters", []).status == 403
    assert httpx.get(f"{gateway.url}/slots").status_code == 200


def test_metrics_and_status(gateway: Serving, private_home: Path) -> None:
    gateway.ask(system(), user("first"))
    text = httpx.get(f"{gateway.url}/metrics").text
    assert 'carbon_requests_total{head="prefilled"} 1.0' in text
    assert "carbon_tokens_evaluated_total" in text
    shown = carbon("status")
    assert shown.returncode == 0, shown.stderr
    assert "prefilled 1" in shown.stdout
    assert "opencode run (no directory)" in shown.stdout
    assert json.loads(carbon("status", "--json").stdout)["requests"] == {"prefilled": 1}
    assert (private_home / "cache" / "gateway" / "running.json").stat().st_mode & 0o777 == 0o600


def test_no_gateway_no_status() -> None:
    done = carbon("status")
    assert done.returncode == 5
    assert "carbon serve" in done.stderr


# --- who may ask ---------------------------------------------------------------------------------------------------


def test_only_this_machine_and_only_with_the_key(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT, env={"CARBON_API_KEY": "secret"}) as gateway:
        assert gateway.ask(system(), user("x")).status == 401
        assert gateway.ask(system(), user("x"), headers={"Authorization": "Bearer wrong"}).status == 401
        assert gateway.ask(system(), user("x"), headers={"Authorization": "Bearer secret"}).status == 200
        assert httpx.get(f"{gateway.url}/health").status_code == 200
        assert httpx.get(f"{gateway.url}/health", headers={"Host": "evil.example"}).status_code == 403
        assert httpx.get(f"{gateway.url}/health", headers={"Origin": "https://evil.example"}).status_code == 403
        assert carbon("status").returncode == 0, "the user's own commands know the key"


def test_listening_for_others_needs_a_key(agent: Path) -> None:
    done = carbon("serve", "--host", "::", "--model", agent)
    assert done.returncode == 2
    assert "--api-key" in done.stderr


def test_what_keeps_it_from_starting_is_said(agent: Path, tmp_path: Path) -> None:
    missing = carbon("serve", "--port", "0", "--model", tmp_path / "none.gguf")
    assert missing.returncode == 4
    nobody = carbon("serve", "--port", "0", "--upstream", "http://127.0.0.1:9")
    assert nobody.returncode == 5
    assert "correct --upstream" in nobody.stderr
    with serving("--model", agent, *CONTEXT) as gateway:
        port = gateway.url.rsplit(":", 1)[1]
        taken = carbon("serve", "--port", port, "--model", agent)
        assert taken.returncode == 2
        assert "--port" in taken.stderr


# --- somebody else's server ------------------------------------------------------------------------------------------


def test_in_front_of_a_llama_server_that_runs_already(agent: Path, tmp_path: Path) -> None:
    from carbon_mind.engine.serving import running

    with running({"model": str(agent), "n_ctx": 16384, "n_slots": 2}) as started:
        with serving("--upstream", started.url) as gateway:
            cold = gateway.ask(system(), user("first"))
            assert (cold.head, cold.status) == ("prefilled", 200)
            assert gateway.ask(system(), user("first"), session="t").cost < 3000
            assert gateway.ask(system(), user("first")).head == "hot"
            assert not gateway.status()["upstream"]["stores"]
        with serving("--upstream", f"{started.url}/v1", "--slots-dir", str(started.slots)) as gateway:
            assert gateway.status()["upstream"]["stores"]
            gateway.ask(system("x" + RULES), user("first"))
        with serving("--upstream", started.url, "--slots-dir", str(started.slots)) as gateway:
            found = gateway.ask(system("x" + RULES), user("first"))
            assert (found.head, found.cost < 64) == ("hot", True)
            assert gateway.status()["tokens"]["restored"] > 1500
        refused = carbon("serve", "--port", "0", "--upstream", started.url, "--slots-dir", tmp_path / "none")
        assert refused.returncode == 2
        assert started.process is not None
        assert started.process.poll() is None, "it is not ours to end"


def test_a_users_own_binary(agent: Path, tmp_path: Path) -> None:
    """A llama-server on PATH is asked with its own flags. This one reads them, and is the prebuilt one below."""
    script = tmp_path / "bin" / "llama-server"
    script.parent.mkdir()
    script.write_text(_SERVER)
    script.chmod(0o755)
    env = {"PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    with serving("--model", agent, *CONTEXT, env=env) as gateway:
        assert gateway.status()["upstream"]["engine"].startswith("llama-server ")
        gateway.ask(system(), user("first"))
        (wrapper,) = children(gateway.process.pid)
        (server,) = children(wrapper)
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    with serving("--model", agent, *CONTEXT, env=env) as gateway:
        assert gateway.ask(system(), user("first")).cost < 64
    done = carbon("serve", "--port", "0", "--model", agent, env={**os.environ, "CARBON_LLAMA_SERVER": "/nowhere"})
    assert done.returncode == 5
    script.write_text("#!/bin/sh\necho 'error: unknown argument: --cache-ram' >&2\nexit 1\n")
    with serving("--model", agent, *CONTEXT, env=env) as gateway:
        assert gateway.status()["upstream"]["engine"].startswith("xllamacpp ")
        eventually(lambda: any("unknown argument" in line and "prebuilt" in line for line in gateway.log))
    refused = carbon(
        *("serve", "--port", "0", "--model", agent), env={**os.environ, "CARBON_LLAMA_SERVER": str(script)}
    )
    assert refused.returncode == 5
    assert "unknown argument" in refused.stderr


_SERVER = f"""#!{__import__("sys").executable}
import argparse, os, threading, sys, json
sys.path[:0] = {__import__("sys").path!r}
import xllamacpp
flags = argparse.ArgumentParser()
for name in ("model", "ctx-size", "parallel", "batch-size", "ubatch-size", "threads", "threads-batch", "cache-type-k",
             "cache-type-v", "flash-attn", "slot-save-path", "cache-ram", "host", "port"):
    flags.add_argument("--" + name, required=True)
for name in ("slots", "props", "metrics", "jinja"):
    flags.add_argument("--" + name, action="store_true", required=True)
given = flags.parse_args()
params = xllamacpp.CommonParams()
params.model.path = given.model
params.n_ctx, params.n_parallel = int(given.ctx_size), int(given.parallel)
params.slot_save_path, params.port = given.slot_save_path, int(given.port)
params.endpoint_slots = params.endpoint_props = params.use_jinja = True
params.cache_ram_mib = int(given.cache_ram)
server = xllamacpp.Server(params)
threading.Event().wait()
"""


# --- warming without the client ------------------------------------------------------------------------------------


def test_heads_are_learned_and_warmed_without_the_client(agent: Path, private_home: Path) -> None:
    with serving("--model", agent, *CONTEXT, "--slots", "3") as gateway:
        gateway.ask(system(), user("first"))
    shutil.rmtree(private_home / "cache" / "snapshots")
    none = carbon("warm", "--client", "pi")
    assert none.returncode == 2
    assert "carbon status" in none.stderr
    alone = carbon("warm", "--client", "opencode")
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.startswith("opencode run (no directory): prefilled")
    with serving("--model", agent, *CONTEXT, "--slots", "3", "--warm") as gateway:
        assert gateway.status()["tokens"]["evaluated"] == 0, "set as the gateway was, the head is the same"
        eventually(lambda: any(slot["head"] for slot in gateway.status()["slots"]))
        asked = json.loads(carbon("warm", "--client", "all", "--json").stdout)
        assert [item["client"] for item in asked] == ["opencode"]
        found = gateway.ask(system(), user("first"))
        assert (found.head, found.cost < 64) == ("hot", True)
    assert carbon("store", "purge").returncode == 0
    assert not list((private_home / "cache" / "gateway").glob("*/*.json")), "they hold what a repository says"


def test_an_agent_without_tools_is_not_taken_for_something_beside(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        long = system(RULES * 4)
        assert gateway.ask(long, user("first"), tools=[], agent="aider/1").head == "prefilled"
        assert gateway.ask(long, user("first"), tools=[], agent="aider/1").head == "hot"
        assert gateway.ask(system("You are x"), user("first"), tools=[], agent="aider/1").head == "side"


def test_events_wait_no_longer_than_the_server(gateway: Serving) -> None:
    """Events are passed on one by one: the first is here while the last is not yet made."""
    seen: list[str] = []
    body = {"messages": [system(), user("a lot")], "stream": True, "max_tokens": 3000, "ignore_eos": True}
    done = threading.Event()
    with httpx.stream("POST", f"{gateway.url}/v1/chat/completions", json=body, timeout=60) as answer:
        for line in answer.iter_lines():
            seen.append(line)
            if len(seen) == 4:
                busy = gateway.status()["slots"]
                done.set()
                assert any(slot["busy"] for slot in busy)
                break
    assert done.is_set()


# --- days, digests, sessions ---------------------------------------------------------------------------------------


def env_text(place: Path, day: str = "Mon Nov 30 2026") -> str:
    """A system text as OpenCode's: directory, date, instruction file, then more that stays."""
    agents = place / "AGENTS.md"
    said = f"Instructions from: {agents}\n{agents.read_text()}\n" if agents.exists() else ""
    head = f"{RULES}\n<env>\n  Working directory: {place}\n  Today's date: {day}\n</env>\n"
    return f"{head}{said}Skills are for specialized work. {RULES}"


def test_midnight_costs_nothing_when_the_date_is_moved(kind: Path, sample: Repository) -> None:
    with serving("--model", kind, *CONTEXT, "--normalize") as gateway:
        first = gateway.ask(system(env_text(sample.path)), user("first"))
        assert first.headers["x-carbon-moved"] == "date"
        hot = gateway.ask(system(env_text(sample.path, "Tue Dec 01 2026")), user("first"), session="next")
        assert hot.cost < 200, hot.headers
    with serving("--model", kind, *CONTEXT, "--normalize") as gateway:
        later = gateway.ask(system(env_text(sample.path, "Wed Dec 02 2026")), user("first"), session="later")
        assert later.cost < 200, later.headers
    with serving("--model", kind, *CONTEXT) as gateway:
        off = gateway.ask(system(env_text(sample.path, "Thu Dec 03 2026")), user("first"), session="off")
        assert "x-carbon-moved" not in off.headers
        assert off.cost > 1000, "without it, the date stands before the rest of the text and the tools"


def test_a_session_goes_on_over_midnight_and_over_a_restart(agent: Path, sample: Repository) -> None:
    turns = [system(env_text(sample.path)), user("first")]
    with serving("--model", agent, *CONTEXT, "--normalize") as gateway:
        first = gateway.ask(*turns)
        turns += [assistant(first.text), user("second " * 100)]
        second = gateway.ask(*turns)
    turns += [assistant(second.text), user("third")]
    turns[0] = system(env_text(sample.path, "Tue Dec 01 2026"))
    with serving("--model", agent, *CONTEXT, "--normalize") as gateway:
        third = gateway.ask(*turns)
        assert third.cost < 250, (third.headers, "only the new words and a line on the new date")
        turns += [assistant(third.text), user("fourth")]
        fourth = gateway.ask(*turns)
        assert fourth.cost < 100
        assert gateway.status()["lost_heads"] == 0


def test_an_edited_agents_file_rewrites_nothing_in_a_session_and_starts_there_in_the_next(
    agent: Path, sample: Repository
) -> None:
    sample.write("AGENTS.md", "# Rules\n\nUse tabs.\n")
    with serving("--model", agent, *CONTEXT, "--normalize") as gateway:
        turns = [system(env_text(sample.path)), user("first")]
        first = gateway.ask(*turns)
        sample.write("AGENTS.md", "# Rules\n\nUse spaces.\n")
        turns = [system(env_text(sample.path)), user("first"), assistant(first.text), user("second")]
        second = gateway.ask(*turns)
        assert second.cost < 300, second.headers
        text = env_text(sample.path)
        behind = len(text) - text.index("Use spaces") + len(json.dumps(TOOL)) + 700
        new = gateway.ask(system(text), user("first"), session="new")
        assert 500 < new.cost <= behind, "a new session is evaluated from the edit on"


@pytest.fixture
def minded(sample: Repository) -> Repository:
    """A repository with a digest."""
    assert carbon("mind", cwd=sample.path).returncode == 0
    return sample


@pytest.mark.parametrize("normalize", [True, False])
def test_the_digest_is_told_once_and_a_refreshed_one_costs_its_own_tokens(
    kind: Path, minded: Repository, normalize: bool
) -> None:
    flags = ("--normalize",) if normalize else ()
    text = env_text(minded.path)
    with serving("--model", kind, *CONTEXT, *flags) as gateway:
        first = gateway.ask(system(text), user("first"))
        assert "digest" in first.headers["x-carbon-moved"]
        size = len(carbon("mind", "show", cwd=minded.path).stdout)
        minded.write("sample/extra.py", "from sample.core import Engine\n\n\ndef more(engine: Engine) -> None: ...\n")
        assert carbon("mind", cwd=minded.path).returncode == 0
        second = gateway.ask(system(text), user("first"), session="second")
        assert second.cost <= size + 400, (second.headers, size)
        again = gateway.ask(system(text), user("first"), session="third")
        assert again.cost < 200
    with serving("--model", kind, *CONTEXT, "--no-mind", *flags) as gateway:
        without = gateway.ask(system(text), user("first"), session="fourth")
        assert "digest" not in without.headers.get("x-carbon-moved", "")
        assert without.cost < 300, "the stable part is stored for itself"


def test_a_digest_that_is_in_agents_md_is_lifted_and_not_told_twice(agent: Path, minded: Repository) -> None:
    assert carbon("mind", "--write-agents", cwd=minded.path).returncode == 0
    with serving("--model", agent, *CONTEXT) as gateway:
        as_it_comes = gateway.ask(system(env_text(minded.path)), user("first"))
        assert "digest" not in as_it_comes.headers.get("x-carbon-moved", "")
    with serving("--model", agent, *CONTEXT, "--normalize") as gateway:
        first = gateway.ask(system(env_text(minded.path)), user("first"))
        assert first.headers["x-carbon-moved"] == "mind, date"
        size = len(carbon("mind", "show", cwd=minded.path).stdout)
        minded.write("sample/extra.py", "from sample.core import Engine\n\n\ndef more(engine: Engine) -> None: ...\n")
        assert carbon("mind", "--write-agents", cwd=minded.path).returncode == 0
        second = gateway.ask(system(env_text(minded.path)), user("first"), session="second")
        assert second.cost <= size + 600, (second.headers, size)


def test_only_an_agent_in_that_repository_is_told(agent: Path, minded: Repository, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with serving("--model", agent, *CONTEXT) as gateway:
        assert "digest" in gateway.ask(system(env_text(minded.path)), user("x")).headers["x-carbon-moved"]
        elsewhere = gateway.ask(system(env_text(other)), user("x"), session="t")
        assert "x-carbon-moved" not in elsewhere.headers
        nowhere = gateway.ask(system(), user("x"), session="u")
        assert "x-carbon-moved" not in nowhere.headers
    with serving("--model", agent, *CONTEXT, "--repo", minded.path) as gateway:
        assert "digest" in gateway.ask(system(), user("x"), session="v").headers["x-carbon-moved"]
        assert "x-carbon-moved" not in gateway.ask(system(env_text(other)), user("x"), session="w").headers


def test_a_hook_warms_the_heads_when_the_digest_changed(agent: Path, minded: Repository) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(env_text(minded.path)), user("first"))
        before = gateway.status()["tokens"]["evaluated"]
        minded.write("sample/extra.py", "from sample.core import Engine\n\n\ndef more(engine: Engine) -> None: ...\n")
        minded.commit("more")
        assert carbon("hook", "run", "post-commit", cwd=minded.path).returncode == 0
        log = (minded.path / ".carbon" / "refresh.log").read_text()
        assert "warmed 1 heads" in log
        assert gateway.status()["tokens"]["evaluated"] > before
        after = gateway.ask(system(env_text(minded.path)), user("first"), session="next")
        assert after.cost < 100, after.headers
        minded.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
        assert carbon("hook", "run", "post-commit", cwd=minded.path).returncode == 0
        assert (minded.path / ".carbon" / "refresh.log").read_text().count("warmed") == 1


def test_heads_are_warmed_as_of_today(agent: Path, sample: Repository) -> None:
    from datetime import datetime

    now = datetime.now().astimezone()
    today = now.strftime("%a %b %d %Y")
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(env_text(sample.path, "Mon Jan 05 2026")), user("first"))
        (warmed,) = json.loads(carbon("warm", "--client", "opencode", "--mode", "run", "--json").stdout)
        assert warmed["state"] == "extended"
        assert warmed["volatile"] == ["date"]
        assert "--normalize" in carbon("warm", "--client", "opencode").stderr
        assert gateway.ask(system(env_text(sample.path, today)), user("first"), session="t").cost < 64


# --- being started and ended ---------------------------------------------------------------------------------------


def test_killed_it_takes_its_server_along_and_keeps_what_is_stored(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        cold = gateway.ask(system(), user("first"))
        (server,) = children(gateway.process.pid)
        eventually(lambda: gateway.status()["snapshots"]["count"] > 0)
        gateway.process.kill()
        gateway.process.wait()
        eventually(lambda: not Path(f"/proc/{server}").exists() or "Z" in Path(f"/proc/{server}/stat").read_text())
    assert carbon("status").returncode == 5, "the note of a gateway that is gone misleads nobody"
    with serving("--model", agent, *CONTEXT) as gateway:
        again = gateway.ask(system(), user("first"))
        assert (again.cost < 64, again.text) == (True, cold.text)


def test_ctrl_c_ends_it(agent: Path, private_home: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.process.wait(30) == 0
        eventually(lambda: "stopped" in gateway.log)
    assert not (private_home / "cache" / "gateway" / "running.json").exists()


def test_a_session_is_told_by_its_cache_key_and_else_by_its_first_word(agent: Path) -> None:
    with serving("--model", agent, *CONTEXT) as gateway:
        gateway.ask(system(), user("first"), session="", prompt_cache_key="mine")
        gateway.ask(system(), user("other"), session="")
        sessions = [slot["session"] for slot in gateway.status()["slots"]]
        assert sessions[0] == "opencode:mine"
        assert sessions[1].startswith("opencode:")
        gateway.ask(system(), user("other"), assistant("x"), user("more"), session="")
        assert [slot["session"] for slot in gateway.status()["slots"]] == sessions


def test_tools_in_another_order_are_the_same_head(agent: Path) -> None:
    other = json.loads(json.dumps(TOOL).replace('"read"', '"bash"'))
    with serving("--model", agent, *CONTEXT, "--normalize") as gateway:
        gateway.ask(system(), user("first"), tools=[other, TOOL])
        found = gateway.ask(system(), user("first"), tools=[TOOL, other], session="t")
        assert found.headers["x-carbon-moved"] == "tools"
        assert found.cost < 64


def test_without_its_packages_it_says_what_to_install(agent: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; sys.argv[1:] = ['serve', '--port', '0', '--model', sys.argv[1]];"
        "from carbon_mind.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(agent)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "carbon-mind[server]" in done.stderr


def test_who_waits_for_events_is_not_left_in_silence(agent: Path) -> None:
    code = "import sys; from carbon_mind.serve import turn; turn.PING_S = 0.2;from carbon_mind.cli import main; main()"
    env = {"CARBON_N_BATCH": "64", "CARBON_THREADS": "1"}
    with serving("--model", agent, *CONTEXT, env=env, code=code) as gateway:
        answer = gateway.ask(system(RULES * 8), user("x"))
        assert answer.status == 200
        assert answer.raw.startswith(b": evaluating the head, ")
        assert answer.raw.endswith(b"data: [DONE]\n\n")
        assert answer.evaluated < 64
        refused = gateway.ask(system(RULES * 60), user("x"), session="t")
        found = [line for line in refused.raw.splitlines() if b"exceed_context_size_error" in line]
        assert len(found) == 1
        assert found[0].startswith(b"data: ") == (refused.status == 200), "an event where events had begun"
