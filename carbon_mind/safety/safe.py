"""The one door through which text of a repository enters a digest."""

from __future__ import annotations

from carbon_mind.safety.secrets import redact
from carbon_mind.safety.text import clean


def safe(text: str, limit: int | None = None) -> str:
    """Text of the repository as one line that may enter a prompt: credentials removed, control and markers defused."""
    # Redacted before cleaning, where a key's own lines are still lines, and after it, where an invisible character no longer splits it.
    return clean(redact(clean(redact(text))), limit=limit)
