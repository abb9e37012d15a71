"""An engine without a model: deterministic, instant, and as strict as the real one.

For tests, for examples and for trying the pipeline on a machine without llama.cpp. A token is a byte (or one of three ChatML
special tokens), the state after some tokens is a running hash, and the "answer" is drawn from that hash. So a state that was
restored for the wrong tokens gives another answer, as it would with a model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from carbon_mind.engine.base import EngineInfo, Piece, Progress, State, require_room, require_scores
from carbon_mind.errors import EngineProblem
from carbon_mind.values import Identity

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_MAGIC = b"FAKE"
_WORDS = ("ok", "yes", "no", "see", "the", "file", "test", "main", "run", "build")


class FakeEngine:
    """See the module's docstring; see `Engine` for the methods. `rollback` imitates a dense or a recurrent model."""

    def __init__(self, *, n_ctx: int = 8192, rollback: bool = True, n_batch: int = 512) -> None:
        self._info = EngineInfo(
            description="fake",
            n_ctx=n_ctx,
            chat_template=TEMPLATE,
            bos_token=SPECIAL[2],
            eos_token=SPECIAL[1],
            special_tokens=SPECIAL,
            rollback=rollback,
        )
        self._n_batch = n_batch
        self._held: list[int] = []
        self._evaluated = 0
        self._fresh_logits = False

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def held(self) -> tuple[int, ...]:
        return tuple(self._held)

    @property
    def evaluated(self) -> int:
        return self._evaluated

    def fingerprint(self, model_sha256: str) -> Identity:
        return Identity("fake 1", "0" * 64, model_sha256, (("n_ctx", str(self._info.n_ctx)),))

    def tokenize(self, text: str) -> tuple[int, ...]:
        tokens: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text):
            tokens.extend([256 + SPECIAL.index(part)] if part in SPECIAL else part.encode("utf-8", "replace"))
        return tuple(tokens)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        return SPECIAL[token - 256].encode() if token > 255 else bytes((token,))

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        require_room(len(self._held) + len(tokens), self._info.n_ctx, self._info.n_ctx)
        for start in range(0, len(tokens), self._n_batch):
            part = tokens[start : start + self._n_batch]
            self._held.extend(part)
            self._evaluated += len(part)
            self._fresh_logits = True
            if progress is not None:
                progress(start + len(part), len(tokens))
        return len(tokens)

    def truncate(self, length: int) -> bool:
        if length == len(self._held):
            return True
        if not self._info.rollback or length > len(self._held):
            return False
        del self._held[length:]
        self._fresh_logits = False
        return True

    def save(self, start: int = 0) -> State:
        if not start < len(self._held):
            raise EngineProblem(f"there is no state to save from position {start} on")
        data = _MAGIC + b"".join(token.to_bytes(2, "little") for token in self._held[start:])
        last = len(self._held) - 1
        return State(self.held, data, 0 if self._info.rollback else last, last, start)

    def load(self, state: State) -> None:
        held = self._held if state.start else []
        fits = len(held) == state.start
        self._held = []
        self._fresh_logits = False
        data = bytes(state.data)
        tokens = held + [int.from_bytes(data[i : i + 2], "little") for i in range(len(_MAGIC), len(data), 2)]
        if not data.startswith(_MAGIC) or not fits or tokens != list(state.tokens):
            raise EngineProblem("the state is not one of this engine, or not one that begins here")
        self._held = tokens

    def _seed(self) -> bytes:
        require_scores(self._fresh_logits)
        return hashlib.sha256(repr(self._held).encode()).digest()

    def generate(self, max_tokens: int, grammar: str | None = None) -> Iterator[Piece]:
        if grammar is not None:
            raise EngineProblem("the fake engine knows no grammars")
        for _ in range(max_tokens):
            seed = self._seed()
            if seed[0] < 16 or len(self._held) == self._info.n_ctx:
                return
            word = _WORDS[seed[1] % len(_WORDS)] + " "
            yield Piece(seed[1], word)
            self.prefill((seed[1],))

    def logits(self) -> Sequence[float]:
        return tuple(byte / 255 for byte in self._seed())

    def reset(self) -> None:
        self._held.clear()
        self._fresh_logits = False

    def close(self) -> None:
        self.reset()
