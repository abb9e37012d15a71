"""YAML as a tree of strings with line numbers: mappings, lists and scalars, nothing else.

PyYAML's libyaml composer reads the syntax (a reader of our own got indentation, folding and quoting wrong for real
pipelines); its constructors, which make objects and expand merges, are not used. An alias is only a second reference
to a node, so a bomb of aliases is cheap to compose, and `MAX_NODES` ends the walk over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeAlias

MAX_YAML = 128 * 1024
MAX_NODES = 20_000
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar as written, before YAML would make a number or a boolean of it."""

    value: str
    line: int  # 1-based: of the first line of its content
    folded: bool = False  # `>`: its lines are one line


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Tree, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; only keys that are scalars. `line` and each key's line are where they stand."""

    fields: dict[str, Tree]
    line: int
    lines: dict[str, int] = field(default_factory=dict)


Tree: TypeAlias = Text | Items | Fields
EMPTY = Fields({}, 0)


def parse_yaml(text: str) -> Tree:
    """The first document of a YAML text; an empty mapping when it is malformed, too long, too deep or too large."""
    if len(text) > MAX_YAML:
        return EMPTY
    yaml = import_module("yaml")  # only where a pipeline changed: 20 ms
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text.removeprefix("\ufeff"))
        try:
            node = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
        return _tree(node, [MAX_NODES], 0) if node is not None else EMPTY
    except (yaml.YAMLError, ValueError, RecursionError):
        return EMPTY


def _tree(node: object, left: list[int], depth: int) -> Tree:
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH:
        raise ValueError("too large or too deep")
    kind, value = getattr(node, "id", ""), getattr(node, "value", None)
    line = getattr(node, "start_mark").line + 1  # noqa: B009 - a node of PyYAML, which has no types
    if kind == "mapping" and isinstance(value, list):
        fields: dict[str, Tree] = {}
        lines: dict[str, int] = {}
        for key, inner in value:
            if key.id == "scalar" and key.value not in fields:
                fields[key.value] = _tree(inner, left, depth + 1)
                lines[key.value] = key.start_mark.line + 1
        return Fields(fields, line, lines)
    if kind == "sequence" and isinstance(value, list):
        return Items(tuple(_tree(inner, left, depth + 1) for inner in value), line)
    style = getattr(node, "style", None)
    return Text(str(value), line + (style in ("|", ">")), style == ">")


def at(tree: Tree | None, *keys: str) -> Tree | None:
    """What stands below `keys`, or None."""
    for key in keys:
        tree = tree.fields.get(key) if isinstance(tree, Fields) else None
    return tree


def fields(tree: Tree | None) -> dict[str, Tree]:
    """The mapping's fields; {} for anything else."""
    return tree.fields if isinstance(tree, Fields) else {}


def items(tree: Tree | None) -> tuple[Tree, ...]:
    """The list's items; a single scalar counts as a list of one."""
    if isinstance(tree, Items):
        return tree.items
    return (tree,) if isinstance(tree, Text) else ()


def text(tree: Tree | None) -> str:
    """The scalar's text; "" for anything else and for a null."""
    return tree.value if isinstance(tree, Text) and tree.value not in ("~", "null") else ""


def texts(tree: Tree | None) -> Iterator[Text]:
    """The scalars of a list, or the single one."""
    return (item for item in items(tree) if isinstance(item, Text))
