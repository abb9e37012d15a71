"""The configuration of the clients that start `carbon mcp`: one entry in a file of theirs, put in and taken out again.

Where a client has a file for the user and starts servers in the directory that it works in (OpenCode, pi, Codex), the entry goes there
once and serves every repository, with `.` as the root. The others (Claude Code, Cursor, VS Code) read a file in the project, which may be
committed: the entry names `carbon` and no path of this machine.

A file that was there is kept beside the new one; taking the entry out gives its bytes back when nothing else changed since. What cannot be
edited without losing something (comments in JSON, a link, another entry of our name) is refused, with the lines to put in by hand.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from carbon_mind.errors import StorageProblem, UsageProblem
from carbon_mind.safety.files import atomic_write, read_regular
from carbon_mind.values import RepoPath

NAME = "carbon"
BACKUP = ".carbon-backup"
BEGIN, END = "# carbon-mind:begin", "# carbon-mind:end"
MAX_BYTES = 8 << 20

Outcome = Literal["created", "updated", "unchanged", "removed", "absent"]


@dataclass(frozen=True, slots=True)
class Client:
    """Where one client looks, and what it wants to read there."""

    name: str
    title: str
    file: Callable[[Path], Path]  # root -> file
    keys: tuple[str, ...]  # the object that holds the servers
    entry: Callable[[list[str]], dict[str, Any]]  # command line -> entry
    project: bool  # the file lies in the project
    root: str = "."


@dataclass(frozen=True, slots=True)
class Result:
    """What was done to which file, or would be: `diff` is unified, "" where nothing changes."""

    file: Path
    outcome: Outcome
    diff: str


def _config() -> Path:
    """The folder of a user's settings as clients from npm look for it, on every system."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _plain(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "opencode",
            "OpenCode",
            lambda _root: _config() / "opencode" / "opencode.json",
            ("mcp",),
            lambda command: {"type": "local", "command": command, "enabled": True},
            project=False,
        ),
        Client(
            "pi",
            "pi",
            lambda _root: Path.home() / ".pi" / "agent" / "mcp.json",
            ("mcpServers",),
            lambda command: {**_plain(command), "exposure": "direct"},
            project=False,
        ),
        Client(
            "codex",
            "Codex",
            lambda _root: Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml",
            ("mcp_servers",),
            _plain,
            project=False,
        ),
        Client("claude", "Claude Code", lambda root: root / ".mcp.json", ("mcpServers",), _plain, project=True),
        Client(
            "cursor",
            "Cursor",
            lambda root: root / ".cursor" / "mcp.json",
            ("mcpServers",),
            _plain,
            project=True,
            root="${workspaceFolder}",
        ),
        Client(
            "vscode",
            "VS Code",
            lambda root: root / ".vscode" / "mcp.json",
            ("servers",),
            lambda command: {"type": "stdio", **_plain(command)},
            project=True,
            root="${workspaceFolder}",
        ),
    )
}


def client_of(name: str) -> Client:
    """The client of that name. Raises UsageProblem."""
    if name not in CLIENTS:
        raise UsageProblem(f"{name!r} is not a client that carbon knows", hint=f"known are: {', '.join(CLIENTS)}")
    return CLIENTS[name]


def command_line(client: Client) -> list[str]:
    """What the client is told to start."""
    if client.project:
        return ["carbon", "mcp", client.root]
    found = shutil.which("carbon", path=str(Path(sys.executable).parent)) or shutil.which("carbon")
    return [*([found] if found else [sys.executable, "-m", "carbon_mind"]), "mcp", client.root]


# --- in and out ---------------------------------------------------------------------------------------------------


def install(client: Client, root: Path, *, dry_run: bool = False) -> Result:
    """Put the entry in. Raises UsageProblem where that would lose something, and StorageProblem."""
    file = client.file(root)
    before = _read(client, file)
    after = _with_entry(client, file, before)
    if after == before:
        return Result(file, "unchanged", "")
    if not dry_run:
        _make_folder(client, file)
        if before is not None:
            atomic_write(_backup(file), before, mode=0o600)
        atomic_write(file, after, mode=None if before is not None else 0o600 if not client.project else 0o644)
    return Result(file, "updated" if before is not None else "created", _diff(file, before, after))


def remove(client: Client, root: Path, *, dry_run: bool = False) -> Result:
    """Take the entry out; the bytes from before it come back when nothing else changed. Raises as `install` does."""
    file = client.file(root)
    now = _read(client, file)
    if now is None:
        return Result(file, "absent", "")
    before = _read(client, _backup(file))
    if now == _with_entry(client, file, None):
        after: bytes | None = None  # the file is ours alone
    elif before is not None and now == _with_entry(client, file, before):
        after = before
    else:
        after = _without_entry(client, file, now)
    if after == now:
        return Result(file, "absent", "")
    if not dry_run:
        if after is None:
            file.unlink()
        else:
            atomic_write(file, after)
        _backup(file).unlink(missing_ok=True)
    return Result(file, "removed", _diff(file, now, after or b""))


def _backup(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)


def _make_folder(client: Client, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o755 if client.project else 0o700)
    except OSError as refused:
        raise StorageProblem(
            f"{file.parent} cannot be made: {refused.strerror}", hint="make the folder by hand, then run this again"
        ) from refused


def _read(client: Client, file: Path) -> bytes | None:
    """The file's bytes, None where there is none. Raises UsageProblem for what is no regular file."""
    if client.project and file.parent.is_symlink():
        raise _by_hand(client, file.parent, "is a link")
    try:
        return read_regular(file.parent, RepoPath(file.name), MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as refused:
        raise _by_hand(client, file, f"cannot be read as a regular file: {refused.strerror}") from refused


def _by_hand(client: Client, file: Path, why: str) -> UsageProblem:
    entry = _toml(client) if file.suffix == ".toml" else json.dumps(_nested(client))
    return UsageProblem(f"{file} {why}", hint=f"nothing was changed; put this in by hand: {entry.strip()}")


def _nested(client: Client) -> dict[str, Any]:
    document: dict[str, Any] = {NAME: client.entry(command_line(client))}
    for key in reversed(client.keys):
        document = {key: document}
    return document


def _diff(file: Path, before: bytes | None, after: bytes) -> str:
    old, new = ((data or b"").decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after))
    return "".join(
        line if line.endswith("\n") else f"{line}\n" for line in difflib.unified_diff(old, new, str(file), str(file))
    )


# --- JSON and TOML -------------------------------------------------------------------------------------------------


def _with_entry(client: Client, file: Path, data: bytes | None) -> bytes:
    if file.suffix == ".toml":
        return _with_block(client, file, data)
    document = _parsed(client, file, data)
    servers = _servers(client, file, document)
    wanted = client.entry(command_line(client))
    if NAME in servers and not _ours(servers[NAME]):
        raise _by_hand(client, file, f"has a server {NAME!r} that carbon did not put there")
    if servers.get(NAME) == wanted and data is not None:
        return data
    servers[NAME] = wanted
    return _written(document, data)


def _without_entry(client: Client, file: Path, data: bytes) -> bytes:
    if file.suffix == ".toml":
        return _BLOCK.sub("", data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    document = _parsed(client, file, data)
    servers = _servers(client, file, document)
    if NAME not in servers or not _ours(servers[NAME]):
        return data
    del servers[NAME]
    return _written(document, data)


def _ours(entry: object) -> bool:
    """Whether an entry starts `carbon mcp`, wherever carbon was installed then."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args", [])
    words = [
        *(command if isinstance(command, list) else [command]),
        *(arguments if isinstance(arguments, list) else []),
    ]
    texts = [word for word in words if isinstance(word, str)]
    return "mcp" in texts and any("carbon" in word for word in texts[: texts.index("mcp")])


def _parsed(client: Client, file: Path, data: bytes | None) -> dict[str, Any]:
    if data is None or not data.strip():
        return {}
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as odd:
        raise _by_hand(client, file, f"is not plain JSON ({odd}), comments would be lost") from odd
    if not isinstance(document, dict):
        raise _by_hand(client, file, "is JSON, but not an object")
    return document


def _servers(client: Client, file: Path, document: dict[str, Any]) -> dict[str, Any]:
    found = document
    for key in client.keys:
        found = found.setdefault(key, {})
        if not isinstance(found, dict):
            raise _by_hand(client, file, f"has something else than an object under {key!r}")
    return found


def _written(document: dict[str, Any], like: bytes | None) -> bytes:
    """The document, indented as it was before."""
    indent = re.search(rb"^\{\r?\n([ \t]+)\"", like or b"")
    space = indent[1].decode() if indent else "  "
    return json.dumps(document, indent=space, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


_BLOCK = re.compile(rf"\n?{re.escape(BEGIN)}\n.*?{re.escape(END)}\n?", re.DOTALL)


def _toml(client: Client) -> str:
    entry = client.entry(command_line(client))
    values = "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())  # JSON's strings are TOML's
    return f"{BEGIN}\n[{'.'.join(client.keys)}.{NAME}]\n{values}\n{END}\n"


def _with_block(client: Client, file: Path, data: bytes | None) -> bytes:
    text = (data or b"").decode("utf-8", "surrogateescape")
    rest = _BLOCK.sub("", text)
    try:
        found: Any = tomllib.loads(rest)
    except (ValueError, RecursionError) as odd:
        raise _by_hand(client, file, f"is not valid TOML ({odd})") from odd
    for key in client.keys:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    if isinstance(found, dict) and NAME in found:
        raise _by_hand(client, file, f"has a server {NAME!r} that carbon did not put there")
    gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
    return f"{rest}{gap}{_toml(client)}".encode("utf-8", "surrogateescape")
