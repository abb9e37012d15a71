"""From settings to an engine that is known to survive, and to what identifies a request without opening one.

A request is all that decides the prefix and its state: the model's bytes, the engine's build, the options, the environment, the CPU and
the digest. Hashed, it finds the snapshots of an earlier warm start in milliseconds, where loading the model takes a second.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from carbon_mind.errors import SettingsProblem, StorageProblem
from carbon_mind.settings import Settings
from carbon_mind.values import Identity

if TYPE_CHECKING:  # each command imports what it needs and no more
    from carbon_mind.engine.base import Adapter, Engine, EngineOptions
    from carbon_mind.engine.probe import Verdict
    from carbon_mind.engine.serving import Running
    from carbon_mind.models import GgufInfo
    from carbon_mind.prefix.assemble import Chat


_DECIDING = ("n_ctx", "type_k", "type_v", "flash_attention", "gpu_layers", "rope_freq_base", "rope_freq_scale")


_SERVER_CONTEXT = 8192
"""Tokens of a server's context where the settings leave it open."""


class Listener(Protocol):
    """Who is told what happens on the way."""

    def notice(self, text: str) -> None:
        """Something the user should know; the work goes on."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine that is known to survive, and what identifies it."""

    engine: Engine
    identity: Identity
    chat: Chat
    model: Path
    verdict: Verdict
    seconds: float  # to verify, probe and load


def model_path(settings: Settings) -> Path:
    """The GGUF file that the settings mean. Raises NoModel, ModelDamaged."""
    from carbon_mind.models import resolve

    return resolve(settings.model, settings.models, None)


def check_model(model: Path) -> GgufInfo:
    """The header of the model, the headers of its other parts looked at as well. Raises ModelDamaged."""
    from carbon_mind.models import check_header, parts

    first, *others = parts(model)
    header = check_header(first)
    for part in others:
        check_header(part)
    return header


def _verdicts(settings: Settings) -> Path:
    return settings.cache / "engine-verdicts.json"


def _hashes(settings: Settings) -> Path:
    return settings.cache / "model-hashes.json"


def _kind(header: GgufInfo) -> str:
    return f"{header.architecture}/{header.file_type}"


def probe_engine(settings: Settings, model: Path, header: GgufInfo, *, again: bool = False) -> Verdict:
    """Whether the engine survives this kind of model on this machine; `again` asks although the answer is known.

    Raises NoEngine.
    """
    from carbon_mind.engine import probe as engine_probe
    from carbon_mind.engine.llama import build_hash, installed
    from carbon_mind.safety.files import private_dir

    with contextlib.suppress(StorageProblem):  # then nothing is remembered
        private_dir(settings.cache)
    key = engine_probe.verdict_key(build_hash(installed()[1]), _kind(header))
    return engine_probe.probe(model, key, _verdicts(settings), again=again)


def engine_kind(settings: Settings) -> Literal["llama", "server"]:
    """Which engine the settings mean: where they leave it open, the one in process if it is installed, else the server."""
    import importlib.util

    if settings.engine != "auto":
        return settings.engine
    present = [name for name in ("llama_cpp", "xllamacpp") if importlib.util.find_spec(name) is not None]
    return "server" if present == ["xllamacpp"] else "llama"


def open_engine(settings: Settings, report: Listener) -> Opened:
    """Find the model, verify its header, probe the engine in a child process, and load. Raises ModelProblem, EngineProblem."""
    from carbon_mind.models import model_sha256
    from carbon_mind.prefix.assemble import Chat, prompt_policy

    started = time.perf_counter()
    model = model_path(settings)
    header = check_model(model)
    if engine_kind(settings) == "server":
        engine, verdict = _open_server(settings, model, header, report)
    else:
        engine, verdict = _open_llama(settings, model, header, report)
    info = engine.info
    chat = Chat(info.chat_template, info.bos_token, info.eos_token, info.special_tokens)
    identity = engine.fingerprint(model_sha256(model, _hashes(settings)))
    identity = replace(identity, prompt=prompt_policy(chat))
    return Opened(engine, identity, chat, model, verdict, time.perf_counter() - started)


def _open_llama(settings: Settings, model: Path, header: GgufInfo, report: Listener) -> tuple[Engine, Verdict]:
    from carbon_mind.engine.llama import LlamaEngine
    from carbon_mind.engine.probe import require

    verdict = probe_engine(settings, model, header)
    extra_buffers = require(verdict)
    if not extra_buffers:
        report.notice(f"the engine's extra buffer types crash on this CPU ({verdict.detail}); running without them")
    return LlamaEngine(engine_options(settings, model), extra_buffers=extra_buffers), verdict


def _open_server(settings: Settings, model: Path, header: GgufInfo, report: Listener) -> tuple[Engine, Verdict]:
    """The server is a process of its own: that it started, and evaluated something, is all that a probe would tell."""
    from carbon_mind.engine.probe import Verdict
    from carbon_mind.engine.server import ServerEngine

    with contextlib.ExitStack() as stack:
        running, died = start_server(settings, model, report, stack)
        engine = ServerEngine(running, rollback=header.rollback, n_batch=settings.n_batch, owned=stack.pop_all())
    return engine, Verdict("without-extra-buffers", died) if died else Verdict("full")


def start_server(
    settings: Settings, model: Path, report: Listener, stack: contextlib.ExitStack, *, slots: int = 1, context: int = 0
) -> tuple[Running, str]:
    """A llama-server of our own, which ends with `stack`, and why it runs without extra buffer types ("" where it does not).

    `context` are the tokens of a slot where the settings leave it open. Raises NoEngine, EngineProblem, SettingsProblem.
    """
    from carbon_mind.engine.serving import find, running
    from carbon_mind.errors import EngineProblem, NoEngine

    if settings.lora or settings.rope_freq_base or settings.rope_freq_scale:
        raise SettingsProblem(
            "lora, rope_freq_base and rope_freq_scale need the engine in process", hint="set engine = llama"
        )
    names = ("threads", "gpu_layers", "type_k", "type_v", "flash_attention", "n_batch")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    options |= {"model": str(model), "n_ctx": settings.n_ctx or context or _SERVER_CONTEXT, "n_slots": slots}
    options["binary"] = settings.llama_server or ""
    try:
        return stack.enter_context(running(options)), ""
    except NoEngine:
        raise
    except EngineProblem as died:
        if settings.llama_server:
            raise  # its build is the user's
        if binary := find(None).binary:
            report.notice(f"{binary} did not start ({died.message}); trying the prebuilt server")
            try:
                return stack.enter_context(running(options, prebuilt=True)), ""
            except NoEngine:
                raise died from None
        report.notice(f"the server did not start ({died.message}); trying without the extra buffer types")
        return stack.enter_context(running({**options, "extra_buffers": False})), died.message


def open_vocabulary(settings: Settings) -> Callable[[Sequence[int]], str]:
    """Token ids to text by the model that the settings mean, without its weights. Raises ModelProblem, EngineProblem."""
    from carbon_mind.engine import llama

    model = model_path(settings)
    check_model(model)
    return llama.open_vocabulary(model).detokenize


def engine_options(settings: Settings, model: Path) -> EngineOptions:
    """The settings as the engine wants them. Raises ModelDamaged and SettingsProblem for a LoRA adapter."""
    from carbon_mind.engine.base import EngineOptions

    return EngineOptions(
        model=model,
        n_ctx=settings.n_ctx,
        n_batch=settings.n_batch,
        threads=settings.threads,
        type_k=settings.type_k,
        type_v=settings.type_v,
        flash_attention=settings.flash_attention,
        gpu_layers=settings.gpu_layers,
        rope_freq_base=settings.rope_freq_base,
        rope_freq_scale=settings.rope_freq_scale,
        lora=tuple(_adapters(settings)),
    )


def _adapters(settings: Settings) -> Iterator[Adapter]:
    """The adapters of the setting `lora`: FILE or FILE:SCALE, separated by commas, as llama.cpp's --lora-scaled has them."""
    from carbon_mind.engine.base import Adapter
    from carbon_mind.models import model_sha256

    for given in filter(None, settings.lora.split(",")):
        name, _, scale = given.rpartition(":")
        try:
            path, factor = Path(name or given), float(scale) if name else 1.0
        except ValueError:
            path, factor = Path(given), 1.0  # a colon in the path, and no scale
        path = path.expanduser()
        if not path.is_file():
            raise SettingsProblem(
                f"there is no LoRA adapter {path}", hint="set lora to FILE or FILE:SCALE, comma-separated"
            )
        yield Adapter(path, model_sha256(path, _hashes(settings)), factor)


def request(settings: Settings, model: Path, header: GgufInfo, markdown: str) -> str:
    """All that decides which snapshots a warm start ends with, as JSON; "" while the engine has not been probed here.

    What changes no state is left out: batch size and threads. Raises what `open_engine` raises for a model or an engine that
    is not there.
    """
    import msgspec

    from carbon_mind.engine.llama import build_hash, environment, installed
    from carbon_mind.engine.probe import read_verdicts, verdict_key
    from carbon_mind.models import model_sha256
    from carbon_mind.program import PREFIX, program

    if engine_kind(settings) == "server":
        from carbon_mind.engine import serving

        source = serving.find(settings.llama_server)
        version, build, outcome = source.engine, source.build, "server"
    else:
        version, libraries = installed()
        build = build_hash(libraries)
        verdict = read_verdicts(_verdicts(settings)).get(verdict_key(build, _kind(header)))
        if verdict is None:
            return ""
        outcome = verdict.outcome
    options = engine_options(settings, model)
    facts = {
        "program": program(PREFIX),
        "engine": version,
        "build": build,
        "model": model_sha256(model, _hashes(settings)),
        "verdict": outcome,
        "lora": [(adapter.sha256, adapter.scale) for adapter in options.lora],
        "options": [getattr(options, name) for name in _DECIDING],
        "environment": environment(),
        "digest": markdown,
        "block_chars": settings.block_chars,
    }
    return msgspec.json.encode(facts, order="deterministic").decode()


def asker(settings: Settings, report: Listener) -> tuple[str, Callable[[str, str, str, int], str]]:
    """The hash of the model that the settings mean, and a function that asks it: (system, user, grammar, most tokens) -> text.

    The model is loaded with the first question. Raises ModelProblem; the function raises CarbonError.
    """
    from carbon_mind.models import model_sha256
    from carbon_mind.prefix import template
    from carbon_mind.safety.text import escape_special
    from carbon_mind.values import Message

    model = model_path(settings)
    check_model(model)
    opened: list[Opened] = []

    def ask(system: str, user: str, grammar: str, most: int) -> str:
        if not opened:
            opened.append(open_engine(settings, report))
        chat, engine = opened[0].chat, opened[0].engine
        texts = [escape_special(text, chat.special_tokens) for text in (system, user)]
        both = [Message("system", texts[0]), Message("user", texts[1])]
        try:
            prompt = template.render(chat.template, both, bos_token=chat.bos_token, eos_token=chat.eos_token)
        except template.TemplateRefused:  # it knows no system role
            alone = [Message("user", "\n\n".join(texts))]
            prompt = template.render(chat.template, alone, bos_token=chat.bos_token, eos_token=chat.eos_token)
        engine.reset()
        engine.prefill(engine.tokenize(prompt))
        return "".join(piece.text for piece in engine.generate(most, grammar))

    return model_sha256(model, _hashes(settings)), ask
