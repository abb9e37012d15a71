"""The narrow door to llama.cpp. Everything above speaks of tokens, state bytes and counts; nothing above knows an API.

An engine holds one sequence. `held` are the tokens whose state it has; `prefill` appends; `save` and `load` move the state out and
in, as a whole or layer by layer. Every token that goes through the network is counted in `evaluated`, which is what proves a restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from carbon_mind.errors import EngineProblem, PrefixTooLong
from carbon_mind.values import Identity

Progress = Callable[[int, int], None]
"""Called as progress(done, total) in tokens."""

KvType = Literal["f16", "q8_0", "q4_0", "f32"]
FlashAttention = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter on top of the model; the order in which several are given counts."""

    path: Path
    sha256: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How to open a model. Zero means: let the engine decide from the model and the machine."""

    model: Path
    n_ctx: int = 0  # tokens; 0: the model's training context, at most 8,192
    n_batch: int = 512  # tokens per decode call
    threads: int = 0
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attention: FlashAttention = "auto"
    gpu_layers: int = -1  # -1: all that fit, on a build with a GPU backend
    rope_freq_base: float = 0.0
    rope_freq_scale: float = 0.0
    lora: tuple[Adapter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an opened engine is, for people and for the prefix."""

    description: str  # e.g. "llama 135M Q4_1"
    n_ctx: int  # tokens that the sequence can hold
    chat_template: str | None  # Jinja source from the model; None when it has none
    bos_token: str
    eos_token: str
    special_tokens: tuple[str, ...] = field(repr=False)  # texts that tokenize to control tokens
    rollback: bool  # whether a tail of the sequence may be dropped (dense attention only)
    layers: bool = True  # whether a state can be saved and loaded in layers; else it is whole
    files: Path | None = (
        None  # private folder in which a state to load may be put as a file; None: it is handed over as bytes
    )


@dataclass(frozen=True, slots=True)
class State:
    """The state after exactly `tokens`, of which `data` (opaque) has the positions from `start` on.

    After a load the engine must report `pos_max`, and no later `pos_min`: a sliding window may have kept more when it was loaded in
    layers, which its mask hides.
    """

    tokens: tuple[int, ...]
    data: bytes | bytearray | memoryview = field(repr=False)  # empty where it is in a file
    pos_min: int
    pos_max: int
    start: int = 0
    file: Path | None = None  # in `EngineInfo.files`; `load` removes it


@dataclass(frozen=True, slots=True)
class Piece:
    """One generated token and the text that became certain with it ("" inside a multi-byte character)."""

    token: int
    text: str


class Engine(Protocol):
    """See the module's docstring. Every method raises EngineProblem for what llama.cpp refuses."""

    @property
    def info(self) -> EngineInfo:
        """Facts about the opened model."""

    @property
    def held(self) -> tuple[int, ...]:
        """Tokens whose state the sequence holds now."""

    @property
    def evaluated(self) -> int:
        """Tokens that went through the network since the engine was opened."""

    def fingerprint(self, model_sha256: str) -> Identity:
        """Everything that decides whether a stored state may be used here."""

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Exact token ids of a rendered prompt: special tokens are parsed, BOS is not added (the template writes it)."""

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special ones included, for people."""

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        """Append `tokens` to the sequence; returns how many were evaluated. Raises PrefixTooLong."""

    def truncate(self, length: int) -> bool:
        """Keep the first `length` tokens only; False (and nothing changed) where the architecture cannot."""

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special ones spelled out; those of a character may be spread over several tokens."""

    def save(self, start: int = 0) -> State:
        """The state after `held`, with the positions from `start` on."""

    def load(self, state: State) -> None:
        """Replace the sequence by `state`, or append it where it starts behind what is held: its tokens must begin with those.

        The state must have been verified. On failure the sequence is empty.
        """

    def generate(self, max_tokens: int, grammar: str | None = None) -> Iterator[Piece]:
        """Greedy continuation of `held`, until an end-of-generation token or `max_tokens`; with a GBNF `grammar` (rule `root`), only
        what it allows. At least one token must have been evaluated since the last load."""

    def logits(self) -> Sequence[float]:
        """Scores of the next token, one per vocabulary entry, after the last evaluated token."""

    def reset(self) -> None:
        """Empty the sequence."""

    def close(self) -> None:
        """Free the model; the engine cannot be used afterwards."""


def require_room(tokens: int, room: int, n_ctx: int) -> None:
    """Raise PrefixTooLong unless a sequence of so many tokens fits into `room`, which may be less than the context."""
    if tokens > room:
        raise PrefixTooLong(
            f"{tokens} tokens do not fit into the context of {n_ctx}",
            hint="use a larger --ctx (up to the model's training context) or a smaller --budget",
        )


def require_scores(fresh: bool) -> None:
    """Raise EngineProblem where no token was evaluated since a state was loaded: a state holds no scores."""
    if not fresh:
        raise EngineProblem("no token was evaluated since the state was restored: there is nothing to sample from")
