"""llama.cpp in this process, through llama-cpp-python's low-level API.

The high-level `Llama` class is avoided: its `save_state` pickles the logits buffer (550 MB for 13 MB of state) and its `load_state`
depends on n_batch. Here a state is what `llama_state_seq_get_data` gives for a sequence, and nothing else.

Sequence 0 is the one that is evaluated. Sequence 1 is a door: a range of positions is copied there (`llama_memory_seq_cp`, which
moves no data in a unified cache) to be saved apart, and a layer comes in there to be copied behind what sequence 0 has. So layers need
no knowledge of llama.cpp's state format, and work on every architecture.
"""

from __future__ import annotations

import codecs
import ctypes
import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from carbon_mind.engine.base import (
    EngineInfo,
    EngineOptions,
    Piece,
    Progress,
    State,
    require_room,
    require_scores,
)
from carbon_mind.engine.vocabulary import Vocabulary
from carbon_mind.errors import EngineProblem, ModelDamaged, NoEngine
from carbon_mind.machine import usable_cores
from carbon_mind.values import Identity

MAX_DEFAULT_CONTEXT = 8192
INSTALL_HINT = (
    "install it with `pip install 'carbon-mind[llama]'` (compiles llama.cpp for this CPU, some minutes, once), "
    "or the prebuilt server with `pip install 'carbon-mind[server]'`"
)

# ggml's numbers of the KV cache types (ggml.h, enum ggml_type).
_GGML_TYPE = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}
_FLASH = {"auto": -1, "off": 0, "on": 1}
# Set by us, without influence on results.
_HARMLESS = frozenset(("GGML_NO_BACKTRACE",))
_LOG_LEVEL_ERROR = 4
_VERSION = re.compile(r"""^__version__ = ["']([^"']+)["']""", re.MULTILINE)
_MAIN, _LAYER = 0, 1  # sequences; see the module's docstring


class _Log:
    """llama.cpp's log, kept instead of printed: the reason of a failure, and what `auto` was resolved to."""

    def __init__(self, api: Any) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []

        def receive(level: int, text: bytes | None, _data: object) -> None:
            line = (text or b"").decode("utf-8", "replace").strip()
            if level >= _LOG_LEVEL_ERROR and line:
                self.errors.append(line)
            elif "Flash Attention" in line:
                self.lines.append(line)

        # The callback must outlive every context of the process, so `runtime` keeps this object for good.
        self.callback = api.llama_log_callback(receive)
        api.llama_log_set(self.callback, ctypes.c_void_p(0))

    def clear(self) -> None:
        self.lines.clear()
        self.errors.clear()

    def reason(self) -> str:
        return self.errors[-1] if self.errors else "llama.cpp gave no reason"


@dataclass(frozen=True, slots=True)
class _Runtime:
    api: Any
    log: _Log
    version: str
    libraries: Path


def installed() -> tuple[str, Path]:
    """Version and library folder of llama-cpp-python without importing it, which takes longer. Raises NoEngine."""
    found = importlib.util.find_spec("llama_cpp")
    if found is None or not found.origin:
        raise NoEngine("no engine is installed: llama-cpp-python is missing", hint=INSTALL_HINT)
    package = Path(found.origin)
    version = _VERSION.search(package.read_text(encoding="utf-8", errors="replace"))
    libraries = package.parent / "lib"
    if not libraries.is_dir():
        raise NoEngine(f"no engine is installed: llama-cpp-python lacks its libraries ({libraries})", hint=INSTALL_HINT)
    return version[1] if version else "unknown", libraries


@functools.cache
def runtime() -> _Runtime:
    """llama-cpp-python, imported and initialised once a process. Raises NoEngine with what to install."""
    # Without it every abort inside ggml starts a debugger on this process.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    try:
        import llama_cpp
    except ImportError as missing:
        raise NoEngine("no engine is installed: llama-cpp-python is missing", hint=INSTALL_HINT) from missing
    except (OSError, RuntimeError) as broken:  # a shared library that does not load
        raise NoEngine(f"llama-cpp-python is installed but does not load: {broken}", hint=INSTALL_HINT) from broken
    log = _Log(llama_cpp)
    llama_cpp.llama_backend_init()
    folder = Path(llama_cpp.__file__).parent / "lib"
    return _Runtime(llama_cpp, log, llama_cpp.__version__, folder)


@functools.cache  # 24 MB of libraries, asked for by the probe and by the fingerprint
def build_hash(libraries: Path) -> str:
    """SHA-256 over the names and bytes of the engine's shared libraries; copies of one library count once."""
    digest = hashlib.sha256()
    seen: set[bytes] = set()
    for path in sorted(libraries.iterdir()):
        if path.is_file() and any(part in path.name for part in (".so", ".dylib", ".dll", ".metal")):
            content = hashlib.sha256(path.read_bytes()).digest()
            if content not in seen:
                seen.add(content)
                digest.update(path.name.split(".")[0].encode() + b"\0" + content)
    return digest.hexdigest()


def environment() -> tuple[tuple[str, str], ...]:
    """The variables that may change what llama.cpp computes, by name."""
    return tuple(
        sorted(
            (name, value)
            for name, value in os.environ.items()
            if name.startswith(("LLAMA_", "GGML_")) and name not in _HARMLESS
        )
    )


def _load(model: Path, params: Any) -> Any:
    run = runtime()
    loaded = run.api.llama_model_load_from_file(os.fsencode(model), params)
    if not loaded:
        raise ModelDamaged(
            f"llama.cpp cannot load {model}: {run.log.reason()}",
            hint="pull the model again (`carbon models pull NAME`) or give another file with --model",
        )
    return loaded


def open_vocabulary(model: Path) -> Vocabulary:
    """The model's vocabulary without its weights, kept for the life of the process. Raises NoEngine and ModelDamaged."""
    api = runtime().api
    params = api.llama_model_default_params()
    params.vocab_only = True
    return Vocabulary(api, _load(model, params))


class LlamaEngine:
    """One model, one context, one sequence. See `Engine`."""

    def __init__(self, options: EngineOptions, *, extra_buffers: bool = True) -> None:
        """Load the model. `extra_buffers` is the verdict of the probe: False avoids the AMX and repacking buffer types.

        Raises NoEngine, ModelDamaged (llama.cpp refuses the file) and EngineProblem (the context cannot be made).
        """
        self._run = runtime()
        api = self._run.api
        self._run.log.clear()
        model_params = api.llama_model_default_params()
        model_params.n_gpu_layers = options.gpu_layers
        model_params.use_extra_bufts = extra_buffers
        self._model = _load(options.model, model_params)
        self._words = Vocabulary(api, self._model)
        self._options = options
        self._extra_buffers = extra_buffers
        self._n_batch = options.n_batch
        self._params = self._context_params()
        self._context = self._open_context()
        self._apply_adapters()
        self._memory = api.llama_get_memory(self._context)
        self._tokens = (api.llama_token * self._n_batch)()
        self._sampler = api.llama_sampler_init_greedy()
        self._held: list[int] = []
        self._evaluated = 0
        self._fresh_logits = False
        self._info = self._describe()

    # --- opening ---

    def _context_params(self) -> Any:
        api, options = self._run.api, self._options
        params = api.llama_context_default_params()
        trained = api.llama_model_n_ctx_train(self._model)
        params.n_ctx = options.n_ctx or min(trained, MAX_DEFAULT_CONTEXT)
        params.n_batch = params.n_ubatch = self._n_batch = min(options.n_batch, params.n_ctx)
        params.n_seq_max = 2  # the sequence, and the door for layers
        params.kv_unified = True  # both share the cells: the second costs no memory
        params.swa_full = False
        params.n_threads = params.n_threads_batch = options.threads or usable_cores()
        params.type_k = _GGML_TYPE[options.type_k]
        params.type_v = _GGML_TYPE[options.type_v]
        params.flash_attn_type = _FLASH[options.flash_attention]
        params.rope_freq_base = options.rope_freq_base
        params.rope_freq_scale = options.rope_freq_scale
        params.no_perf = True
        return params

    def _open_context(self) -> Any:
        self._run.log.clear()
        context = self._run.api.llama_init_from_model(self._model, self._params)
        if not context:
            self._run.api.llama_model_free(self._model)
            raise EngineProblem(
                f"llama.cpp cannot make a context of {self._params.n_ctx} tokens: {self._run.log.reason()}",
                hint="try a smaller n_ctx, or type_k and type_v = f16 (a quantised V needs flash attention)",
            )
        if self._options.flash_attention != "auto":
            self._flash: str = self._options.flash_attention
        else:
            # llama.cpp tells what it chose only in its log; unread, "auto" stands and a change of default is not noticed here
            # but by the build hash.
            told = " ".join(self._run.log.lines)
            self._flash = "on" if "enabled" in told else "off" if "disabled" in told else "auto"
        return context

    def _apply_adapters(self) -> None:
        """The LoRA adapters of the options, in their order; they live as long as the model."""
        api, adapters = self._run.api, self._options.lora
        loaded = []
        for adapter in adapters:
            self._run.log.clear()
            found = api.llama_adapter_lora_init(self._model, os.fsencode(adapter.path))
            if not found:
                reason = self._run.log.reason()
                self._free()
                raise ModelDamaged(
                    f"llama.cpp cannot load the LoRA adapter {adapter.path}: {reason}",
                    hint="it must be a GGUF adapter made for this very model",
                )
            loaded.append(found)
        if loaded:
            handles = (api.llama_adapter_lora_p_ctypes * len(loaded))(*loaded)
            scales = (ctypes.c_float * len(loaded))(*(adapter.scale for adapter in adapters))
            if api.llama_set_adapters_lora(self._context, handles, len(loaded), scales):
                self._free()
                raise EngineProblem("llama.cpp cannot apply the LoRA adapters to this context")

    def _free(self) -> None:
        self._run.api.llama_free(self._context)
        self._run.api.llama_model_free(self._model)
        self._context = self._model = None

    def _describe(self) -> EngineInfo:
        api = self._run.api
        buffer = ctypes.create_string_buffer(256)
        api.llama_model_desc(self._model, buffer, len(buffer))
        template = api.llama_model_chat_template(self._model, None)
        recurrent = api.llama_model_is_recurrent(self._model) or api.llama_model_is_hybrid(self._model)
        words = self._words
        return EngineInfo(
            description=buffer.value.decode("utf-8", "replace"),
            n_ctx=api.llama_n_ctx(self._context),
            chat_template=template.decode("utf-8", "replace") if template else None,
            bos_token=words.text_of(api.llama_vocab_bos(words.handle)),
            eos_token=words.text_of(api.llama_vocab_eos(words.handle)),
            special_tokens=words.special_texts(),
            rollback=not recurrent and api.llama_model_n_swa(self._model) == 0,
        )

    # --- Engine ---

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
        api, params = self._run.api, self._params
        context = {
            "n_ctx": api.llama_n_ctx(self._context),
            "n_seq_max": params.n_seq_max,
            "kv_unified": params.kv_unified,
            "swa_full": params.swa_full,
            "type_k": self._options.type_k,
            "type_v": self._options.type_v,
            "flash_attn": self._flash,
            "offload_kqv": params.offload_kqv,
            "gpu_layers": self._options.gpu_layers,
            "extra_buffers": self._extra_buffers,
            "lora": " ".join(f"{adapter.sha256}*{adapter.scale:g}" for adapter in self._options.lora) or "none",
            "control_vectors": "none",  # not offered; a key without them would fit a program that does
            "kv_overrides": "none",
            **{
                name: getattr(params, name)
                for name, _ in params._fields_
                if name.startswith(("rope_", "yarn_")) or name == "attention_type"
            },
        }
        return Identity(
            engine=f"llama-cpp-python {self._run.version}",
            build=build_hash(self._run.libraries),
            model=model_sha256,
            context=tuple(sorted((name, str(value)) for name, value in context.items())),
            environment=environment(),
        )

    def tokenize(self, text: str) -> tuple[int, ...]:
        return self._words.tokenize(text)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._words.detokenize(tokens)

    def piece(self, token: int) -> bytes:
        return self._words.piece(token)

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        require_room(len(self._held) + len(tokens), self._info.n_ctx, self._info.n_ctx)
        if progress is not None:
            progress(0, len(tokens))
        for start in range(0, len(tokens), self._n_batch):
            self._decode(tokens[start : start + self._n_batch])
            if progress is not None:
                progress(min(start + self._n_batch, len(tokens)), len(tokens))
        return len(tokens)

    def _decode(self, tokens: Sequence[int]) -> None:
        api = self._run.api
        self._tokens[: len(tokens)] = tokens
        self._run.log.clear()
        # A batch without explicit positions continues sequence 0 after its last position and yields the last token's logits.
        status = api.llama_decode(self._context, api.llama_batch_get_one(self._tokens, len(tokens)))
        if status != 0:
            self.reset()
            raise EngineProblem(
                f"llama.cpp failed to evaluate {len(tokens)} tokens (status {status}): {self._run.log.reason()}",
                hint="run `carbon doctor`; a smaller context or batch needs less memory",
            )
        api.llama_synchronize(self._context)
        self._held.extend(tokens)
        self._evaluated += len(tokens)
        self._fresh_logits = True

    def truncate(self, length: int) -> bool:
        if length == len(self._held):
            return True
        if not self._info.rollback or length > len(self._held):
            return False
        if not self._run.api.llama_memory_seq_rm(self._memory, _MAIN, length, -1):
            return False
        del self._held[length:]
        self._fresh_logits = False
        return True

    def _positions(self) -> tuple[int, int]:
        api = self._run.api
        return api.llama_memory_seq_pos_min(self._memory, _MAIN), api.llama_memory_seq_pos_max(self._memory, _MAIN)

    def save(self, start: int = 0) -> State:
        api = self._run.api
        if not start < len(self._held):
            raise EngineProblem(f"there is no state to save from position {start} on")
        sequence = _LAYER if start else _MAIN
        if start:
            api.llama_memory_seq_cp(self._memory, _MAIN, _LAYER, start, -1)
        try:
            size = api.llama_state_seq_get_size(self._context, sequence)
            data = bytearray(size)
            written = api.llama_state_seq_get_data(
                self._context, (ctypes.c_uint8 * size).from_buffer(data), size, sequence
            )
        finally:
            if start:
                api.llama_memory_seq_rm(self._memory, _LAYER, -1, -1)
        if written != size:
            raise EngineProblem(f"llama.cpp wrote {written} of {size} bytes of state", hint="run `carbon doctor`")
        first, last = self._positions()
        if window := api.llama_model_n_swa(self._model):
            # What no later token sees may still be here, and is not part of a saved state.
            first = max(first, last + 1 - window)
        return State(self.held, data, first, last, start)

    def load(self, state: State) -> None:
        if state.start and self.held != state.tokens[: state.start]:
            self.reset()
            raise EngineProblem(f"a layer from position {state.start} on does not continue what is held")
        api = self._run.api
        if not state.start:
            self.reset()
        self._run.log.clear()
        size = len(state.data)
        if isinstance(state.data, bytes):
            source: Any = ctypes.cast(ctypes.c_char_p(state.data), ctypes.POINTER(ctypes.c_uint8))
        else:
            source = (ctypes.c_uint8 * size).from_buffer(state.data)  # no copy
        sequence = _LAYER if state.start else _MAIN
        taken = api.llama_state_seq_set_data(self._context, source, size, sequence)
        if taken != size:
            self.reset()
            raise EngineProblem(f"llama.cpp took {taken} of {size} bytes of state: {self._run.log.reason()}")
        if state.start:
            api.llama_memory_seq_cp(self._memory, _LAYER, _MAIN, state.start, -1)
            api.llama_memory_seq_rm(self._memory, _LAYER, -1, -1)
        first, last = self._positions()
        if first > state.pos_min or last != state.pos_max:
            self.reset()
            raise EngineProblem(
                f"restored positions are {first} to {last}, saved were {state.pos_min} to {state.pos_max}"
            )
        self._held = list(state.tokens)
        self._fresh_logits = False

    def generate(self, max_tokens: int, grammar: str | None = None) -> Iterator[Piece]:
        api = self._run.api
        require_scores(self._fresh_logits)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        sampler = self._sampler if grammar is None else self._constrained(grammar)
        try:
            for count in range(min(max_tokens, self._info.n_ctx - len(self._held))):
                token = api.llama_sampler_sample(sampler, self._context, -1)
                if api.llama_vocab_is_eog(self._words.handle, token):
                    break
                yield Piece(token, decoder.decode(self._words.piece(token, special=False)))
                if count + 1 < max_tokens and len(self._held) < self._info.n_ctx:
                    self._decode((token,))
        finally:
            if grammar is not None:
                api.llama_sampler_free(sampler)
        if tail := decoder.decode(b"", final=True):
            yield Piece(-1, tail)

    def _constrained(self, grammar: str) -> Any:
        """A greedy sampler that takes only what the grammar allows next; the chain owns its parts."""
        api = self._run.api
        self._run.log.clear()
        # An empty grammar would allow everything.
        text = grammar.strip().encode("utf-8")
        rules = text and api.llama_sampler_init_grammar(self._words.handle, text, b"root")
        if not rules:
            raise EngineProblem(f"llama.cpp does not understand the grammar: {self._run.log.reason()}")
        chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        api.llama_sampler_chain_add(chain, rules)
        api.llama_sampler_chain_add(chain, api.llama_sampler_init_greedy())
        return chain

    def logits(self) -> Sequence[float]:
        require_scores(self._fresh_logits)
        values = self._run.api.llama_get_logits_ith(self._context, -1)
        return tuple(values[: self._words.size])

    def reset(self) -> None:
        self._run.api.llama_memory_clear(self._memory, True)
        self._held.clear()
        self._fresh_logits = False

    def close(self) -> None:
        api = self._run.api
        if self._context:
            api.llama_sampler_free(self._sampler)
            self._free()
