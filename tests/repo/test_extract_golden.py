"""What is found in one small real file of each language, against a file that a person has read. UPDATE_GOLDEN=1 rewrites."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from carbon_mind.repo.extract import extract
from carbon_mind.repo.languages import LANGUAGES, language_of
from carbon_mind.values import Tags

GOLDEN = Path(__file__).parents[1] / "golden" / "extract"


def row_of(fact: object) -> object:
    """A fact as a list, the flag `local` as a word where it is set."""
    if not isinstance(fact, dict):
        return fact
    values = [value for key, value in fact.items() if key != "local"]
    return [*values, "local"] if fact.get("local") else values


def shown(tags: Tags) -> str:
    """One fact a line, so that a difference reads as one."""
    facts = asdict(tags)
    lines = ["{", f' "language": {json.dumps(facts["language"])},', f' "degraded": {json.dumps(facts["degraded"])},']
    for name in ("definitions", "references", "imports", "packages", "bases", "markers"):
        rows = [json.dumps(row_of(row), ensure_ascii=False) for row in facts[name]]
        lines.append(f' "{name}": [' + "".join(f"\n  {row}," for row in rows).rstrip(",") + "\n ],")
    return "\n".join(lines).rstrip(",") + "\n}\n"


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_golden(name: str) -> None:
    (source,) = (path for path in (GOLDEN / name).iterdir() if path.name != "expected.json")
    data = source.read_bytes()
    language = language_of(source.name, data)
    assert language is not None
    found = shown(extract(data, language))
    expected = GOLDEN / name / "expected.json"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_text(found, encoding="utf-8")
    wanted = expected.read_text(encoding="utf-8")
    assert json.loads(found)["language"] == name
    assert found == wanted, "\n" + "".join(
        difflib.unified_diff(wanted.splitlines(True), found.splitlines(True), f"{name}/expected.json", "found")
    )
