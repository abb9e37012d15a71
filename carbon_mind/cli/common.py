"""What several commands begin and end with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from carbon_mind import settings
from carbon_mind.cli import console
from carbon_mind.repo.scan import Place, locate
from carbon_mind.settings import Settings


def place_and_settings(where: Path, **flags: Any) -> tuple[Place, Settings]:
    """The repository at `where` and the settings for it; git is asked once. Raises CarbonError."""
    place = locate(where)
    return place, settings.load(place.root, flags)


def settings_only(**flags: Any) -> Settings:
    """The settings where no repository has a voice."""
    return settings.load(None, flags)


def print_json(value: Any) -> None:
    """A value as JSON on stdout."""
    import msgspec

    console.data(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
