"""The files that many others lean on, why, and the few signatures of theirs that others use."""

from __future__ import annotations

from dataclasses import replace

from carbon_mind.evidence import Evidence
from carbon_mind.reasons import reason
from carbon_mind.safety.safe import safe
from carbon_mind.values import CriticalFile, RankedFile, RepoPath

MAX_CRITICAL = 12
MAX_SIGNATURES = 2  # of one file
MAX_SIGNED_FILES = 8
SIGNATURE = 110  # characters


def critical_files(evidence: Evidence) -> tuple[CriticalFile, ...]:
    """The first files in rank that are this project's own and that anything leans on."""
    chosen = [
        file for file in evidence.ranked if evidence.kind(file.path) == "source" and (file.used_by or file.entry)
    ][:MAX_CRITICAL]
    found = [CriticalFile(RepoPath(safe(file.path, 160)), reason(file), _signatures(file)) for file in chosen]
    return tuple(file if i < MAX_SIGNED_FILES else replace(file, signatures=()) for i, file in enumerate(found))


def _signatures(file: RankedFile) -> tuple[str, ...]:
    shown = (f"{definition.line}: {safe(definition.signature, SIGNATURE)}" for definition, _ in file.top_symbols)
    return tuple(shown)[:MAX_SIGNATURES]
