"""What every engine promises, on the fake one, on the real llama.cpp with a tiny model of each kind, and on SmolLM2-135M."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carbon_mind.engine.base import Adapter, Engine, EngineOptions, State
from carbon_mind.engine.fake import FakeEngine
from carbon_mind.errors import EngineProblem, ModelDamaged, PrefixTooLong

KINDS = ("fake", "dense", "recurrent", "hybrid", "sliding", pytest.param("smollm2", marks=pytest.mark.model))
STATES = (*KINDS, pytest.param("gemma3", marks=(pytest.mark.model, pytest.mark.slow)))  # it knows no ChatML
REAL = {"smollm2": "smollm2_path", "gemma3": "gemma3_path"}
WINDOWS = ("sliding", "gemma3")
SYSTEM = (
    "<|im_start|>system\nYou know the repository: run `make test`, read src/main.py.<|im_end|>\n<|im_start|>user\n" * 4
)
SUFFIX = "How do I run the tests?<|im_end|>\n<|im_start|>assistant\n"


def open_engine(kind: str, request: pytest.FixtureRequest, **options: Any) -> Engine:
    if kind == "fake":
        return FakeEngine(n_ctx=options.get("n_ctx", 8192))
    from carbon_mind.engine.llama import LlamaEngine

    if kind in REAL:
        path: Path = request.getfixturevalue(REAL[kind])
    else:
        make: Callable[[str], Path] = request.getfixturevalue("tiny")
        path = make(kind)
    return LlamaEngine(EngineOptions(model=path, **{"n_ctx": 4096, **options}))


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_engine(request.param, request)
    yield opened
    opened.close()


@pytest.mark.parametrize("engine", STATES, indirect=True)
def test_a_restored_state_goes_on_exactly_like_the_one_that_was_never_saved(engine: Engine) -> None:
    prefix, suffix = engine.tokenize(SYSTEM), engine.tokenize(SUFFIX)
    engine.prefill(prefix)
    state = engine.save()
    engine.prefill(suffix)
    logits = engine.logits()
    text = [piece.text for piece in engine.generate(24)]

    engine.reset()
    engine.prefill(engine.tokenize("something else entirely"))
    before = engine.evaluated
    engine.load(state)
    assert engine.evaluated == before, "a restore evaluates nothing"
    assert engine.held == prefix
    assert engine.prefill(suffix) == len(suffix)
    assert engine.logits() == logits, "bit for bit"
    assert [piece.text for piece in engine.generate(24)] == text
    assert len(text) > 0


@pytest.mark.parametrize("engine", STATES, indirect=True)
def test_a_state_can_be_used_twice_and_both_copies_go_on(engine: Engine) -> None:
    engine.prefill(engine.tokenize(SYSTEM))
    state = engine.save()
    answers = []
    for _ in range(2):
        engine.load(state)
        engine.prefill(engine.tokenize(SUFFIX))
        answers.append(engine.logits())
        engine.prefill(engine.tokenize("and more of it"))
    assert answers[0] == answers[1]


SETUPS = [
    {},
    {"flash_attention": "on"},
    {"flash_attention": "off"},
    {"type_k": "q8_0", "type_v": "q8_0", "flash_attention": "on"},
    {"type_k": "q4_0", "type_v": "q4_0", "flash_attention": "on"},
    {"type_k": "q8_0", "flash_attention": "off"},
]


@pytest.mark.parametrize("options", SETUPS, ids=lambda options: "-".join(options.values()) or "default")
@pytest.mark.parametrize("kind", STATES)
def test_layers_restored_one_behind_the_other_go_on_like_the_state_that_was_never_saved(
    kind: str, options: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """Each layer is evaluated for itself, as a warm start does, so that both see the same batches."""
    setup: dict[str, Any] = {} if kind == "fake" else {**options, "threads": 1 if kind in WINDOWS else 0}
    engine = open_engine(kind, request, **setup)  # threads: see tests/test_warm.py
    tokens, suffix = engine.tokenize(SYSTEM), engine.tokenize(SUFFIX)
    cuts = (len(tokens) // 3, len(tokens) // 3 * 2, len(tokens))
    saved, start = [], 0
    for cut in cuts:
        engine.prefill(tokens[start:cut])
        saved.append(engine.save(start))
        start = cut
    engine.prefill(suffix)
    logits = engine.logits()
    said = [piece.text for piece in engine.generate(8)]
    engine.close()

    again = open_engine(kind, request, **setup)
    for state in saved:
        again.load(state)
        assert again.held == state.tokens
    assert again.evaluated == 0
    again.prefill(suffix)
    assert again.logits() == logits, "bit for bit"
    assert [piece.text for piece in again.generate(8)] == said

    # Each end of a layer is a place to go on from.
    again.load(saved[0])
    again.prefill(tokens[cuts[0] : cuts[1]])
    again.load(saved[2])
    again.prefill(suffix)
    assert again.logits() == logits
    again.close()


@pytest.mark.parametrize("options", SETUPS[1:4], ids=lambda options: "-".join(options.values()))
@pytest.mark.parametrize("kind", ["sliding", pytest.param("gemma3", marks=(pytest.mark.model, pytest.mark.slow))])
def test_layers_longer_than_the_window_are_restored_up_to_rounding(
    kind: str, options: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """What the window has left behind frees its cells, so that a restored cache has the rest in other places and sums it up
    in another order. How much that may matter, other batches of the same tokens show; a layer of other tokens is not that."""
    engine = open_engine(kind, request, **options)
    tokens, suffix = engine.tokenize(SYSTEM * 14)[:2100], engine.tokenize(SUFFIX)
    cuts = (700, 1400, 2100)  # the cache has room for 1,024 with gemma3's window, for 640 with the tiny one's

    def evaluate(tokens: Sequence[int], cuts: Iterable[int]) -> tuple[list[State], Sequence[float]]:
        engine.reset()
        saved, start = [], 0
        for cut in cuts:
            engine.prefill(tokens[start:cut])
            saved.append(engine.save(start))
            start = cut
        engine.prefill(suffix)
        return saved, engine.logits()

    def restore(states: Iterable[State]) -> Sequence[float]:
        for state in states:
            engine.load(state)
        assert engine.held == tokens
        engine.prefill(suffix)
        return engine.logits()

    saved, scores = evaluate(tokens, cuts)
    noise = divergence(scores, evaluate(tokens, (*cuts[:2], *range(2037, 2101)))[1])  # the last 64 one by one
    others, _ = evaluate((*tokens[: cuts[0]], *tokens[cuts[0] :][::-1]), cuts)
    wrong = [replace(state, data=other.data) for state, other in zip(saved, others, strict=True)]
    found = divergence(scores, restore(saved))
    assert found <= 3 * noise
    assert divergence(scores, restore(wrong)) > 3 * max(found, noise)
    engine.close()


def divergence(left: Sequence[float], right: Sequence[float]) -> float:
    """Kullback-Leibler divergence of two next-token distributions, in nats."""

    def normalised(scores: Sequence[float]) -> list[float]:
        top = max(scores)
        total = top + math.log(math.fsum(math.exp(score - top) for score in scores))
        return [score - total for score in scores]

    return math.fsum(math.exp(a) * (a - b) for a, b in zip(normalised(left), normalised(right), strict=True))


def test_a_layer_has_its_own_positions_only(request: pytest.FixtureRequest) -> None:
    engine = open_engine("dense", request)
    tokens = engine.tokenize(SYSTEM)
    engine.prefill(tokens)
    whole, half = len(engine.save().data), len(engine.save(len(tokens) // 2).data)
    assert 0.45 < half / whole < 0.6
    for start in (len(tokens), len(tokens) + 1):
        with pytest.raises(EngineProblem, match="no state to save"):
            engine.save(start)
    engine.close()


@pytest.mark.parametrize("kind", ["fake", "dense", "recurrent"])
def test_a_layer_that_does_not_continue_what_is_held_is_refused(kind: str, request: pytest.FixtureRequest) -> None:
    engine = open_engine(kind, request)
    tokens = engine.tokenize(SYSTEM)
    engine.prefill(tokens[:50])
    engine.prefill(tokens[50:])
    layer = engine.save(50)
    for held in (tokens[:49], tokens[:51], (*tokens[:49], tokens[3]), ()):
        engine.reset()
        engine.prefill(held)
        with pytest.raises(EngineProblem, match=r"continue|begins"):
            engine.load(layer)
        assert engine.held == ()
    engine.close()


def test_a_lora_adapter_and_its_scale_change_what_is_computed_and_the_fingerprint(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    from tests.tiny_models import adapter

    path = adapter(tmp_path / "lora.gguf")
    logits, prints = [], []
    for lora in ((), (Adapter(path, "a" * 64, 1.0),), (Adapter(path, "a" * 64, 0.5),)):
        engine = open_engine("dense", request, lora=lora)
        engine.prefill(engine.tokenize(SYSTEM))
        state = engine.save()
        engine.load(state)
        engine.prefill(engine.tokenize(SUFFIX))
        logits.append(tuple(engine.logits()))
        prints.append(engine.fingerprint("m"))
        engine.close()
    assert len({*logits}) == len({*prints}) == 3
    (tmp_path / "no.gguf").write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(ModelDamaged, match="LoRA"):
        open_engine("dense", request, lora=(Adapter(tmp_path / "no.gguf", "b" * 64),))


@pytest.mark.parametrize("engine", KINDS, indirect=True)
def test_every_evaluated_token_is_counted(engine: Engine) -> None:
    tokens = engine.tokenize(SYSTEM)
    seen: list[tuple[int, int]] = []
    assert engine.prefill(tokens, lambda done, total: seen.append((done, total))) == len(tokens)
    assert engine.evaluated == len(tokens)
    assert seen[-1] == (len(tokens), len(tokens))
    engine.prefill(tokens[:1])
    assert engine.evaluated == len(tokens) + 1


@pytest.mark.parametrize("engine", KINDS, indirect=True)
def test_special_tokens_are_single_tokens_and_text_survives_the_way_back(engine: Engine) -> None:
    assert "<|im_end|>" in engine.info.special_tokens
    assert len(engine.tokenize("<|im_end|>")) == 1
    text = "<|im_start|>user\n\u00e9t\u00e9 \u4f60\u597d `x`<|im_end|>"
    assert engine.detokenize(engine.tokenize(text)) == text


@pytest.mark.parametrize("engine", STATES, indirect=True)
def test_nothing_is_sampled_before_a_token_was_evaluated_after_a_restore(engine: Engine) -> None:
    engine.prefill(engine.tokenize(SYSTEM))
    engine.load(engine.save())
    with pytest.raises(EngineProblem, match="nothing to sample"):
        list(engine.generate(1))
    with pytest.raises(EngineProblem):
        engine.logits()


@pytest.mark.parametrize("kind", ["fake", "dense", "recurrent"])
def test_a_prefix_longer_than_the_context_is_refused_before_anything_is_evaluated(
    kind: str, request: pytest.FixtureRequest
) -> None:
    engine = open_engine(kind, request, n_ctx=256)
    with pytest.raises(PrefixTooLong) as caught:
        engine.prefill(engine.tokenize("x" * 5000))
    assert caught.value.exit_code == 5
    assert "--ctx" in caught.value.hint
    assert engine.evaluated == 0
    engine.close()


@pytest.mark.parametrize(
    ("kind", "rollback"), [("dense", True), ("recurrent", False), ("hybrid", False), ("sliding", False)]
)
def test_a_tail_is_dropped_only_where_the_architecture_allows_it(
    kind: str, rollback: bool, request: pytest.FixtureRequest
) -> None:
    engine = open_engine(kind, request)
    tokens = engine.tokenize(SYSTEM)
    engine.prefill(tokens)
    engine.prefill(engine.tokenize(SUFFIX))
    whole = engine.logits()
    assert engine.info.rollback is rollback
    assert engine.truncate(len(tokens)) is rollback
    if rollback:
        assert engine.held == tokens
        engine.prefill(engine.tokenize(SUFFIX))
        assert engine.logits() == pytest.approx(whole, abs=1e-3)
    else:
        assert len(engine.held) > len(tokens), "nothing changed"
    engine.close()


def test_a_state_of_other_bytes_is_refused_and_leaves_the_engine_usable(request: pytest.FixtureRequest) -> None:
    engine = open_engine("dense", request)
    tokens = engine.tokenize(SYSTEM)
    engine.prefill(tokens)
    state = engine.save()
    for cut in (0, 1, 8, len(state.data) // 2, len(state.data) - 1):
        with pytest.raises(EngineProblem):
            engine.load(State(state.tokens, state.data[:cut], state.pos_min, state.pos_max))
        assert engine.held == ()
    with pytest.raises(EngineProblem, match="positions"):
        engine.load(State(state.tokens, state.data, 0, len(tokens)))
    engine.load(state)
    engine.prefill(engine.tokenize(SUFFIX))
    engine.close()


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"GGUF" + bytes(100)])
def test_a_file_that_llama_cpp_cannot_load_is_a_damaged_model(content: bytes, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    from carbon_mind.engine.llama import LlamaEngine

    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelDamaged):
        LlamaEngine(EngineOptions(model=path))


def test_the_fingerprint_names_what_changes_a_state_and_not_what_does_not(request: pytest.FixtureRequest) -> None:
    from carbon_mind.engine.llama import LlamaEngine

    path = request.getfixturevalue("tiny")("dense")

    def fingerprint(**options: object) -> object:
        engine = LlamaEngine(EngineOptions(model=path, **options))  # type: ignore[arg-type]
        found = engine.fingerprint("m")
        engine.close()
        return found

    base = fingerprint(n_ctx=1024)
    assert fingerprint(n_ctx=1024, n_batch=64, threads=1) == base
    assert fingerprint(n_ctx=2048) != base
    assert fingerprint(n_ctx=1024, type_k="f32") != base
    assert fingerprint(n_ctx=1024, flash_attention="off") != base
    assert fingerprint(n_ctx=1024, rope_freq_base=20000.0) != base
    assert fingerprint(n_ctx=1024, rope_freq_scale=0.5) != base


def test_an_environment_that_changes_results_is_part_of_the_fingerprint(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine("dense", request)
    plain = engine.fingerprint("m")
    monkeypatch.setenv("GGML_SOME_SWITCH", "1")
    assert engine.fingerprint("m") != plain
    engine.close()


# --- grammars ----------------------------------------------------------------------------------------------------

GRAMMAR = """root ::= "[" item (", " item){1,3} "]"
item ::= "{\\"name\\": " ("\\"src/main.py\\"" | "\\"caf\u00e9.py\\"") ", \\"text\\": \\"" [a-z ]{1,12} "\\"}"
"""


@pytest.mark.parametrize(
    "engine",
    ["dense", "recurrent", "hybrid", "sliding", pytest.param("smollm2", marks=pytest.mark.model)],
    indirect=True,
)
def test_what_a_grammar_allows_is_all_that_is_said(engine: Engine) -> None:
    answers = []
    for _ in range(2):
        engine.reset()
        engine.prefill(engine.tokenize(SYSTEM + SUFFIX))
        pieces = list(engine.generate(300, GRAMMAR))
        answers.append("".join(piece.text for piece in pieces))
        items = json.loads(answers[-1])
        assert 2 <= len(items) <= 4
        assert {item["name"] for item in items} <= {"src/main.py", "caf\u00e9.py"}
        assert all(1 <= len(item["text"]) <= 12 for item in items)
        engine.prefill(engine.tokenize("more"))
    assert answers[0] == answers[1]
    assert list(engine.generate(4)), "and without one it speaks freely"


def test_a_grammar_that_cannot_be_read_is_an_error_and_no_crash(request: pytest.FixtureRequest) -> None:
    engine = open_engine("dense", request)
    engine.prefill(engine.tokenize(SUFFIX))
    for grammar in ("root ::= (", "nothing", "root ::= missing", ""):
        with pytest.raises(EngineProblem, match="grammar"):
            list(engine.generate(4, grammar))
    assert list(engine.generate(4))
    engine.close()
    with pytest.raises(EngineProblem, match="grammars"):
        list(FakeEngine().generate(4, GRAMMAR))
