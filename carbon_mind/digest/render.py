"""The digest as text: JSON for programs, and Markdown made from the same values for models and people."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from carbon_mind.errors import StorageProblem
from carbon_mind.safety.text import code
from carbon_mind.values import COMMAND_KINDS, MODEL_WORDS, CriticalFile, Digest, Module

FORMAT = 1
_LABEL = {"test-one": "test one", "typecheck": "type check"}


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """mind.json: the digest, its format version, and how many tokens its Markdown has by which count."""

    version: int
    tokens: int
    counted_by: str
    digest: Digest


def to_json(document: Document) -> bytes:
    """Canonical bytes: UTF-8, two spaces, fields in the order of the class, one newline at the end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def from_json(data: bytes) -> Document:
    """The document of a mind.json. Raises StorageProblem."""
    try:
        document = msgspec.json.decode(data, type=Document)
    except msgspec.MsgspecError as broken:
        raise StorageProblem(f"mind.json cannot be understood: {broken}", hint="run `carbon mind --full`") from broken
    if document.version != FORMAT:
        raise StorageProblem(f"mind.json has format {document.version}, not {FORMAT}", hint="run `carbon mind --full`")
    return document


def _section(title: str, lines: Iterable[str]) -> list[str]:
    body = [f"- {line}" for line in lines]
    return ["", f"## {title}", *body] if body else []


def to_markdown(digest: Digest) -> str:
    """The text that enters the prefix. Sections without entries are left out.

    After the commands they go from stable to volatile, because a state is reused up to its first changed token. Over 80 changes in
    the histories of flask, ripgrep, redis and vue-core 44 % of the tokens stood before the first one, with the constraints second
    35 %: they quote versions and pipelines, and the critical files count who uses them. (Constraints last: 46 %, but less than before
    on redis.) What a small budget drops first is decided in `budget`.
    """
    commands = [
        f"{_LABEL.get(command.kind, command.kind)}: {code(command.command)} ({command.source})"
        for kind in COMMAND_KINDS
        for command in digest.commands
        if command.kind == kind
    ]
    lines = [f"# {digest.name}: repository digest" if digest.name else "# Repository digest"]
    lines += _section("Commands", commands)
    lines += _section(
        "Entry points",
        (
            f"{item.name}: {item.target}" + (f" ({item.source})" if item.source != item.target else "")
            for item in digest.entry_points
        ),
    )
    lines += _section("Architecture", map(_module, digest.architecture))
    lines += _section("Patterns", digest.patterns)
    lines += _section("Constraints", (f"{item.text} ({item.source})" for item in digest.constraints))
    lines += _section("Known bugs", (f"{bug.source} {bug.tag}: {bug.excerpt}" for bug in digest.known_bugs))
    lines += _section("Critical files (below each: line, signature)", map(_critical, digest.critical_files))
    lines += _section(MODEL_WORDS, digest.words)
    return "\n".join(lines) + "\n"


def _module(module: Module) -> str:
    where = f"{module.path}/" if module.path != "." else "(top level)"
    parts = [f"{where}: {module.files} {'/'.join(module.languages)} file{'s' * (module.files != 1)}"]
    if module.depends_on:
        # A neighbour is called by its name alone: `packages/` said once is enough.
        parent = module.path.rpartition("/")[0]
        beside = [name.removeprefix(f"{parent}/") if parent else name for name in module.depends_on]
        parts.append(f"uses {', '.join(beside)}")
    if module.tests:
        parts.append(f"tests: {', '.join(module.tests)}")
    return "; ".join(parts)


def _critical(file: CriticalFile) -> str:
    return "\n  - ".join([f"{file.path} ({file.reason})", *file.signatures])
