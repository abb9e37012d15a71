"""Credentials stay out of everything we write: whole files by name, and what slipped into a line by its looks.

The looks are in `credentials`, imported when the first line asks: compiling its patterns takes 9 ms, and a command that
finds its digest unchanged redacts nothing.
"""

from __future__ import annotations

from carbon_mind.values import RepoPath

__all__ = ["is_sensitive_path", "redact"]

_NAMES = frozenset({".npmrc", ".netrc", "_netrc", ".pypirc", ".htpasswd", "kubeconfig"})
_ENDS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".tfvars", ".tfvars.json")
_STARTS = (".env", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa")
_WORDS = ("credentials", "secret")
# Folders that are kept for nothing else. A folder `secrets` of a program's source is one too often to be among them.
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".secrets", ".credentials", ".kube", ".docker"})


def is_sensitive_path(path: RepoPath) -> bool:
    """Whether a file of this name may hold credentials, in any case; such a file is named and never read.

    There are no exceptions, not even for `.env.example` and `secrets.py`: a stranger chose the name and the content, and
    what a sample file or a program about secrets could tell is worth less than one real key in a prompt.
    """
    *folders, name = path.lower().split("/")
    if name in _NAMES or name.endswith(_ENDS) or name.startswith(_STARTS):
        return True
    return any(word in name for word in _WORDS) or not _FOLDERS.isdisjoint(folders)


def redact(text: str) -> str:
    """`text` with each credential replaced by `[redacted]`; lines, names and everything around it stay.

    Deterministic, idempotent, linear in the length of `text`.
    """
    from carbon_mind.safety import credentials

    return credentials.redact(text)
