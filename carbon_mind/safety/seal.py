"""Knowing our own files again: a MAC under a key that only this user has.

`.carbon/` lies in a repository, so its files may have come with an archive or a copied folder: whole, with matching checksums, and
a stranger's. A checksum says that a file is undamaged; only the MAC says that carbon wrote it, for this user. What does not carry it is
made anew, without a word, because that is also what happens when the key is lost or a checkout moves to another machine.
"""

from __future__ import annotations

import contextlib
import hmac
import os
from pathlib import Path

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.files import private_dir, read_regular
from carbon_mind.values import RepoPath

__all__ = ["Seal", "open_seal"]

KEY_FILE = "seal.key"
_KEY_BYTES = 32


class Seal:
    """HMAC-SHA256 under the user's key. `purpose` keeps a MAC of one kind of file from passing for one of another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """The MAC of the parts; each is preceded by its length, so that no other division gives the same."""
        framed = b"".join(b"%d:%b" % (len(part), part) for part in (purpose.encode(), *parts))
        return hmac.digest(self._key, framed, "sha256")

    def fits(self, mac: bytes, purpose: str, *parts: bytes) -> bool:
        """Whether `mac` is that of the parts."""
        return hmac.compare_digest(mac, self.mac(purpose, *parts))


def open_seal(cache: Path, *, make: bool) -> Seal | None:
    """The seal of the user whose cache folder is `cache`; the key is made when it is missing or unfit and `make` is true.

    None when there is no key and none can be made: then nothing that is stored can be believed.
    """
    key = _read(cache)
    if key is None and make:
        with contextlib.suppress(OSError, StorageProblem):
            _make(private_dir(cache) / KEY_FILE)
        key = _read(cache)
    return None if key is None else Seal(key)


def _read(cache: Path) -> bytes | None:
    try:
        status = (cache / KEY_FILE).lstat()
        # Somebody else's key, or one that others could read, would make forgeries pass.
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
            return None
        key = read_regular(cache, RepoPath(KEY_FILE), _KEY_BYTES)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _make(path: Path) -> None:
    """Put a new key there. Of two processes that do this at once, both end up with the key of the one that was first."""
    temporary = path.with_name(f"{path.name}.tmp-{os.urandom(8).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        try:
            os.write(fd, os.urandom(_KEY_BYTES))
            os.fsync(fd)
        finally:
            os.close(fd)
        try:
            os.link(temporary, path)  # unlike a rename, never replaces the key that another process has just put there
        except OSError:
            if _read(path.parent) is None:  # unfit (too short, open to others), or a file system without links
                temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
