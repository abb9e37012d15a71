"""Warm starts by their counts: all tokens, then none; what goes wrong costs a prefill and is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from carbon_mind.engine.base import Engine, EngineOptions
from carbon_mind.engine.fake import FakeEngine
from carbon_mind.prefix.assemble import Chat, assemble, render, split, system_text
from carbon_mind.store.states import Store
from carbon_mind.values import Prefix
from carbon_mind.warm import warm

DIGEST = "# sample: repository digest\n\n## Commands\n- test: `make test` (Makefile:3)\n"


def chat_of(engine: Engine) -> Chat:
    info = engine.info
    return Chat(info.chat_template, info.bos_token, info.eos_token, info.special_tokens)


def prefix_of(engine: Engine, digest: str = DIGEST) -> Prefix:
    return assemble(chat_of(engine), digest, engine.tokenize)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 30)


@pytest.fixture(params=["fake", "dense", "recurrent", "hybrid", pytest.param("smollm2", marks=pytest.mark.model)])
def reopen(request: pytest.FixtureRequest) -> Callable[[], Engine]:
    """Opens the same engine anew, as the next process would."""
    if request.param == "fake":
        return FakeEngine
    from carbon_mind.engine.llama import LlamaEngine

    smollm2 = request.param == "smollm2"
    path = request.getfixturevalue("smollm2_path") if smollm2 else request.getfixturevalue("tiny")(request.param)
    return lambda: LlamaEngine(EngineOptions(model=path, n_ctx=4096))


def answer(engine: Engine, prefix: Prefix, question: str = "How do I run the tests?") -> tuple[object, list[str]]:
    prompt = engine.tokenize(render(chat_of(engine), system_text(DIGEST), question))
    shared = split(prefix, prompt)
    assert shared == len(prefix.tokens)
    engine.prefill(prompt[shared:])
    return engine.logits(), [piece.text for piece in engine.generate(16)]


def test_all_tokens_once_then_none_and_the_answer_is_the_same(reopen: Callable[[], Engine], store: Store) -> None:
    cold = reopen()
    prefix = prefix_of(cold)
    first = warm(cold, store, cold.fingerprint("m"), prefix)
    assert (first.state, first.evaluated, first.restored) == ("prefilled", len(prefix.tokens), 0)
    assert first.bytes_written == (store.folder / first.snapshot).stat().st_size
    expected = answer(cold, prefix)
    cold.close()

    restored = reopen()
    second = warm(restored, store, restored.fingerprint("m"), prefix)
    assert (second.state, second.evaluated, second.restored) == ("restored", 0, len(prefix.tokens))
    assert second.bytes_written == 0
    assert restored.evaluated == 0, "the engine's own count is the proof"
    assert answer(restored, prefix) == expected, "logits bit for bit, and the text"
    restored.close()


def test_a_changed_digest_is_warmed_again_and_says_where_it_changed(reopen: Callable[[], Engine], store: Store) -> None:
    engine = reopen()
    warm(engine, store, engine.fingerprint("m"), prefix_of(engine))
    changed = prefix_of(engine, DIGEST.replace("make test", "make check"))
    result = warm(engine, store, engine.fingerprint("m"), changed)
    assert (result.state, result.evaluated) == ("prefilled", len(changed.tokens))
    assert "differs from token" in result.reason
    assert warm(engine, store, engine.fingerprint("m"), changed).state == "restored"
    assert len(store.entries()) == 2
    engine.close()


def test_another_model_never_gets_the_state(store: Store) -> None:
    engine = FakeEngine()
    prefix = prefix_of(engine)
    warm(engine, store, engine.fingerprint("one"), prefix)
    other = warm(FakeEngine(), store, engine.fingerprint("two"), prefix)
    assert (other.state, other.evaluated) == ("prefilled", len(prefix.tokens))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-5], lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data + b"\0"]
)
def test_a_damaged_snapshot_costs_a_prefill_and_is_replaced(
    reopen: Callable[[], Engine], store: Store, damage: Callable[[bytes], bytes]
) -> None:
    engine = reopen()
    prefix = prefix_of(engine)
    first = warm(engine, store, engine.fingerprint("m"), prefix)
    path = store.folder / first.snapshot
    path.write_bytes(damage(path.read_bytes()))
    second = warm(engine, store, engine.fingerprint("m"), prefix)
    assert (second.state, second.evaluated) == ("prefilled", len(prefix.tokens))
    assert "set aside" in second.reason
    assert warm(engine, store, engine.fingerprint("m"), prefix).state == "restored"
    engine.close()


def test_a_payload_that_the_engine_refuses_is_set_aside(store: Store) -> None:
    from carbon_mind.store.format import Header

    engine = FakeEngine()
    prefix = prefix_of(engine)
    store.put(Header(engine.fingerprint("m"), prefix.tokens, 0, len(prefix.tokens) - 1), b"not a state of this engine")
    result = warm(engine, store, engine.fingerprint("m"), prefix)
    assert result.state == "prefilled"
    assert "set aside" in result.reason


def test_a_full_store_still_warms_and_says_that_nothing_was_kept(tmp_path: Path) -> None:
    engine = FakeEngine()
    result = warm(engine, Store(tmp_path / "store", 10), engine.fingerprint("m"), prefix_of(engine))
    assert (result.state, result.snapshot, result.bytes_written) == ("prefilled", "", 0)
    assert "not stored" in result.reason


def test_fresh_ignores_what_is_stored(store: Store) -> None:
    engine = FakeEngine()
    prefix = prefix_of(engine)
    for _ in range(2):
        assert warm(engine, store, engine.fingerprint("m"), prefix, fresh=True).state == "prefilled"
    assert len(store.entries()) == 1
