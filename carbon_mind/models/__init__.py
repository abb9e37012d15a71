"""Models: which ones there are, bringing them here, and finding, checking and identifying their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carbon_mind.models.find import parts, resolve
from carbon_mind.models.gguf_header import GgufInfo, check_header
from carbon_mind.models.hashing import model_sha256
from carbon_mind.models.record import pulled
from carbon_mind.models.registry import Entry, Part, Source, load_registry

if TYPE_CHECKING:
    from carbon_mind.models.download import pull
    from carbon_mind.models.transfer import Progress, fetch

__all__ = [
    "Entry",
    "GgufInfo",
    "Part",
    "Progress",
    "Source",
    "check_header",
    "fetch",
    "load_registry",
    "model_sha256",
    "parts",
    "pull",
    "pulled",
    "resolve",
]


def __getattr__(name: str) -> Any:
    """Downloading brings HTTP, zip and subprocesses with it, and most commands never download."""
    if name == "pull":
        from carbon_mind.models.download import pull

        return pull
    if name in ("Progress", "fetch"):
        from carbon_mind.models import transfer

        return getattr(transfer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
