"""The ranker: both implementations against hand-worked scores, against each other to the last bit, and on bad input."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbon_mind.repo import pagerank as module
from carbon_mind.repo.pagerank import Ranker, pagerank, pagerank_native, pagerank_pure, ranker_name

MUST_HAVE_NATIVE = os.environ.get("CARBON_MIND_REQUIRE_NATIVE") == "1"
needs_native = pytest.mark.skipif(
    not module.HAVE_NATIVE and not MUST_HAVE_NATIVE, reason="carbon_mind._native is not built: pip install -e ."
)
both = pytest.mark.parametrize("rank", [pagerank_pure, pytest.param(pagerank_native, marks=needs_native)])

Edges = list[tuple[int, int, float]]
HUGE = sys.float_info.max


def arrays(edges: Edges) -> tuple[array[int], array[int], array[float]]:
    return (
        array("i", [s for s, _, _ in edges]),
        array("i", [t for _, t, _ in edges]),
        array("d", [w for _, _, w in edges]),
    )


def run(rank: Ranker, n: int, edges: Edges, restart: list[float] | None = None, **options: Any) -> tuple[float, ...]:
    return rank(n, *arrays(edges), array("d", restart or []), **options)


def test_native_is_built_where_ci_insists() -> None:
    assert module.HAVE_NATIVE or not MUST_HAVE_NATIVE


# --- known scores --------------------------------------------------------------------------------------------


@both
def test_nothing_to_rank(rank: Ranker) -> None:
    assert run(rank, 0, []) == ()


@both
def test_without_edges_the_scores_are_the_restart_vector(rank: Ranker) -> None:
    assert run(rank, 4, []) == (0.25, 0.25, 0.25, 0.25)
    assert run(rank, 4, [], [0.0, 0.0, 0.0, 0.0]) == (0.25, 0.25, 0.25, 0.25)
    assert run(rank, 4, [], [1.0, 0.0, 3.0, 0.0]) == (0.25, 0.0, 0.75, 0.0)


@both
def test_one_round_by_hand(rank: Ranker) -> None:
    # 0 -> 1 from (1/2, 1/2), damping 1/2: node 1 is dangling, so base = 1/2 + 1/2 * 1/2 = 3/4, and
    # next = (3/4 * 1/2, 3/4 * 1/2 + 1/2 * 1/2). All are exact in binary.
    assert run(rank, 2, [(0, 1, 1.0)], damping=0.5, max_iter=1) == (0.375, 0.625)


@both
def test_fixed_points_by_hand(rank: Ranker) -> None:
    # r0 = (1/2 + r1/2) / 2, r0 + r1 = 1
    assert run(rank, 2, [(0, 1, 1.0)], damping=0.5) == pytest.approx((0.4, 0.6), abs=1e-9)
    # A cycle is symmetric, and stays so.
    assert run(rank, 3, [(0, 1, 2.0), (1, 2, 5.0), (2, 0, 0.5)]) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    # Star of two: r0 = 0.05 + 0.85 (r1 + r2), r1 = r2 = 0.05 + 0.425 r0, so r0 = 0.135 / 0.2775
    star = [(1, 0, 1.0), (2, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0)]
    assert run(rank, 3, star)[0] == pytest.approx(0.135 / 0.2775, abs=1e-9)


@both
def test_weights_share_out_a_score(rank: Ranker) -> None:
    scores = run(rank, 3, [(0, 1, 3.0), (0, 2, 1.0)], [1.0, 0.0, 0.0])
    assert scores[1] / scores[2] == pytest.approx(3.0)


@both
def test_a_self_loop_keeps_its_score(rank: Ranker) -> None:
    # Without restart, the loop is a trap: everything ends in node 1.
    assert run(rank, 2, [(0, 1, 1.0), (1, 1, 1.0)], damping=1.0) == (0.0, 1.0)


@both
def test_repeated_edges_add_up_and_zero_edges_are_none(rank: Ranker) -> None:
    once = run(rank, 3, [(0, 1, 2.0), (0, 2, 2.0), (1, 0, 1.0)])
    again = run(rank, 3, [(0, 1, 1.0), (0, 2, 2.0), (0, 1, 1.0), (1, 0, 1.0), (2, 1, 0.0)])
    assert once == again


@both
def test_a_node_with_only_zero_edges_dangles(rank: Ranker) -> None:
    assert run(rank, 2, [(1, 0, 0.0), (0, 1, 1.0)]) == run(rank, 2, [(0, 1, 1.0)])


@both
def test_max_iter_is_no_error(rank: Ranker) -> None:
    edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (2, 1, 1.0)]
    assert run(rank, 3, edges, max_iter=1) != run(rank, 3, edges, max_iter=2)
    assert run(rank, 3, edges) == run(rank, 3, edges, max_iter=100_000)  # stopped by tol


def frozen_graph() -> tuple[Edges, list[float]]:
    """The graph of `larger` in native/tests/test_rank.cpp."""
    state = 1

    def random(below: int) -> int:
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state >> 8) % below

    edges = [(random(1800), random(2000), random(1000) / 7.0) for _ in range(10_000)]
    return edges, [float(random(50)) for _ in range(2000)]


@both
def test_frozen_bits(rank: Ranker) -> None:
    """The same number as in native/tests/test_rank.cpp: it changes only when the definition does."""
    edges, restart = frozen_graph()
    value = 14695981039346656037
    for byte in struct.pack("<2000d", *run(rank, 2000, edges, restart)):
        value = (value ^ byte) * 1099511628211 % 2**64
    assert f"{value:016x}" == "e95b5d8e0f3c42f8"


# --- one definition ------------------------------------------------------------------------------------------

weights = st.one_of(st.floats(0.0, 1e6), st.floats(0.0, 1e-300), st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e300]))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges, list[float], dict[str, Any]]:
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, weights), max_size=40))
    restart = draw(st.one_of(st.just([]), st.lists(weights, min_size=n, max_size=n)))
    options = {
        "damping": draw(st.floats(0.0, 1.0)),
        "tol": draw(st.sampled_from([0.0, 1e-10, 1e-3])),
        "max_iter": draw(st.integers(1, 60)),
    }
    return n, edges, restart, options


@needs_native
@settings(deadline=None)
@given(graphs())
def test_the_implementations_agree_to_the_last_bit(graph: tuple[int, Edges, list[float], dict[str, Any]]) -> None:
    n, edges, restart, options = graph
    native = run(pagerank_native, n, edges, restart, **options)
    pure = run(pagerank_pure, n, edges, restart, **options)
    assert struct.pack(f"{n}d", *native) == struct.pack(f"{n}d", *pure)


@settings(deadline=None)
@given(graphs())
def test_scores_are_a_distribution(graph: tuple[int, Edges, list[float], dict[str, Any]]) -> None:
    n, edges, restart, options = graph
    scores = run(pagerank, n, edges, restart, **options)
    assert len(scores) == n
    assert all(score >= 0.0 for score in scores)
    assert math.fsum(scores) == pytest.approx(1.0, abs=1e-9)


@needs_native
def test_threads_rank_the_same() -> None:
    edges, restart = frozen_graph()
    expected = run(pagerank_native, 2000, edges, restart)
    results: list[tuple[float, ...]] = []
    threads = [
        threading.Thread(target=lambda: results.append(run(pagerank_native, 2000, edges, restart))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


# --- refusals: both say the same -----------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "n": 2,
    "src": array("i", [0, 1]),
    "dst": array("i", [1, 0]),
    "weight": array("d", [1.0, 1.0]),
    "personalization": array("d", [1.0, 1.0]),
}
INDEX = "src and dst must hold numbers from 0 up to n - 1"
WEIGHT = "weight must hold finite numbers that are not negative"
WISH = "personalization must hold finite numbers that are not negative"
INFINITY = "the weights of one source, or the personalization, add up to infinity"
LENGTH = "src, dst and weight must have the same length"

REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n": -1}, ValueError, "n must be between 0 and 2147483647"),
    ({"n": 2**31}, ValueError, "n must be between 0 and 2147483647"),
    ({"n": 2**80}, ValueError, "n must be between 0 and 2147483647"),
    ({"n": 2.0}, TypeError, "'float' object cannot be interpreted as an integer"),
    ({"n": 0, "personalization": array("d")}, ValueError, INDEX),
    ({"n": 1, "personalization": array("d")}, ValueError, INDEX),
    ({"damping": -0.1}, ValueError, "damping must be between 0 and 1"),
    ({"damping": 1.5}, ValueError, "damping must be between 0 and 1"),
    ({"damping": math.nan}, ValueError, "damping must be between 0 and 1"),
    ({"damping": "0.85"}, TypeError, "must be real number, not str"),
    ({"damping": 10**400}, OverflowError, "int too large to convert to float"),
    ({"tol": -1e-9}, ValueError, "tol must be finite and not negative"),
    ({"tol": math.inf}, ValueError, "tol must be finite and not negative"),
    ({"tol": math.nan}, ValueError, "tol must be finite and not negative"),
    ({"max_iter": 0}, ValueError, "max_iter must be between 1 and 2147483647"),
    ({"max_iter": 2**31}, ValueError, "max_iter must be between 1 and 2147483647"),
    ({"max_iter": None}, TypeError, "'NoneType' object cannot be interpreted as an integer"),
    ({"src": [0, 1]}, TypeError, "src must be a buffer of int32"),
    ({"src": array("q", [0, 1])}, TypeError, "src must be a buffer of int32"),
    ({"dst": array("I", [0, 1])}, TypeError, "dst must be a buffer of int32"),
    ({"dst": array("f", [0, 1])}, TypeError, "dst must be a buffer of int32"),
    ({"weight": b"\0" * 16}, TypeError, "weight must be a buffer of float64"),
    ({"weight": array("f", [1, 1])}, TypeError, "weight must be a buffer of float64"),
    ({"weight": None}, TypeError, "weight must be a buffer of float64"),
    ({"personalization": array("i", [1, 1])}, TypeError, "personalization must be a buffer of float64"),
    ({"personalization": b""}, TypeError, "personalization must be a buffer of float64"),
    ({"src": memoryview(array("i", [0, 9, 1, 9]))[::2]}, ValueError, "src must be one-dimensional and contiguous"),
    (
        {"src": memoryview(array("i", [0, 1])).cast("B").cast("i", (1, 2))},
        ValueError,
        "src must be one-dimensional and contiguous",
    ),
    ({"src": array("i", [0])}, ValueError, LENGTH),
    ({"dst": array("i", [0, 1, 1])}, ValueError, LENGTH),
    ({"weight": array("d", [1.0])}, ValueError, LENGTH),
    ({"personalization": array("d", [1.0])}, ValueError, "personalization must be empty or have n entries"),
    ({"src": array("i", [0, 2])}, ValueError, INDEX),
    ({"src": array("i", [0, -1])}, ValueError, INDEX),
    ({"dst": array("i", [-(2**31), 1])}, ValueError, INDEX),
    ({"dst": array("i", [0, 2**31 - 1])}, ValueError, INDEX),
    ({"weight": array("d", [1.0, -1.0])}, ValueError, WEIGHT),
    ({"weight": array("d", [math.nan, 1.0])}, ValueError, WEIGHT),
    ({"weight": array("d", [math.inf, 1.0])}, ValueError, WEIGHT),
    ({"personalization": array("d", [1.0, -1.0])}, ValueError, WISH),
    ({"personalization": array("d", [math.nan, 1.0])}, ValueError, WISH),
    ({"personalization": array("d", [HUGE, HUGE])}, ValueError, INFINITY),
    ({"src": array("i", [0, 0]), "weight": array("d", [HUGE, HUGE])}, ValueError, INFINITY),
    # Two faults at once: the order of the checks is part of the definition.
    ({"n": -1, "damping": "x"}, ValueError, "n must be between 0 and 2147483647"),
    ({"damping": 2.0, "src": [0]}, TypeError, "src must be a buffer of int32"),
    ({"damping": 2.0, "src": array("i")}, ValueError, LENGTH),
    ({"tol": -1.0, "damping": 2.0}, ValueError, "damping must be between 0 and 1"),
    ({"src": array("i", [0, 7]), "weight": array("d", [-1.0, 1.0])}, ValueError, WEIGHT),
    ({"weight": array("d", [1.0, -1.0]), "personalization": array("d", [-1.0, 0.0])}, ValueError, WEIGHT),
]


@both
@pytest.mark.parametrize(("change", "error", "message"), REFUSALS)
def test_refusal(rank: Ranker, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        rank(**(GOOD | change))
    assert str(caught.value) == message


@both
def test_ints_are_fine_where_numbers_are_wanted(rank: Ranker) -> None:
    assert rank(**GOOD, damping=1, tol=0) == (0.5, 0.5)
    assert rank(True, *arrays([]), array("d")) == (1.0,)


@needs_native
@pytest.mark.parametrize("arguments", [(), (1, 2, 3), (0,) * 9])
def test_native_wants_eight_arguments(arguments: tuple[Any, ...]) -> None:
    from carbon_mind import _native

    with pytest.raises(TypeError, match="8"):
        _native.rank(*arguments)


# --- which one runs ------------------------------------------------------------------------------------------


def test_the_environment_can_force_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARBON_MIND_PURE", "1")
    assert ranker_name() == "pure"
    monkeypatch.delenv("CARBON_MIND_PURE")
    assert ranker_name() == ("native" if module.HAVE_NATIVE else "pure")


def test_works_where_native_cannot_be_imported() -> None:
    program = (
        "import sys; sys.modules['carbon_mind._native'] = None\n"
        "from array import array\n"
        "from carbon_mind.repo.pagerank import pagerank, ranker_name\n"
        "print(ranker_name(), pagerank(2, array('i', [0]), array('i', [1]), array('d', [1]), array('d'), damping=0.5,"
        " max_iter=1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "pure (0.375, 0.625)\n"
