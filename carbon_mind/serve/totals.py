"""What a gateway has done since it was started, for people (`/carbon/status`) and for Prometheus (`/metrics`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX = "carbon_"


@dataclass(slots=True)
class Totals:
    """Sums over all requests."""

    began: float = field(default_factory=time.time)
    requests: Counter[str] = field(default_factory=Counter)  # by what became of the head, or "side", "failed" ...
    restored: int = 0  # tokens from disk
    kept: int = 0  # tokens that were in the slot still
    evaluated: int = 0  # tokens of prompts, heads included
    head_evaluated: int = 0  # of them, by the gateway to warm a head
    generated: int = 0
    head_s: float = 0.0  # seconds of evaluating heads
    lost: int = 0  # times that the server did not reuse a head that was there
    rescued: int = 0  # tool calls that were written as text
    cancelled: int = 0
    restarts: int = 0
    first_s: list[float] = field(default_factory=list)  # the last TTFTs, in seconds

    def first(self, seconds: float) -> None:
        """Remember when the first token of an answer came."""
        self.first_s.append(seconds)
        del self.first_s[:-1000]

    @property
    def seconds_saved(self) -> float:
        """What it would have taken to evaluate the tokens that came from disk, at the speed seen here; 0 while none is known."""
        return self.restored * self.head_s / self.head_evaluated if self.head_evaluated else 0.0

    @property
    def hit_rate(self) -> float | None:
        """Share of the requests with a head that found it, hot or restored; None before the first."""
        hits = self.requests["hot"] + self.requests["restored"]
        asked = hits + self.requests["extended"] + self.requests["prefilled"]
        return hits / asked if asked else None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        ordered = sorted(self.first_s)
        return {
            "uptime_s": round(time.time() - self.began, 1),
            "requests": dict(sorted(self.requests.items())),
            "hit_rate": self.hit_rate,
            "tokens": {
                "restored": self.restored,
                "kept": self.kept,
                "evaluated": self.evaluated,
                "generated": self.generated,
            },
            "seconds_saved": round(self.seconds_saved, 1),
            "lost_heads": self.lost,
            "rescued_tool_calls": self.rescued,
            "cancelled": self.cancelled,
            "restarts": self.restarts,
            "ttft_median_s": round(ordered[len(ordered) // 2], 4) if ordered else None,
        }


def exposition(totals: Totals, gauges: dict[str, float]) -> tuple[bytes, str]:
    """Everything in the text format of Prometheus, and its content type."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    class Collector:
        def collect(self) -> Iterator[Metric]:
            requests = CounterMetricFamily(
                PREFIX + "requests", "Requests by what became of their head", labels=["head"]
            )
            for name, count in sorted(totals.requests.items()):
                requests.add_metric([name], count)
            yield requests
            sums = {
                "tokens_restored": (totals.restored, "Tokens restored from disk"),
                "tokens_kept": (totals.kept, "Tokens of heads that were in their slot still"),
                "tokens_evaluated": (totals.evaluated, "Tokens of prompts that were evaluated"),
                "tokens_generated": (totals.generated, "Tokens generated"),
                "seconds_saved": (totals.seconds_saved, "Seconds that evaluating the restored tokens would have taken"),
                "lost_heads": (totals.lost, "Heads that were there and were evaluated again"),
                "rescued_tool_calls": (totals.rescued, "Tool calls that a model wrote as text"),
                "cancelled": (totals.cancelled, "Requests whose client went away"),
                "restarts": (totals.restarts, "Times that llama-server had to be started again"),
            }
            for name, (value, told) in sums.items():
                yield CounterMetricFamily(PREFIX + name, told, value=value)
            for name, value in gauges.items():
                yield GaugeMetricFamily(PREFIX + name, name.replace("_", " "), value=value)

    registry = CollectorRegistry()
    registry.register(Collector())
    return generate_latest(registry), CONTENT_TYPE_LATEST
