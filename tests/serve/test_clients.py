"""A client's configuration: our entry goes in and comes out, and everything else stays what it was."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from carbon_mind.errors import UsageProblem
from carbon_mind.serve.clients import BACKUP, BEGIN, CLIENTS, NAME, Client, client_of, command_line, install, remove
from tests.cli.test_commands import carbon
from tests.conftest import Repository

JSON = [client for client in CLIENTS.values() if client.name != "codex"]
every = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
every_json = pytest.mark.parametrize("client", JSON, ids=lambda client: client.name)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repository").mkdir()
    return tmp_path / "repository"


def servers(client: Client, file: Path) -> dict[str, Any]:
    text = file.read_text()
    found = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    for key in client.keys:
        found = found[key]
    return dict(found)


def put(client: Client, root: Path, text: str) -> Path:
    file = client.file(root)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@every
def test_an_entry_in_a_file_of_its_own_and_out_again(client: Client, root: Path) -> None:
    file = client.file(root)
    first = install(client, root)
    assert (first.file, first.outcome) == (file, "created")
    assert list(servers(client, file)) == [NAME]
    assert install(client, root).outcome == "unchanged"
    assert remove(client, root).outcome == "removed"
    assert not file.exists()
    assert remove(client, root).outcome == "absent"


def test_each_client_gets_what_it_reads(root: Path) -> None:
    for client in CLIENTS.values():
        install(client, root)
    carbon_path = command_line(CLIENTS["pi"])[0]
    found = {client.name: servers(client, client.file(root))[NAME] for client in CLIENTS.values()}
    assert found == {
        "opencode": {"type": "local", "command": [carbon_path, "mcp", "."], "enabled": True},
        "pi": {"command": carbon_path, "args": ["mcp", "."], "exposure": "direct"},
        "codex": {"command": carbon_path, "args": ["mcp", "."]},
        "claude": {"command": "carbon", "args": ["mcp", "."]},
        "cursor": {"command": "carbon", "args": ["mcp", "${workspaceFolder}"]},
        "vscode": {"type": "stdio", "command": "carbon", "args": ["mcp", "${workspaceFolder}"]},
    }
    assert Path(carbon_path).is_absolute()


@every_json
def test_what_was_there_stays_and_comes_back_byte_for_byte(client: Client, root: Path) -> None:
    key = client.keys[0]
    text = f'{{\n    "theme": "caf\u00e9",\n    "{key}": {{ "other": {{"command": "x"}} }},\n\n    "list": [1, 2]\n}}'
    file = put(client, root, text)
    assert install(client, root).outcome == "updated"
    document = json.loads(file.read_text())
    assert document["theme"] == "caf\u00e9"
    assert list(document[key]) == ["other", NAME]
    assert file.read_text().startswith('{\n    "theme": "caf\u00e9"'), "indented as it was"
    assert file.with_name(file.name + BACKUP).read_text() == text
    assert remove(client, root).outcome == "removed"
    assert file.read_text() == text
    assert not file.with_name(file.name + BACKUP).exists()


@every_json
def test_what_others_changed_since_stays_when_ours_goes(client: Client, root: Path) -> None:
    file = put(client, root, '{"a": 1}')
    install(client, root)
    document = json.loads(file.read_text())
    document["b"] = 2
    file.write_text(json.dumps(document))
    remove(client, root)
    assert json.loads(file.read_text()) == {"a": 1, client.keys[0]: {}, "b": 2}


@every_json
@pytest.mark.parametrize(
    "text", ['{\n  // a comment\n  "a": 1\n}', "[1]", '{"a": ', "\xff", '{"a": 1,}', "[" * 100_000]
)
def test_what_cannot_be_edited_without_loss_is_refused_with_the_lines_to_add(
    client: Client, root: Path, text: str
) -> None:
    file = put(client, root, text)
    before = file.read_bytes()
    for use in (install, remove):
        with pytest.raises(UsageProblem) as caught:
            use(client, root)
        assert str(file) in caught.value.message
        assert '"mcp"' in caught.value.hint
        assert "by hand" in caught.value.hint
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name != "repository"].count(file.name + BACKUP) == 0


@every
def test_an_entry_of_that_name_that_is_not_ours_is_left_alone(client: Client, root: Path) -> None:
    theirs = json.dumps({client.keys[0]: {NAME: {"command": "other", "args": ["serve"]}}})
    text = f'[mcp_servers.{NAME}]\ncommand = "other"\n' if client.name == "codex" else theirs
    file = put(client, root, text)
    with pytest.raises(UsageProblem, match="did not put there"):
        install(client, root)
    assert file.read_text() == text


@every
def test_an_entry_of_an_older_installation_is_replaced(client: Client, root: Path) -> None:
    install(client, root)
    file = client.file(root)
    entry = servers(client, file)[NAME]
    now = json.dumps(entry["command"][0] if isinstance(entry["command"], list) else entry["command"])
    text = file.read_text()
    at = text.rindex(now, 0, text.rindex('"mcp"'))
    file.write_text(text[:at] + '"/old/place/bin/carbon"' + text[at + len(now) :])
    assert install(client, root).outcome == "updated"
    assert "/old/place" not in file.read_text()


@every
def test_a_dry_run_shows_the_change_and_makes_none(client: Client, root: Path) -> None:
    file = client.file(root)
    result = install(client, root, dry_run=True)
    assert result.outcome == "created"
    assert "+" in result.diff
    assert "mcp" in result.diff
    assert not file.exists()
    install(client, root)
    before = file.read_bytes()
    gone = remove(client, root, dry_run=True)
    assert gone.outcome == "removed"
    assert "-" in gone.diff
    assert file.read_bytes() == before


@every
def test_a_link_is_not_written_through(client: Client, root: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("{}")
    file = client.file(root)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)
    with pytest.raises(UsageProblem, match="regular file"):
        install(client, root)
    assert target.read_text() == "{}"
    if file.parent != root and client.project:
        file.unlink()
        file.parent.rmdir()
        file.parent.symlink_to(tmp_path)
        with pytest.raises(UsageProblem, match="is a link"):
            install(client, root)


def test_toml_keeps_comments_and_order(root: Path) -> None:
    client = CLIENTS["codex"]
    text = '# mine\nmodel = "x"  # why\n\n[mcp_servers.other]\ncommand = "y"'
    file = put(client, root, text)
    install(client, root)
    assert file.read_text().startswith(text)
    assert file.read_text().count(BEGIN) == 1
    assert set(servers(client, file)) == {"other", NAME}
    file.write_text(file.read_text() + "\n[later]\nz = 1\n")
    remove(client, root)
    assert file.read_text() == text + "\n\n[later]\nz = 1\n"
    put(client, root, "not = toml = at all")
    with pytest.raises(UsageProblem, match="not valid TOML"):
        install(client, root)


def test_an_unknown_client_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UsageProblem) as caught:
        client_of("emacs")
    assert "opencode, pi, codex, claude, cursor, vscode" in caught.value.hint


def test_the_command_line(sample: Repository) -> None:
    shown = carbon("mcp", "install", "--client", "claude", "--dry-run", cwd=sample.path)
    assert shown.returncode == 0
    assert '+      "command": "carbon"' in shown.stdout
    assert not (sample.path / ".mcp.json").exists()
    done = json.loads(carbon("mcp", "install", "--client", "claude", "--json", cwd=sample.path).stdout)
    assert (done["outcome"], done["file"]) == ("created", str(sample.path / ".mcp.json"))
    assert carbon("mind", "lookup", "sample", cwd=sample.path).stdout.startswith("# sample/"), (
        "what we put there is trusted"
    )
    assert "has the entry already" in carbon("mcp", "install", "--client", "claude", cwd=sample.path).stderr
    assert carbon("mcp", "remove", "--client", "claude", cwd=sample.path).returncode == 0
    assert not (sample.path / ".mcp.json").exists()
    assert carbon("mcp", "install", "--client", "emacs", cwd=sample.path).returncode == 2
