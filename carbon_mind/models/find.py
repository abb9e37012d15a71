"""What the user calls a model -> the file that llama.cpp opens."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from carbon_mind.errors import ModelDamaged, NoModel
from carbon_mind.models.record import pulled
from carbon_mind.models.registry import Entry, load_registry

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["parts", "resolve"]

# llama.cpp's naming of a model that was split: llama_split_path in include/llama.h
_SPLIT = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_PULL_FIRST = "smollm2-135m"


def resolve(
    name_or_path: str | None,
    folder: Path,
    default: str | None,
    *,
    registry: Mapping[str, Entry] | None = None,
) -> Path:
    """The model's file, the first one of a split model.

    `name_or_path` is a name of the `registry` (None: `load_registry()`) whose file was pulled into `folder`, or a path:
    what has a separator in it or ends in `.gguf` is looked up as a path first. None stands for `default`, and None
    there for the smallest model that was pulled. Nothing is downloaded and no weights are read.

    Raises NoModel, with the command that helps, and ModelDamaged when the path is a directory or parts are missing.
    """
    known = load_registry() if registry is None else registry
    asked = name_or_path or default
    if not asked:
        return _smallest(known, folder)
    if _looks_like_path(asked):
        path = _existing(asked)
        if path is not None:
            return parts(path)[0]
        by_file = {entry.file: entry for entry in known.values()}
        if asked not in by_file:
            raise NoModel(f"There is no file {asked}.", hint=f"Check the path, or name a model: {', '.join(known)}.")
        return _pulled(by_file[asked], folder)
    if asked in known:
        return _pulled(known[asked], folder)
    hint = f"Known models: {', '.join(known)}. Pull one with: carbon models pull {_suggestion(known)}"
    if _existing(asked) is not None:
        hint = f"To use the file of that name, write ./{asked}"
    raise NoModel(f"There is no model {asked!r} in the registry.", hint=hint)


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.lower().endswith(".gguf")


def _existing(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        path.stat()
    except (OSError, ValueError, RuntimeError):  # also: too long, a NUL in it, no such user
        return None
    return path


def _pulled(entry: Entry, folder: Path) -> Path:
    path = pulled(entry, folder)
    if path is None:
        raise NoModel(f"The model {entry.name} is not pulled yet.", hint=f"Pull it: carbon models pull {entry.name}")
    return path


def _smallest(known: Mapping[str, Entry], folder: Path) -> Path:
    found = [(path.stat().st_size, path.name, path) for e in known.values() if (path := pulled(e, folder)) is not None]
    if not found:
        raise NoModel(
            "No model was named, and none is pulled.",
            hint=f"Pull one: carbon models pull {_suggestion(known)}",
        )
    return min(found)[2]


def _suggestion(known: Mapping[str, Entry]) -> str:
    return _PULL_FIRST if _PULL_FIRST in known else next(iter(known), "NAME")


def parts(path: Path) -> tuple[Path, ...]:
    """All files of the model that `path` belongs to, in order; `path` alone when it is not one of several.

    Raises ModelDamaged when `path` is a directory or a part is missing.
    """
    if path.is_dir():
        raise ModelDamaged(f"{path} is a directory.", hint="Give the path of the .gguf file in it.")
    match = _SPLIT.fullmatch(path.name)
    if match is None:
        return (path,)
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count:
        raise ModelDamaged(f"{path.name} cannot be a part of {count}.", hint="Give the file its original name back.")
    names = (f"{match['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1))
    files = []
    for name in names:  # stops at the first missing one, whatever number the file name claims
        file = path.with_name(name)
        if not file.is_file():
            raise ModelDamaged(
                f"The model {path.name} has {count} parts, and {file.name} is missing.",
                hint=f"Get that file, and put it beside {path.name}.",
            )
        files.append(file)
    return tuple(files)
