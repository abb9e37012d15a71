"""Settings, from the weakest voice to the strongest: defaults < user file < carbon.toml < CARBON_* variables < flags.

The class below is the reference: its fields are the keys, its comments the meaning. `carbon.toml` comes with a repository, so it is a
stranger's: it may set only `REPOSITORY_KEYS`, and never a path. msgspec converts and checks; it loads in a fraction of the time of
pydantic-settings (0.12 s here), which matters for a command that otherwise takes 0.15 s.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from carbon_mind.engine.base import FlashAttention, KvType
from carbon_mind.errors import SettingsProblem

APP = "carbon"
REPOSITORY_FILE = "carbon.toml"
REPOSITORY_KEYS = frozenset(("budget", "enabled", "model"))
HARD_BUDGET = 2000

_Natural = Annotated[int, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that can be set. In TOML by these names, in the environment as CARBON_<NAME>."""

    enabled: bool = True  # false: no digest is made, kept or checked
    engine: Literal["auto", "llama", "server"] = (
        "auto"  # in process, or a prebuilt llama-server; auto: the first that is installed
    )
    model: str | None = None  # registry name or path of a GGUF file; None: the smallest pulled one
    budget: Annotated[int, msgspec.Meta(ge=100, le=HARD_BUDGET)] = 1500  # tokens that the digest may have
    notes: Annotated[int, msgspec.Meta(ge=0, le=400)] = 40  # directories that get a note
    block_chars: Annotated[int, msgspec.Meta(ge=500, le=64_000)] = (
        6000  # characters of the block that goes into a prompt
    )
    n_ctx: _Natural = 0  # context in tokens; 0: the model's own, at most 8,192
    n_batch: Annotated[int, msgspec.Meta(ge=1, le=65536)] = 512  # tokens per evaluation step
    threads: _Natural = 0  # 0: all cores this process may use
    gpu_layers: Annotated[int, msgspec.Meta(ge=-1)] = -1  # -1: as many as fit, on a build with a GPU backend
    type_k: KvType = "f16"  # KV cache, keys
    type_v: KvType = "f16"  # KV cache, values
    flash_attention: FlashAttention = "auto"
    rope_freq_base: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # 0: the model's own
    rope_freq_scale: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # 0: the model's own
    lora: str = ""  # LoRA adapters on top of the model: FILE or FILE:SCALE, separated by commas
    llama_server: str | None = (
        None  # a llama-server binary; None: the prebuilt one, or the first on PATH where that is missing
    )
    slots: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2  # sequences of `carbon serve`: agents that are hot at once
    normalize: bool = False  # `carbon serve` moves dates and the like behind what stays the same
    rescue_tool_calls: Literal["auto", "off"] = "auto"  # `carbon serve` delivers a tool call that a model wrote as text
    inject_mind: bool = True  # `carbon serve` gives the digest to an agent that works in a repository with one
    store_budget_mib: Annotated[int, msgspec.Meta(ge=1)] = 4096  # snapshots on disk, all repositories together
    cache_dir: str | None = None  # snapshots, models, verdicts; None: the system's place for caches

    @property
    def cache(self) -> Path:
        """The user's cache folder of carbon."""
        if self.cache_dir is not None:
            return Path(self.cache_dir).expanduser()
        import platformdirs

        return Path(platformdirs.user_cache_dir(APP, appauthor=False))

    @property
    def snapshots(self) -> Path:
        """Folder of the snapshot store."""
        return self.cache / "snapshots"

    @property
    def models(self) -> Path:
        """Folder of pulled models."""
        return self.cache / "models"


def user_file() -> Path:
    """The user's settings file, whether it exists or not."""
    import platformdirs

    return Path(platformdirs.user_config_dir(APP, appauthor=False)) / "config.toml"


def trust_folder() -> Path:
    """Folder of the user's list of trusted repositories."""
    return user_file().parent / "trust"


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():  # a repository may hold a FIFO of that name, and opening it would wait for ever
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as broken:
        raise SettingsProblem(f"{path} cannot be read: {broken}", hint="correct the file or move it away") from broken


def _repository(root: Path | None) -> dict[str, Any]:
    if root is None or (root / REPOSITORY_FILE).is_symlink():
        return {}
    found = _toml(root / REPOSITORY_FILE)
    if foreign := sorted(found.keys() - REPOSITORY_KEYS):
        raise SettingsProblem(
            f"{REPOSITORY_FILE} may not set {', '.join(foreign)}: it comes with the repository",
            hint=f"allowed there: {', '.join(sorted(REPOSITORY_KEYS))}; put the rest into {user_file()}",
        )
    if found.get("enabled") is True:
        del found[
            "enabled"
        ]  # a repository may ask to be left alone; it does not overrule a user who switched carbon off
    model = found.get("model")
    if isinstance(model, str) and ("/" in model or "\\" in model or model.endswith(".gguf")):
        raise SettingsProblem(
            f"{REPOSITORY_FILE} names a model file; a repository may only name a model of the registry",
            hint="use a name that `carbon models list` shows",
        )
    return found


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    names = {f"CARBON_{field.upper()}": field for field in Settings.__struct_fields__}
    return {field: environ[name] for name, field in names.items() if environ.get(name)}


def load(root: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings for the repository at `root` (None: none). Flags that are None were not given.

    Raises SettingsProblem naming the source and the key.
    """
    merged: dict[str, Any] = {}
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = (
        (str(user_file()), _toml(user_file())),
        (REPOSITORY_FILE, _repository(root)),
        ("the environment (CARBON_*)", _environment(environ)),
        ("the command line", {name: value for name, value in flags.items() if value is not None}),
    )
    settings = Settings()
    for source, layer in layers:
        if not layer:
            continue
        merged |= layer
        try:
            settings = msgspec.convert(merged, Settings, strict=source == REPOSITORY_FILE)
        except msgspec.ValidationError as wrong:
            raise SettingsProblem(
                f"a setting from {source} cannot be used: {wrong}",
                hint="see `carbon settings` for names, values and sources",
            ) from wrong
    return settings
