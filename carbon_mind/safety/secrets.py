"""Credentials stay out of everything we write: whole files by name, and what slipped into a line by its looks.

The looks are in `credentials`, imported when the first line asks: compiling its patterns takes 5 ms, and a command that
finds its digest unchanged redacts nothing.
"""

from __future__ import annotations

from carbon_mind.values import RepoPath

__all__ = ["is_sensitive_path", "redact"]

_SHOWN = frozenset({".env.example", ".env.sample", ".env.template"})
_SENSITIVE_NAMES = frozenset({".npmrc", ".netrc", "_netrc", ".pypirc", ".htpasswd", "kubeconfig"})
_SENSITIVE_ENDS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".tfvars", ".tfvars.json")
_SENSITIVE_STARTS = (".env", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa")
_SENSITIVE_WORDS = ("credentials", "secret")
_CODE_SUFFIXES = """
bash bat c cc clj cljs cmake cpp cs css cxx dart ex exs fs go gradle graphql groovy h hh hpp hrl erl hs html
java jl js jsx kt kts less lua m mjs cjs ml mli mm mts nim nix php pl pm proto ps1 py pyi pyx r rb rs scala
scss sh sol sql svelte swift tf ts tsx v vue vb zig zsh
"""
_CODE = frozenset(_CODE_SUFFIXES.split())


def is_sensitive_path(path: RepoPath) -> bool:
    """Whether a file of this name usually holds credentials; only the name counts, in any case.

    `secrets.py` and `credentials.go` are programs about secrets, not secrets: `*secret*` and `*credentials*` do not
    apply to source code.
    """
    name = path.rpartition("/")[2].lower()
    if name in _SHOWN:
        return False
    if name in _SENSITIVE_NAMES or name.endswith(_SENSITIVE_ENDS) or name.startswith(_SENSITIVE_STARTS):
        return True
    return any(word in name for word in _SENSITIVE_WORDS) and name.rpartition(".")[2] not in _CODE


def redact(text: str) -> str:
    """`text` with each credential replaced by `[redacted]`; lines, names and everything around it stay.

    Deterministic, idempotent, linear in the length of `text`.
    """
    from carbon_mind.safety import credentials

    return credentials.redact(text)
