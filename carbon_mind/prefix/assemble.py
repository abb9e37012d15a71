"""The prefix: everything of a chat that stands before the question, as exact tokens of one model, in layers.

    [template + tools + rules]  <  [+ digest]  <  [+ volatile lines]

A layer ends where nothing that may follow can change a token before the cut, and that is measured, not assumed: the chat is rendered
and tokenized with followers that begin in very different ways, and the layer is what all of them share. A token that would merge
with what follows is thereby left to the next layer, whatever the template and the tokenizer do. Each use compares again (`proceed`), so
a surprise costs a prefill and never a wrong state.

Order is what a change costs, and it is the order of the rendered text that counts: where a template writes the tools behind the
system text, digest and volatile lines go to the start of the first user message, so that one base still serves every repository.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from carbon_mind.prefix import template
from carbon_mind.prefix.spans import Region, label
from carbon_mind.safety.text import escape_special
from carbon_mind.safety.trust import fence
from carbon_mind.values import Message, Prefix, Span, shared_length

Tokenize = Callable[[str], tuple[int, ...]]

INSTRUCTION = (
    "You are a coding assistant for the repository described by the digest below. Answer from it, name files and commands exactly, "
    "and say UNKNOWN when it does not hold the answer."
)

# Beginnings that tokenizers treat differently: letter, space, newline, digit, punctuation, two scripts, markup.
_PROBES = ("Where", " and", "\nfirst", "42", "...", "\u00e9t\u00e9", "\u4f60\u597d", "<x>", "_a", "\tif", "# x", "")


@dataclass(frozen=True, slots=True)
class Chat:
    """How one model wants its chats: template source and the texts of its special tokens."""

    template: str | None
    bos_token: str
    eos_token: str
    special_tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the question, by reason to change. `tools` are JSON schemas as the chat API has them."""

    digest: str
    rules: str = INSTRUCTION
    tools: tuple[Mapping[str, Any], ...] = ()
    volatile: str = ""
    limit: int = 6000  # characters of the block that the digest is fenced into


def prompt_policy(chat: Chat) -> tuple[tuple[str, str], ...]:
    """How text becomes tokens here, for the identity of a state."""
    return (
        ("add_generation_prompt", "true"),
        ("bos", "written by the template"),
        ("template", hashlib.sha256((chat.template or template.CHATML).encode()).hexdigest()),
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a template arranges a chat: with a system role of its own or not, and where in the text the tools are."""

    system: bool
    tools: tuple[int, int]  # start and end in the rendered text; both 0 without tools
    apart: bool  # digest and volatile lines are in the user's message, because the tools come behind the system text


def render(chat: Chat, head: Head, question: str) -> str:
    """The whole prompt for one question. Special tokens inside any text are defused, so none can end its message.

    A template that knows no system role gets the system text at the start of the user's message. Raises TemplateRefused.
    """
    return _render(chat, head, question, _layout(chat, head))


def _render(chat: Chat, head: Head, question: str, arranged: _Layout) -> str:
    rules, facts, ask = (escape_special(text, chat.special_tokens) for text in (head.rules, _facts(head), question))
    if not arranged.system:
        return _filled(chat, head.tools, Message("user", f"{rules}\n\n{facts}\n\n{ask}"))
    if arranged.apart:
        return _filled(chat, head.tools, Message("system", rules), Message("user", f"{facts}\n\n{ask}"))
    return _filled(chat, head.tools, Message("system", f"{rules}\n\n{facts}"), Message("user", ask))


def _filled(chat: Chat, tools: Sequence[Mapping[str, Any]], *messages: Message) -> str:
    return template.render(chat.template, messages, tools=tools, bos_token=chat.bos_token, eos_token=chat.eos_token)


def _facts(head: Head) -> str:
    """Digest and volatile lines, the digest in a fence that its own text cannot close."""
    fenced = _fenced(head.digest, head.limit)
    return f"{fenced}\n\n{head.volatile.strip()}" if head.volatile.strip() else fenced


@functools.lru_cache(maxsize=64)
def _fenced(digest: str, limit: int) -> str:
    return fence(digest, limit=limit)


def _layout(chat: Chat, head: Head) -> _Layout:
    rules = escape_special(head.rules, chat.special_tokens) or "rules"
    messages = Message("system", rules), Message("user", "?")
    try:
        text = _filled(chat, head.tools, *messages)
    except template.TemplateRefused:
        return _Layout(False, (0, 0), False)
    if rules not in text:  # dropped, or changed beyond recognition
        return _Layout(False, (0, 0), False)
    if not head.tools:
        return _Layout(True, (0, 0), False)
    without = _filled(chat, (), *messages)
    start = _shared(text, without)
    behind = _shared(text[start:][::-1], without[start:][::-1])
    tools = (start, len(text) - behind)
    return _Layout(True, tools, tools[0] > text.index(rules))


def _shared(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def assemble(chat: Chat, head: Head, tokenize: Tokenize, piece: Callable[[int], bytes]) -> Prefix:
    """Tokens that every question's prompt begins with, for this head and this model, and where its layers end.

    `piece` gives the bytes of a token, for the names of what stands where. Raises TemplateRefused.
    """
    arranged = _layout(chat, head)
    text = _render(chat, head, _PROBES[0], arranged)
    whole = tokenize(text)

    def end(variants: Iterable[Head], question: str = _PROBES[0]) -> int:
        return min(shared_length(whole, tokenize(_render(chat, other, question, arranged))) for other in variants)

    last = min(end((head,), probe) for probe in _PROBES)
    ends = [("base", end(replace(head, digest=probe) for probe in _PROBES))]
    if head.volatile.strip():
        ends.append(("digest", end(replace(head, volatile=probe) for probe in _PROBES)))
        ends.append(("volatile", last))
    else:
        ends.append(("digest", last))
    layers: list[Span] = []
    for name, at in ends:
        if at > (layers[-1].end if layers else 0):
            layers.append(Span(name, at))
    tokens = whole[:last]
    return Prefix(tokens, tuple(layers), label(text, _regions(chat, head, text, arranged), tokens, piece))


def _regions(chat: Chat, head: Head, text: str, arranged: _Layout) -> list[Region]:
    """Where rules, tools and volatile lines are in the rendered text."""
    found = [("tools", *arranged.tools)]
    for name, content in (("rules", head.rules), ("volatile", head.volatile.strip())):
        content = escape_special(content, chat.special_tokens)
        if content and (start := text.find(content)) >= 0:
            found.append((name, start, start + len(content)))
    return found
