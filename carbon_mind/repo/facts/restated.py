"""Leaving out what the repository's own AGENTS.md says already: an agent reads that file anyway.

Only what surely stands there, literally, is dropped; the block that we manage in that file does not count, or writing
the digest into it would empty the next digest.
"""

from __future__ import annotations

import re
from dataclasses import replace

from carbon_mind.repo.facts.prose import code_lines, sentences
from carbon_mind.repo.facts.rules import RULE, normal, own_text
from carbon_mind.repo.facts.text import version
from carbon_mind.repo.facts.untouched import paths_of
from carbon_mind.values import Constraint, ProjectFacts

_COMMENT = re.compile(r"\s+#\s.*\Z")
_PROMPT = re.compile(r"\A[$%]\s+")
# `go test` and `make check` are English too; as mere text they prove nothing.
_ENGLISH = re.compile(r"(?:make|go|just|task|cd)\b")
_FORBIDS = re.compile(
    r"\b(?:not|never|don't|mustn't)\b.*\b(?:edit|modify|change|touch|alter|update|format)", re.IGNORECASE
)
_NEGATED = re.compile(r"\b(?:no|not|never|without|drop\w*|remov\w*|unsupported)\b|n't\b", re.IGNORECASE)
_AT_LEAST = re.compile(r">=\s*(\d[\d.]*)\Z")


def not_restated(facts: ProjectFacts, agents_text: str) -> ProjectFacts:
    """The facts without the commands and constraints that `agents_text` states."""
    said = _Said(own_text(agents_text))
    return replace(
        facts,
        commands=tuple(command for command in facts.commands if not said.command(command.command)),
        constraints=tuple(constraint for constraint in facts.constraints if not said.constraint(constraint)),
    )


class _Said:
    """What one text states."""

    def __init__(self, text: str) -> None:
        found = sentences(text)
        self._sentences = [_blanks(sentence.text.replace("’", "'")) for sentence in found]  # noqa: RUF001
        self._texts = [sentence.prose for sentence in found]
        self._rules = {normal(sentence.text) for sentence in found}
        self._code = {_blanks(span) for sentence in found for span in sentence.code}
        self._code |= {_blanks(_PROMPT.sub("", _COMMENT.sub("", line))) for line in code_lines(text)}

    def command(self, command: str) -> bool:
        command = _blanks(command)
        if command in self._code:
            return True
        if " " not in command or _ENGLISH.match(command):
            return False
        pattern = re.compile(rf"(?<![\w./:=-]){re.escape(command)}(?![\w/:=*-]|\.\w)(?! -)")
        return any(pattern.search(text) for text in self._texts)

    def constraint(self, constraint: Constraint) -> bool:
        text = constraint.text
        if text.startswith(RULE):
            return normal(text[len(RULE) :].strip('"')) in self._rules
        if paths := paths_of(text):
            return all(map(self._forbidden, paths))
        return self._version(text)

    def _forbidden(self, path: str) -> bool:
        pattern = re.compile(rf"(?<![\w./*-]){re.escape(path.rstrip('/'))}/?(?![\w/*-]|\.\w)")
        return any(pattern.search(sentence) and _FORBIDS.search(sentence) for sentence in self._sentences)

    def _version(self, text: str) -> bool:
        name, _, spec = text.partition(" ")
        if not version(spec):
            return False
        forms = [re.escape(f"{name} {spec}").replace(r"\ ", r"\s?")]
        if match := _AT_LEAST.match(spec):
            least = re.escape(match[1])
            forms += [rf"{re.escape(name)}\s?(?:>=\s?)?{least}\s?(?:\+|or (?:newer|later|higher|above))"]
            forms += [rf"{re.escape(name)}\s?>=\s?{least}"]
        pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(forms)})(?![\w+,<>=]|\.\d|,\s?[<>=!~])", re.IGNORECASE)
        return any(pattern.search(sentence) and not _NEGATED.search(sentence) for sentence in self._sentences)


def _blanks(text: str) -> str:
    return " ".join(text.split())
