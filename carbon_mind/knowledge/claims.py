"""What a small model says of a repository, and which of it may stand: it names what exists, and says nothing that the facts do not bear.

A model of a few hundred million parameters writes well and knows little. So a claim is short, points to paths or symbols that are
there, and every name, number and command in it is looked up. What does not survive is dropped and counted, never corrected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from carbon_mind.safety.safe import safe

SECTIONS = ("purpose", "flow", "watch_out")
TEXT = 160
"""Characters of a claim."""
LEAST = 4
"""Words of a claim that are no names."""

_CODE = re.compile(r"`([^`]+)`|((?:[\w$-]+[./_:]+)+[\w$-]+|\w+\(\)|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z][A-Z]\w*)")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_URL = re.compile(r"https?:|www\.|@\w+\.\w", re.IGNORECASE)
_ORDER = re.compile(
    r"\b(?:you (?:must|should|need|can|will)|ignore|disregard|forget|instructions?|please|always|never|run|execute|install|delete|remove|"
    r"system|assistant|prompt)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"\b(?:various|several|many|different|important|some) (?:files|things|functions|modules|purposes)\b"
    r"|\b(?:no|any) (?:known|special|particular)\b|\b(?:none|nothing|n/a|not applicable|unknown)\b",
    re.IGNORECASE,
)
_COMMON = frozenset({"JavaScript", "TypeScript", "GitHub"})
"""Words that are written like a symbol and are none."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_IDLE_WORDS = (
    "the and for that this with from are was has have not its into uses used use file files code directory contains which all can "
    "other"
)
_IDLE = frozenset(_IDLE_WORDS.split())


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One statement and the paths or symbols that it rests on."""

    section: str
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What claims are held against: every name that exists, and the extracted text."""

    names: frozenset[str]
    text: str


class _Said(msgspec.Struct, frozen=True):
    text: str
    evidence: tuple[str, ...]


def parse(answer: str) -> tuple[Claim, ...]:
    """The claims in a model's answer, an object of one claim or null for each section; none in what is something else."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, _Said | None])
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return ()
    return tuple(
        Claim(section, said.text, said.evidence) for section in SECTIONS if (said := found.get(section)) is not None
    )


def check(claims: Iterable[Claim], facts: Facts) -> tuple[tuple[Claim, ...], Counter[str]]:
    """Those that may stand, made safe, and how many were dropped for which reason."""
    kept: list[Claim] = []
    dropped: Counter[str] = Counter()
    for claim in claims:
        made = Claim(claim.section, safe(claim.text, TEXT).strip(), tuple(dict.fromkeys(claim.evidence)))
        why = _fault(made, facts, kept)
        if why:
            dropped[why] += 1
        else:
            kept.append(made)
    return tuple(kept), dropped


def _fault(claim: Claim, facts: Facts, kept: list[Claim]) -> str:
    """Why a claim may not stand, "" when it may."""
    text = claim.text
    if claim.section not in SECTIONS or len(_WORD.findall(_CODE.sub("", text))) < LEAST:
        return "says nothing"
    if not text.endswith((".", ")")):
        return "cut off"
    if not claim.evidence or any(name not in facts.names for name in claim.evidence):
        return "evidence does not exist"
    if _URL.search(text) or _ORDER.search(text):
        return "speaks to the reader"
    if _EMPTY.search(text):
        return "says nothing"
    if any(not _exists(name, facts) for name in _named(text)):
        return "names what does not exist"
    known = set(_NUMBER.findall(facts.text))
    if any(number not in known for number in _NUMBER.findall(text)):
        return "numbers that are not in the facts"
    if any(text.casefold() == other.text.casefold() for other in kept) or text in facts.text:
        return "repeats"
    about = " ".join(claim.evidence) + " ".join(
        line for line in facts.text.splitlines() if any(name in line for name in claim.evidence)
    )
    if not _words(text) & _words(about):
        return "unrelated to its evidence"
    return ""


def _named(text: str) -> list[str]:
    return [(found[1] or found[2]).removesuffix("()") for found in _CODE.finditer(text)]


def _exists(name: str, facts: Facts) -> bool:
    bare = name.strip("`'\"., ").rstrip("/")
    return (
        not bare
        or bare in _COMMON
        or bare in facts.names
        or bare.rpartition(".")[2] in facts.names
        or bare in facts.text
    )


def _words(text: str) -> set[str]:
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).replace("_", " ")
    return {word.lower() for word in _WORD.findall(split)} - _IDLE


def lines(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The claims as they are shown: marked, so that nobody takes them for what was extracted."""
    return tuple(
        f"(model) {claim.section.replace('_', ' ')}: {claim.text} [{', '.join(safe(name, 80) for name in claim.evidence[:2])}]"
        for claim in claims
    )


def grammar(candidates: Iterable[str]) -> str:
    """GBNF (llama.cpp's grammar format) of an answer: for each section a claim or null, with evidence out of `candidates`."""
    names = " | ".join(_literal(msgspec.json.encode(name).decode()) for name in candidates)
    fields = r' "," '.join(
        rf'"\"{section}\":" ' + ("claim" if section == SECTIONS[0] else '(claim | "null")') for section in SECTIONS
    )
    return "\n".join(
        (
            rf'root ::= "{{" {fields} "}}"',
            r'claim ::= "{\"text\":\"" [A-Z] letter{11,150} "\",\"evidence\":[" name ("," name)? "]}"',
            f"name ::= {names}",
            r"letter ::= [a-zA-Z0-9 .,;:()/_'-]",
        )
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
