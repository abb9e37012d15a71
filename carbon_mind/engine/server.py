"""A llama-server over HTTP as an engine: one of its slots is the sequence.

Everything goes through the server's own endpoints (`/tokenize`, `/completion` with token ids and `n_predict: 0`, `/slots/N?action=`), and
its own counts tell what was evaluated. A state is a slot file. The server checks little of what it restores and dies of a file that was
cut, so bytes reach its folder only from a `State`, which has been verified, and are gone again right after.

What HTTP does not give: scores, layers (a slot file is whole), and the token texts of the vocabulary.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from carbon_mind.engine.base import EngineInfo, Piece, Progress, State, require_room, require_scores
from carbon_mind.engine.llama import environment
from carbon_mind.engine.serving import Running
from carbon_mind.errors import EngineProblem
from carbon_mind.values import Identity

PATIENCE_S = 3600.0
"""Seconds that one request may take: a prefill on a small CPU is minutes."""
_MARKUP = re.compile(r"<[^<>\s'\"]{1,64}>|\[/?[A-Z_]{2,24}\]")


class ServerEngine:
    """One slot of a llama-server. See `Engine`. `rollback` says whether the model can drop tokens (dense attention)."""

    def __init__(
        self,
        running: Running,
        *,
        slot: int = 0,
        rollback: bool = False,
        n_batch: int = 512,
        owned: contextlib.ExitStack | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Ask the server what it is; `owned` is closed with the engine, `headers` go with each request. Raises EngineProblem.

        Where the folder of its slot files cannot be seen, nothing can be saved or loaded.
        """
        self._owned = owned or contextlib.ExitStack()
        self._running = running
        self._slot = slot
        self._n_batch = n_batch
        timeout = httpx.Timeout(PATIENCE_S, connect=10)
        self._client = httpx.Client(
            base_url=running.url,
            timeout=timeout,
            headers=dict(headers or {}),
            limits=httpx.Limits(
                max_keepalive_connections=0
            ),  # the server closes an idle one, maybe just when it is used
            trust_env=False,
        )
        props = self._get("/props")
        self._props = props
        self._held: tuple[int, ...] = ()
        self._evaluated = 0
        self._fresh_logits = False
        self._pieces: dict[int, bytes] = {}
        self._info = EngineInfo(
            description=str(props.get("model_ftype", "")),
            n_ctx=props["default_generation_settings"]["n_ctx"],
            chat_template=props.get("chat_template") or None,
            bos_token=props.get("bos_token", ""),
            eos_token=props.get("eos_token", ""),
            special_tokens=self._specials(props),
            rollback=rollback,
            layers=False,
            files=running.slots,
        )

    def _specials(self, props: Any) -> tuple[str, ...]:
        """Control tokens as far as they can be told: those at the ends, and what the template writes that is one token."""
        written = set(_MARKUP.findall(props.get("chat_template") or ""))
        found = {text for text in written if len(self.tokenize(text)) == 1}
        return tuple(sorted((found | {props.get("bos_token", ""), props.get("eos_token", "")}) - {""}))

    # --- HTTP ---

    def _get(self, path: str) -> Any:
        return self._answer(self._ask("GET", path, None))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._answer(self._ask("POST", path, body))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return self._client.request(method, path, json=body)
        except (
            httpx.HTTPError,
            RuntimeError,
        ) as broken:  # RuntimeError: closed meanwhile, because its server had ended
            raise EngineProblem(
                f"llama-server at {self._running.url} does not answer: {_told(broken)}",
                hint="look whether it still runs; `carbon doctor` checks the engine",
            ) from broken

    def _answer(self, response: httpx.Response) -> Any:
        if response.status_code != 200:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                raise EngineProblem(f"llama-server refused: {response.json()['error']['message']}")
            raise EngineProblem(f"llama-server refused: HTTP status {response.status_code}")
        return response.json()

    # --- Engine ---

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def held(self) -> tuple[int, ...]:
        return self._held

    @property
    def evaluated(self) -> int:
        return self._evaluated

    def fingerprint(self, model_sha256: str) -> Identity:
        """The server's build is told by a hash of its code: the prebuilt one calls itself "unknown"."""
        context = {
            "n_ctx": self._info.n_ctx,
            "slots": self._props.get("total_slots"),
            "over": "http",
            **self._running.context,
        }
        return Identity(
            engine=self._running.engine,
            build=self._running.build,
            model=model_sha256,
            context=tuple(sorted((name, str(value)) for name, value in context.items())),
            environment=environment(),
        )

    def tokenize(self, text: str) -> tuple[int, ...]:
        body = {"content": text, "add_special": False, "parse_special": True}
        return tuple(self._post("/tokenize", body)["tokens"])

    def detokenize(self, tokens: Sequence[int]) -> str:
        return str(self._post("/detokenize", {"tokens": list(tokens)})["content"])

    def piece(self, token: int) -> bytes:
        """The text of one token; a byte that is no character by itself is not told apart."""
        if token not in self._pieces:
            self._pieces[token] = self.detokenize((token,)).encode("utf-8", "replace")
        return self._pieces[token]

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        # The server keeps room for a token.
        require_room(len(self._held) + len(tokens), self._info.n_ctx - 1, self._info.n_ctx)
        before = self._evaluated
        if progress is not None:
            progress(0, len(tokens))
        for start in range(0, len(tokens), self._n_batch):
            part = (*self._held, *tokens[start : start + self._n_batch])
            self._count(self._post("/completion", self._request(part, 0)))
            self._held = part
            if progress is not None:
                progress(min(start + self._n_batch, len(tokens)), len(tokens))
        self._fresh_logits = bool(tokens) or self._fresh_logits
        return self._evaluated - before

    def _request(self, prompt: Sequence[int], n_predict: int) -> dict[str, Any]:
        return {
            "prompt": list(prompt),
            "n_predict": n_predict,
            "id_slot": self._slot,
            "cache_prompt": True,
            "temperature": 0.0,
        }

    def _count(self, answer: Any) -> None:
        self._evaluated += int(answer["timings"]["prompt_n"])

    def assume(self, tokens: tuple[int, ...]) -> None:
        """Take over what the slot holds from somebody who knows: a request went to it past this engine."""
        self._held = tokens
        self._fresh_logits = False

    def truncate(self, length: int) -> bool:
        if length == len(self._held):
            return True
        if not self._info.rollback or length > len(self._held):
            return False
        self._held = self._held[:length]  # the server drops the rest when it sees what comes next
        self._fresh_logits = False
        return True

    def save(self, start: int = 0) -> State:
        if start or not self._held:
            raise EngineProblem("over HTTP a state is saved as a whole, and there must be one")
        name = f"{os.urandom(16).hex()}.slot"
        path = self._folder() / name
        try:
            done = self._post(f"/slots/{self._slot}?action=save", {"filename": name})
            if done["n_saved"] != len(self._held):
                raise EngineProblem(f"llama-server saved {done['n_saved']} tokens of {len(self._held)}")
            data = path.read_bytes()
        finally:
            path.unlink(missing_ok=True)
        return State(self._held, data, 0, len(self._held) - 1)

    def load(self, state: State) -> None:
        self.reset()
        if state.start:
            raise EngineProblem("over HTTP a state is restored as a whole, not in layers")
        path = state.file or self._folder() / f"{os.urandom(16).hex()}.slot"
        try:
            if state.file is None:
                # Not synchronised: it lives for a moment, and whoever reads it is told when it is there.
                path.write_bytes(state.data)
            self.restore_file(path.name, state.tokens)
        finally:
            path.unlink(missing_ok=True)

    def restore_file(self, name: str, tokens: tuple[int, ...]) -> None:
        """Restore a slot file that lies in the server's folder and stays there; who calls answers for what is in it."""
        done = self._post(f"/slots/{self._slot}?action=restore", {"filename": name})
        if done["n_restored"] != len(tokens):
            self.reset()
            raise EngineProblem(f"llama-server restored {done['n_restored']} tokens, saved were {len(tokens)}")
        self._held = tokens
        self._fresh_logits = False

    def generate(self, max_tokens: int, grammar: str | None = None) -> Iterator[Piece]:
        require_scores(self._fresh_logits)
        body = {**self._request(self._held, max_tokens), "stream": True, "return_tokens": True}
        if grammar is not None:
            body["grammar"] = grammar
        try:
            with self._client.stream("POST", "/completion", json=body) as response:
                if response.status_code != 200:
                    response.read()
                    self._answer(response)
                yield from self._pieces_of(response)
        except httpx.HTTPError as broken:
            raise EngineProblem(f"llama-server broke off its answer: {_told(broken)}") from broken

    def _pieces_of(self, response: httpx.Response) -> Iterator[Piece]:
        for line in response.iter_lines():
            if not line.startswith("data: "):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if chunk.get("stop"):
                self._count(chunk)
                return
            tokens = chunk.get("tokens") or []
            self._held += tuple(tokens)
            yield Piece(tokens[-1] if tokens else -1, chunk["content"])

    def logits(self) -> Sequence[float]:
        raise EngineProblem("a llama-server gives no scores")

    def _folder(self) -> Path:
        if self._running.slots is None:
            raise EngineProblem(
                "this llama-server's folder of slot files cannot be seen: nothing can be saved or loaded"
            )
        return self._running.slots

    def whole(self) -> State:
        """The state after everything that the slot holds, whoever put it there. Raises EngineProblem.

        The tokens are told by the slot file itself, whose first bytes are magic, version, a count and so many 32-bit numbers:
        the tokens, since version 4 with two numbers in front that say what follows, their count, and one behind
        (`llama_state_seq_save_file` in llama.cpp, `server_tokens` in its server).
        """
        name = f"{os.urandom(16).hex()}.slot"
        path = self._folder() / name
        try:
            saved = int(self._post(f"/slots/{self._slot}?action=save", {"filename": name})["n_saved"])
            data = path.read_bytes()
        finally:
            path.unlink(missing_ok=True)
        count = int.from_bytes(data[8:12], "little")
        numbers = memoryview(data)[12 : 12 + 4 * count]
        tokens = struct.unpack(f"<{count}i", numbers) if len(numbers) == 4 * count else ()
        if count == saved + 4 and tokens[0] == -1 and tokens[2] == saved:
            tokens = tokens[3:-1]
        if len(tokens) != saved or not saved:
            raise EngineProblem("the slot file does not tell its tokens")
        return State(tokens, data, 0, saved - 1)

    def reset(self) -> None:
        if self._running.slots is not None:
            self._post(f"/slots/{self._slot}?action=erase", {})
        self._held = ()
        self._fresh_logits = False

    def close(self) -> None:
        self._client.close()
        self._owned.close()


def _told(broken: Exception) -> str:
    return str(broken) or type(broken).__name__
