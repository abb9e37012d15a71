"""Personalised PageRank over a weighted directed graph: which nodes does the rest lean on?

Two implementations of one definition, which `native/carbon_rank.h` writes down to the order of each sum. The compiled
one is some seventy times as fast; the Python one is the test oracle and the fallback. Both give the same bits on every
machine, so a digest does not depend on which of them ran. Whoever changes one changes both.
"""

from __future__ import annotations

import math
import operator
import os
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from array import array

try:
    from carbon_mind import _native
except ImportError:  # a source checkout without a build, or a wheel of another platform
    HAVE_NATIVE = False
else:
    HAVE_NATIVE = True

_INT32_MAX = 2**31 - 1
_OVERFLOW = "the weights of one source, or the personalization, add up to infinity"


class Ranker(Protocol):
    """The signature that both implementations share."""

    def __call__(
        self,
        n: int,
        src: array[int],
        dst: array[int],
        weight: array[float],
        personalization: array[float],
        *,
        damping: float = 0.85,
        tol: float = 1e-10,
        max_iter: int = 200,
    ) -> tuple[float, ...]: ...


def ranker_name() -> Literal["native", "pure"]:
    """Which implementation `pagerank` uses now; `CARBON_MIND_PURE=1` forces the Python one."""
    return "native" if HAVE_NATIVE and os.environ.get("CARBON_MIND_PURE") != "1" else "pure"


def pagerank(
    n: int,
    src: array[int],
    dst: array[int],
    weight: array[float],
    personalization: array[float],
    *,
    damping: float = 0.85,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> tuple[float, ...]:
    """Score nodes `0 .. n - 1`; the scores are not negative and add up to 1 within rounding.

    `src`, `dst` (typecode `i`) and `weight` (typecode `d`) are parallel: edge `e` passes a part of the score of
    `src[e]` to `dst[e]`, in proportion to its weight. Repeated edges and self loops count; an edge of weight 0 does not.
    `personalization` (typecode `d`) has `n` entries, or none, or only zeros for uniform: where the walk restarts, and
    where the score of a node without outgoing edges goes. Stops when the scores move by no more than `tol` in total, or
    after `max_iter` rounds, which is no error.

    Raises TypeError for a buffer of another item type and ValueError for a value that is out of range, not finite or
    negative, or for lengths that do not match.
    """
    ranker: Ranker = pagerank_native if ranker_name() == "native" else pagerank_pure
    return ranker(n, src, dst, weight, personalization, damping=damping, tol=tol, max_iter=max_iter)


def pagerank_native(
    n: int,
    src: array[int],
    dst: array[int],
    weight: array[float],
    personalization: array[float],
    *,
    damping: float = 0.85,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> tuple[float, ...]:
    """`pagerank`, compiled. Only where `HAVE_NATIVE`; other threads run meanwhile."""
    scores = _native.rank(n, src, dst, weight, personalization, damping, tol, max_iter)
    return tuple(memoryview(scores).cast("d"))


def pagerank_pure(
    n: int,
    src: array[int],
    dst: array[int],
    weight: array[float],
    personalization: array[float],
    *,
    damping: float = 0.85,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> tuple[float, ...]:
    """`pagerank` in Python: the reference. Every `+` below is one rounding in a fixed order.

    `sum` would be shorter and wrong: since Python 3.12 it compensates, so its result depends on the version.
    """
    n = _count(n, 0, "n")
    damping, tol = _real(damping), _real(tol)
    max_iter = _count(max_iter, 1, "max_iter")
    sources: list[int] = _items(src, "src", "il", 4, "int32")
    targets: list[int] = _items(dst, "dst", "il", 4, "int32")
    weights: list[float] = _items(weight, "weight", "d", 8, "float64")
    wishes: list[float] = _items(personalization, "personalization", "d", 8, "float64")
    if not len(sources) == len(targets) == len(weights):
        raise ValueError("src, dst and weight must have the same length")
    if wishes and len(wishes) != n:
        raise ValueError("personalization must be empty or have n entries")
    if not 0.0 <= damping <= 1.0:
        raise ValueError("damping must be between 0 and 1")
    if not _is_weight(tol):
        raise ValueError("tol must be finite and not negative")

    out = _outgoing(n, sources, targets, weights)
    p = _normalise(wishes, n)
    inflows: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for s, t, w in zip(sources, targets, weights, strict=True):
        if w > 0.0:
            inflows[t].append((s, w / out[s]))
    dangling = [v for v in range(n) if out[v] == 0.0]
    rank = p
    for _ in range(max_iter):
        lost = 0.0
        for v in dangling:
            lost += rank[v]
        base = (1.0 - damping) + damping * lost
        following = []
        moved = 0.0
        for v, edges in enumerate(inflows):
            inflow = 0.0
            for s, share in edges:
                inflow += rank[s] * share
            score = base * p[v] + damping * inflow
            moved += abs(score - rank[v])
            following.append(score)
        rank = following
        if moved <= tol:
            break
    return tuple(rank)


def _outgoing(n: int, sources: list[int], targets: list[int], weights: list[float]) -> list[float]:
    out = [0.0] * n
    for s, t, w in zip(sources, targets, weights, strict=True):
        if not (0 <= s < n and 0 <= t < n):
            raise ValueError("src and dst must hold numbers from 0 up to n - 1")
        if not _is_weight(w):
            raise ValueError("weight must hold finite numbers that are not negative")
        out[s] += w
    if math.inf in out:
        raise ValueError(_OVERFLOW)
    return out


def _normalise(wishes: list[float], n: int) -> list[float]:
    total = 0.0
    for wish in wishes:
        if not _is_weight(wish):
            raise ValueError("personalization must hold finite numbers that are not negative")
        total += wish
    if total == math.inf:
        raise ValueError(_OVERFLOW)
    return [wish / total for wish in wishes] if total > 0.0 else [1.0 / n] * n if n else []


def _is_weight(value: float) -> bool:
    return math.isfinite(value) and value >= 0.0


def _real(value: float) -> float:
    math.isfinite(value)  # TypeError for a str, which float() would convert
    return float(value)


def _count(value: int, least: int, name: str) -> int:
    number = operator.index(value)
    if not least <= number <= _INT32_MAX:
        raise ValueError(f"{name} must be between {least} and {_INT32_MAX}")
    return number


def _items(buffer: Any, name: str, formats: str, itemsize: int, wanted: str) -> list[Any]:
    try:
        view = memoryview(buffer)
    except (TypeError, BufferError):
        raise TypeError(f"{name} must be a buffer of {wanted}") from None
    with view:
        if len(view.format) != 1 or view.format not in formats or view.itemsize != itemsize:
            raise TypeError(f"{name} must be a buffer of {wanted}")
        if view.ndim != 1 or not view.c_contiguous:
            raise ValueError(f"{name} must be one-dimensional and contiguous")
        return view.tolist()
