"""Text to token ids and back, by a model's own vocabulary. Needs no weights, so a model can be opened for this alone."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


class Vocabulary:
    """The vocabulary of a loaded model, through llama.cpp; `owner` is the model it belongs to."""

    def __init__(self, api: Any, owner: Any) -> None:
        self._api = api
        self._owner = owner
        self.handle = api.llama_model_get_vocab(owner)
        self.size: int = api.llama_vocab_n_tokens(self.handle)

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Token ids; special tokens are parsed, and none is added."""
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 2
        while True:
            buffer = (self._api.llama_token * room)()
            count = self._api.llama_tokenize(self.handle, raw, len(raw), buffer, room, False, True)
            if count >= 0:
                return tuple(buffer[:count])
            room = -count

    def piece(self, token: int, *, special: bool = True) -> bytes:
        """The bytes of a token; those of a special one only if asked for."""
        buffer = ctypes.create_string_buffer(64)
        size = self._api.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, special)
        if size < 0:
            buffer = ctypes.create_string_buffer(-size)
            size = self._api.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, special)
        return buffer.raw[: max(size, 0)]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special ones included. Ids that are not of this vocabulary show as `<id>`."""
        parts = (self.piece(token) if 0 <= token < self.size else f"<{token}>".encode() for token in tokens)
        return b"".join(parts).decode("utf-8", "replace")

    def text_of(self, token: int) -> str:
        """The vocabulary's entry itself; "" for no token."""
        raw = self._api.llama_vocab_get_text(self.handle, token) if token >= 0 else b""
        return (raw or b"").decode("utf-8", "replace")

    def special_texts(self) -> tuple[str, ...]:
        """Texts that tokenize to control tokens, sorted."""
        control = self._api.llama_vocab_is_control
        texts = {self.text_of(token) for token in range(self.size) if control(self.handle, token)}
        return tuple(sorted(text for text in texts if text.strip()))
