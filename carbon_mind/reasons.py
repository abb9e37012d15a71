"""Why a file matters, in numbers that a person can check: one wording for the digest and for notes."""

from __future__ import annotations

from carbon_mind.safety.safe import safe
from carbon_mind.values import RankedFile


def reason(file: RankedFile) -> str:
    """`entry point; imported by 7 files; Flask x30`; "" where there is none."""
    reasons = ["entry point"] if file.entry else []
    # Where an import names a whole package (Go, C#), or a header stands for the code (C), no import names the file itself.
    count, how = (file.imported_by, "imported") if file.imported_by else (file.used_by, "used")
    if count:
        reasons.append(f"{how} by {count} file{'s' * (count != 1)}")
    if file.top_symbols:
        definition, uses = file.top_symbols[0]
        reasons.append(f"{safe(definition.name, 60)} x{uses}")
    return "; ".join(reasons)
