"""Warm starts by their counts: all tokens, then none, and of a changed prefix the changed part; what goes wrong is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from carbon_mind.engine.base import Engine, EngineOptions
from carbon_mind.engine.fake import FakeEngine
from carbon_mind.errors import EngineProblem
from carbon_mind.prefix.assemble import Chat, Head, assemble, render
from carbon_mind.store import states
from carbon_mind.store.format import Header
from carbon_mind.store.states import REJECTED, Store
from carbon_mind.values import Identity, Prefix, Span, WarmResult
from carbon_mind.warm import proceed, warm

DIGEST = (
    "# sample: repository digest\n\n## Commands\n- test: `make test` (Makefile:3)\n\n## Architecture\n"
    "- src/ (9 files, Python): leans on lib/\n\n## Known bugs\n- src/a.py:3 FIXME slow\n"
)
CHANGED = DIGEST.replace("FIXME slow", "BUG wrong")
HEAD = Head(DIGEST, volatile="Today's date: 2026-11-30")
QUESTION = "How do I run the tests?"

Reopen = Callable[[], Engine]


def chat_of(engine: Engine) -> Chat:
    info = engine.info
    return Chat(info.chat_template, info.bos_token, info.eos_token, info.special_tokens)


def prefix_of(engine: Engine, head: Head = HEAD) -> Prefix:
    return assemble(chat_of(engine), head, engine.tokenize, engine.piece)


def warmed(
    engine: Engine, store: Store | None, head: Head = HEAD, model: str = "m", *, fresh: bool = False
) -> WarmResult:
    return warm(engine, store, engine.fingerprint(model), prefix_of(engine, head), fresh=fresh)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", 1 << 30)


KINDS = ["fake", "dense", "recurrent", "hybrid", "sliding", pytest.param("smollm2", marks=pytest.mark.model)]
KINDS.append(pytest.param("gemma3", marks=(pytest.mark.model, pytest.mark.slow)))


@pytest.fixture
def reopen(request: pytest.FixtureRequest) -> Reopen:
    """Opens the same engine anew, as the next process would."""
    if request.param == "fake":
        return FakeEngine
    from carbon_mind.engine.llama import LlamaEngine

    real = request.param in ("smollm2", "gemma3")
    path = request.getfixturevalue(f"{request.param}_path" if real else "tiny")
    path = path if real else path(request.param)
    return lambda: LlamaEngine(EngineOptions(model=path, n_ctx=4096, threads=threads_for(request.param)))


def threads_for(kind: str) -> int:
    """Where a window lets cells go, a restored cache has the same cells in other places. With flash attention llama.cpp shares
    the cells of one query among its threads by their place, so that the rounding depends on it; with one thread nothing does."""
    return 1 if kind in ("sliding", "gemma3") else 0


every_kind = pytest.mark.parametrize("reopen", KINDS, indirect=True)


def answer(engine: Engine, head: Head = HEAD, question: str = QUESTION) -> tuple[object, list[str]]:
    prompt = engine.tokenize(render(chat_of(engine), head, question))
    assert proceed(engine, prompt) >= len(prefix_of(engine, head).tokens)
    return engine.logits(), [piece.text for piece in engine.generate(16)]


# --- hits --------------------------------------------------------------------------------------------------------


@every_kind
def test_all_tokens_once_then_none_and_the_answer_is_the_same(reopen: Reopen, store: Store) -> None:
    cold = reopen()
    prefix = prefix_of(cold)
    first = warmed(cold, store)
    assert (first.state, first.evaluated, first.restored) == ("prefilled", len(prefix.tokens), 0)
    assert [layer.name for layer in first.layers] == ["base", "digest", "volatile"]
    assert sum(layer.tokens for layer in first.layers) == len(prefix.tokens)
    sizes = [(store.folder / layer.snapshot).stat().st_size for layer in first.layers]
    assert [layer.bytes_written for layer in first.layers] == sizes
    assert first.bytes_written == sum(sizes)
    assert first.miss is not None
    assert first.miss.reason == "nothing has been stored yet"
    expected = answer(cold)
    cold.close()

    restored = reopen()
    second = warmed(restored, store)
    assert (second.state, second.evaluated, second.restored) == ("restored", 0, len(prefix.tokens))
    assert (second.bytes_written, second.miss) == (0, None)
    assert second.bytes_read == sum(layer.bytes_read for layer in second.layers) > 0
    assert restored.evaluated == 0, "the engine's own count is the proof"
    assert restored.held == prefix.tokens
    assert answer(restored) == expected, "logits bit for bit, and the text"
    assert [entry.hits for entry in store.entries()] == [1, 1, 1]
    restored.close()


def test_a_warm_start_writes_each_position_once(tiny: Callable[[str], Path], store: Store) -> None:
    """Three layers of a dense model cost what one snapshot of all would, but for what each says about itself."""
    from carbon_mind.engine.llama import LlamaEngine

    engine = LlamaEngine(EngineOptions(model=tiny("dense"), n_ctx=4096))
    result = warmed(engine, store)
    payloads = sum(
        len(store.read(layer.snapshot, engine.fingerprint("m"), engine.held).payload) for layer in result.layers
    )
    assert payloads < len(engine.save().data) * 1.02
    engine.close()


# --- partial hits ------------------------------------------------------------------------------------------------


@every_kind
def test_a_changed_digest_costs_its_own_layer_and_says_where_it_changed(reopen: Reopen, store: Store) -> None:
    engine = reopen()
    before, after = prefix_of(engine), prefix_of(engine, replace(HEAD, digest=CHANGED))
    warmed(engine, store)
    result = warmed(engine, store, replace(HEAD, digest=CHANGED))
    base = before.layers[0].end
    same = next(i for i, pair in enumerate(zip(before.tokens, after.tokens, strict=False)) if pair[0] != pair[1])
    assert base < same
    assert result.state == "extended"
    assert result.restored == (same if engine.info.rollback else base)
    assert result.evaluated == len(after.tokens) - result.restored
    assert [layer.restored > 0 for layer in result.layers] == [True, engine.info.rollback, False]
    assert [layer.bytes_written > 0 for layer in result.layers] == [False, True, True]
    assert result.miss is not None
    assert result.miss.difference is not None
    assert (result.miss.difference.at, result.miss.difference.where) == (same, "digest: Known bugs")
    assert result.miss.difference.stored.startswith(("FIX", " FIX", "F"))
    assert result.miss.difference.wanted.startswith(("BUG", " BUG", "B"))
    again = warmed(engine, store, replace(HEAD, digest=CHANGED))
    assert (again.state, again.evaluated) == ("restored", 0)
    assert warmed(engine, store).state == "restored", "the old digest is still there"
    assert len(store.entries()) == 5, "one base, two digests, two last lines"
    engine.close()


@every_kind
def test_what_is_extended_goes_on_like_what_was_never_saved(reopen: Reopen, store: Store) -> None:
    """From the end of a layer on the batches are the same, so the logits are; after a cut inside a layer they are others."""
    cold = reopen()
    warmed(cold, None, replace(HEAD, volatile="Today's date: 2026-12-01"))
    expected = answer(cold, replace(HEAD, volatile="Today's date: 2026-12-01"))
    cold.reset()
    warmed(cold, store)
    cold.close()
    engine = reopen()
    if engine.info.rollback:  # so that nothing is cut
        store.remove(store.entries()[-1].name)
    result = warmed(engine, store, replace(HEAD, volatile="Today's date: 2026-12-01"))
    assert result.state == "extended"
    assert result.restored == sum(layer.tokens for layer in result.layers[:2])
    assert answer(engine, replace(HEAD, volatile="Today's date: 2026-12-01")) == expected
    engine.close()


@every_kind
def test_one_base_serves_every_repository(reopen: Reopen, store: Store) -> None:
    engine = reopen()
    other = replace(HEAD, digest="# other: repository digest\n\n## Commands\n- run: `go run .` (go.mod)\n")
    first = warm(
        engine, store, engine.fingerprint("m"), prefix_of(engine), labels=(("repository", "one"), ("model", "x"))
    )
    second = warm(
        engine, store, engine.fingerprint("m"), prefix_of(engine, other), labels=(("repository", "two"), ("model", "x"))
    )
    assert second.layers[0].snapshot == first.layers[0].snapshot
    assert second.layers[0].restored == second.layers[0].tokens
    assert second.restored >= prefix_of(engine).layers[0].end
    headers = [store.header(layer.snapshot) for layer in second.layers]
    assert [dict(header.labels).get("repository") for header in headers if header] == [None, "two", "two"]
    engine.close()


# --- the question ------------------------------------------------------------------------------------------------


@every_kind
def test_a_suffix_of_no_token_and_of_one_has_the_right_scores(reopen: Reopen, store: Store) -> None:
    engine = reopen()
    prefix = prefix_of(engine)
    for suffix in ((), engine.tokenize("x")[:1]):
        prompt = prefix.tokens + suffix
        warmed(engine, None)  # the state that was never saved
        if not suffix and not engine.info.rollback:
            engine.reset()  # the last token cannot be dropped: all of them are evaluated, in one go
            engine.prefill(prompt)
        else:
            engine.truncate(len(prompt) - 1)
            engine.prefill(prompt[-1:])
        expected = engine.logits()

        warmed(engine, store)
        assert warmed(engine, store).state == "restored"
        before = engine.evaluated
        reused = proceed(engine, prompt)
        evaluated = engine.evaluated - before
        assert reused + evaluated == len(prompt)
        assert evaluated == (1 if suffix or engine.info.rollback else len(prompt))
        assert engine.held == prompt
        assert engine.logits() == expected, "bit for bit"
    with pytest.raises(EngineProblem, match="empty prompt"):
        proceed(engine, ())
    engine.close()


@every_kind
def test_a_second_question_reuses_the_prefix_or_starts_over_and_never_answers_from_the_first(
    reopen: Reopen, store: Store
) -> None:
    engine = reopen()
    warmed(engine, store)
    warmed(engine, store)
    expected = answer(engine)
    warmed(engine, store)
    answer(engine, question="What is this?")
    prompt = engine.tokenize(render(chat_of(engine), HEAD, QUESTION))
    reused = proceed(engine, prompt)
    assert engine.held == prompt
    assert (reused > 0) is engine.info.rollback
    if engine.info.rollback:
        assert engine.logits() == expected[0]
    engine.close()


def test_with_a_window_and_more_threads_only_the_rounding_differs(tiny: Callable[[str], Path], store: Store) -> None:
    from carbon_mind.engine.llama import LlamaEngine

    def scores(flash: Literal["on", "off"], kept: Store | None) -> Sequence[float]:
        options = EngineOptions(model=tiny("sliding"), n_ctx=4096, threads=2, flash_attention=flash)
        engine = LlamaEngine(options)
        warmed(engine, kept)
        warmed(engine, kept)
        engine.prefill(engine.tokenize("x"))
        found = engine.logits()
        engine.close()
        return found

    def apart(left: Sequence[float], right: Sequence[float]) -> float:
        return max(abs(a - b) for a, b in zip(left, right, strict=True))

    kernels = apart(scores("on", None), scores("off", None))
    assert 0 < kernels < 0.05
    assert apart(scores("on", None), scores("on", store)) <= 2 * kernels
    assert apart(scores("off", None), scores("off", store)) == 0


# --- misses ------------------------------------------------------------------------------------------------------


def test_another_model_never_gets_the_state(store: Store) -> None:
    engine = FakeEngine()
    prefix = prefix_of(engine)
    warmed(engine, store, model="one")
    other = warmed(FakeEngine(), store, model="two")
    assert (other.state, other.evaluated) == ("prefilled", len(prefix.tokens))
    assert other.miss is not None
    assert [change.field for change in other.miss.changes] == ["model"]


def test_a_model_of_another_name_is_not_a_changed_model(store: Store) -> None:
    engine = FakeEngine()
    warm(engine, store, engine.fingerprint("one"), prefix_of(engine), labels=(("model", "one.gguf"),))
    other = warm(engine, store, engine.fingerprint("two"), prefix_of(engine), labels=(("model", "two.gguf"),))
    assert other.miss is not None
    assert other.miss.reason == "nothing has been stored for this model yet"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"n_ctx": 2048}, "n_ctx"),
        ({"type_k": "q8_0", "flash_attention": "on"}, "type_k"),
        ({"type_v": "q8_0", "flash_attention": "on"}, "type_v"),
        ({"flash_attention": "off"}, "flash_attn"),
        ({"rope_freq_base": 20000.0}, "rope_freq_base"),
        ({"rope_freq_scale": 0.5}, "rope_freq_scale"),
        ({"lora": 0.5}, "lora"),
    ],
)
def test_each_setting_that_changes_the_state_is_a_miss_with_its_reason(
    changed: dict[str, object], field: str, tiny: Callable[[str], Path], store: Store, tmp_path: Path
) -> None:
    from carbon_mind.engine.base import Adapter
    from carbon_mind.engine.llama import LlamaEngine
    from tests.tiny_models import adapter

    path = adapter(tmp_path / "lora.gguf")

    def start(**options: object) -> WarmResult:
        scale = options.pop("lora", 1.0)
        settings = {"model": tiny("dense"), "n_ctx": 4096, "flash_attention": "on", **options}
        engine = LlamaEngine(EngineOptions(**settings, lora=(Adapter(path, "a" * 64, scale),)))  # type: ignore[arg-type]
        result = warmed(engine, store)
        engine.close()
        return result

    start()
    miss = start(**changed)
    assert (miss.state, miss.restored) == ("prefilled", 0)
    assert miss.miss is not None
    assert [change.field for change in miss.miss.changes] == [field]
    assert f"{field} (" in miss.miss.reason
    assert " -> " in miss.miss.reason
    assert start(n_batch=64, threads=1).state == "restored", "batch size and threads change no state"


def test_a_setup_that_differs_in_much_is_told_shortly(store: Store) -> None:
    engine = FakeEngine()
    warmed(engine, store)
    identity = Identity("other", "1" * 64, "m", (("n_ctx", "1"), ("type_k", "q8_0")))
    result = warm(engine, store, identity, prefix_of(engine))
    assert result.miss is not None
    assert result.miss.reason.endswith("and 1 more")
    assert len(result.miss.changes) == 4


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-5], lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data + b"\0"]
)
@every_kind
def test_a_damaged_layer_costs_its_prefill_and_is_replaced(
    reopen: Reopen, store: Store, damage: Callable[[bytes], bytes], which: int
) -> None:
    engine = reopen()
    first = warmed(engine, store)
    path = store.folder / first.layers[which].snapshot
    path.write_bytes(damage(path.read_bytes()))
    second = warmed(engine, store)
    kept = sum(layer.tokens for layer in first.layers[:which])
    assert (second.restored, second.evaluated) == (kept, first.tokens - kept)
    assert second.miss is not None
    assert f"snapshot {path.name[:12]} was set aside" in second.miss.reason
    assert store.rejected() == [path.name + REJECTED]
    assert warmed(engine, store).state == "restored"
    engine.close()


def test_a_payload_that_the_engine_refuses_is_set_aside(store: Store) -> None:
    engine = FakeEngine()
    prefix = prefix_of(engine)
    tokens = len(prefix.tokens)
    header = Header(
        identity=engine.fingerprint("m"),
        tokens=prefix.tokens,
        pos_min=0,
        pos_max=tokens - 1,
        layers=(Span("all", tokens),),
    )
    name = store.put(header, b"not a state of this engine")[0]
    result = warm(engine, store, engine.fingerprint("m"), prefix)
    assert result.state == "prefilled"
    assert result.miss is not None
    assert f"{name[:12]} was set aside" in result.miss.reason
    assert warm(engine, store, engine.fingerprint("m"), prefix).state == "restored"


def test_a_second_best_is_tried_when_the_best_is_damaged(store: Store) -> None:
    engine = FakeEngine()
    for volatile in ("Today's date: 2026-11-28", "Today's date: 2026-11-29"):
        warmed(engine, store, replace(HEAD, volatile=volatile))
    best = store.entries()[-1].name
    (store.folder / best).write_bytes((store.folder / best).read_bytes()[:-1])
    result = warmed(engine, store)
    assert result.state == "extended"
    assert result.restored > sum(layer.tokens for layer in result.layers[:2]), "cut from the other day's"


def test_a_state_that_cannot_be_cut_is_tried_once(store: Store) -> None:
    class Uncut(FakeEngine):
        """Says that it could, and cannot."""

        def truncate(self, length: int) -> bool:
            return length == len(self.held)

    engine = Uncut()
    before = warmed(engine, store)
    result = warmed(engine, store, replace(HEAD, digest=CHANGED))
    assert result.state == "extended"
    assert result.restored == before.layers[0].tokens
    assert result.miss is not None
    assert "cannot be cut" in result.miss.reason


# --- a store that cannot ------------------------------------------------------------------------------------------


def test_a_full_store_still_warms_and_says_that_nothing_was_kept(tmp_path: Path) -> None:
    engine = FakeEngine()
    result = warmed(engine, Store(tmp_path / "store", 10))
    assert (result.state, result.bytes_written) == ("prefilled", 0)
    assert {layer.snapshot for layer in result.layers} == {""}
    assert result.miss is not None
    assert "larger than the store's budget" in result.miss.not_stored


def test_a_full_disk_still_warms(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "SPARE", 1 << 60)
    result = warmed(FakeEngine(), store)
    assert result.state == "prefilled"
    assert result.miss is not None
    assert "free" in result.miss.not_stored
    assert store.entries() == []


@pytest.mark.parametrize(
    "how", [pytest.param("mode", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")), "lock"]
)
def test_a_read_only_store_still_restores_and_still_warms(store: Store, how: str) -> None:
    warmed(FakeEngine(), store)
    if how == "mode":
        store.folder.chmod(0o500)
    else:
        (store.folder / states.LOCK).mkdir()
    try:
        assert warmed(FakeEngine(), store).state == "restored"
        changed = warmed(FakeEngine(), store, replace(HEAD, digest=CHANGED))
        assert changed.state == "extended"
        assert changed.miss is not None
        assert "cannot be written" in changed.miss.not_stored
    finally:
        store.folder.chmod(0o700)


def test_without_a_store_everything_is_evaluated() -> None:
    result = warmed(FakeEngine(), None)
    assert (result.state, result.restored, result.bytes_written) == ("prefilled", 0, 0)
    assert result.miss is not None
    assert result.miss.reason == "there is no store"


def test_nothing_is_stored_that_would_be_slower_to_restore_than_to_evaluate(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carbon_mind.warm.bandwidth", lambda _folder: 1.0)  # a byte a second
    result = warmed(FakeEngine(), store)
    assert result.miss is not None
    assert "takes longer" in result.miss.not_stored
    assert "MB/s" in result.miss.not_stored
    assert store.entries() == []
    monkeypatch.setattr("carbon_mind.warm.bandwidth", lambda _folder: 1e15)
    assert warmed(FakeEngine(), store).miss is not None
    assert len(store.entries()) == 3


def test_fresh_ignores_what_is_stored_and_writes_it_anew(store: Store) -> None:
    engine = FakeEngine()
    for _ in range(2):
        result = warmed(engine, store, fresh=True)
        assert result.state == "prefilled"
        assert result.bytes_written > 0
        assert result.miss is not None
        assert result.miss.reason == "asked for"
    assert len(store.entries()) == 3


def test_progress_goes_once_from_nothing_to_all_over_the_layers(store: Store) -> None:
    engine = FakeEngine(n_batch=50)
    seen: list[tuple[int, int]] = []
    prefix = prefix_of(engine)
    warm(engine, store, engine.fingerprint("m"), prefix, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(prefix.tokens), len(prefix.tokens))
    assert {total for _, total in seen} == {len(prefix.tokens)}
