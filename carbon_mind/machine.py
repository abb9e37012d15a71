"""What this machine offers to a process: cores, and a CPU with vector features."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_FEATURE = re.compile(r"(amx|avx|sve|sme(?!p)|neon|asimd|i8mm|dotprod|f16c|fma|bf16)")


@dataclass(frozen=True, slots=True)
class Cpu:
    """What decides which kernels run."""

    model: str
    features: tuple[str, ...]  # the SIMD and matrix ones, sorted


def cpu() -> Cpu:
    """Name and vector features of this CPU; from /proc/cpuinfo where there is one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return Cpu(platform.processor() or platform.machine(), ())
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    features = sorted({flag for flag in flags if _FEATURE.match(flag)})
    return Cpu(facts.get("model name") or platform.machine(), tuple(features))


def usable_cores() -> int:
    """Cores that this process may run on, which a container or taskset makes fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
