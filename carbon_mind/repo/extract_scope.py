"""Where names are for others, as far as that is not said at each definition: what a module exports, which blocks are closed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

__all__ = ["exports", "outermost"]

_EXPORTS = re.compile(rb"\bexports\b")
_NAME = re.compile(r"[\w$]+")
_DECLARATIONS = frozenset(
    {
        "abstract_class_declaration",
        "class_declaration",
        "enum_declaration",
        "function_declaration",
        "generator_function_declaration",
        "interface_declaration",
        "lexical_declaration",
        "type_alias_declaration",
        "variable_declaration",
    }
)


def exports(text: bytes, root: tree_sitter.Node) -> tuple[set[int], set[str]]:
    """Where the declarations of a JavaScript or TypeScript module start, and the names that others get of it.

    No declarations where the file is a script, whose names are global, or where it is not known by name what it exports.
    """
    top: set[int] = set()
    exported: set[str] = set()
    module = False
    assigned = 0
    for node in root.named_children:
        kind = node.type
        if kind in _DECLARATIONS:
            top.add(node.start_byte)
        elif kind == "import_statement":
            module = True
        elif kind == "export_statement":
            module = True
            if (
                node.child_by_field_name("declaration") is None
            ):  # of an exported value, each name may be what others get
                exported |= _names(text, node)
        elif kind == "ambient_declaration":
            return set(), exported  # for others, and exported without a word
        elif kind == "expression_statement":
            to_exports, names = _assigned(text, node)
            assigned += to_exports
            exported |= names
    # Any other mention, as in `Object.assign(exports, ...)`, may export anything.
    known = (module or assigned) and text.count(b"exports") == assigned
    return (top if known else set()), exported


def _assigned(text: bytes, statement: tree_sitter.Node) -> tuple[bool, set[str]]:
    """Whether a statement assigns to `exports`, and the names that are for others from then on."""
    for assignment in statement.named_children[:1]:
        left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
        if left is not None and right is not None:
            to_exports = _EXPORTS.search(text, left.start_byte, left.end_byte) is not None
            if to_exports or right.type == "identifier":  # `window.f = f` has `f` for everybody
                return to_exports, _names(text, right)
    return False, set()


def _names(text: bytes, node: tree_sitter.Node) -> set[str]:
    return set(_NAME.findall(text[node.start_byte : node.end_byte].decode("utf-8", "replace")))


def outermost(spans: dict[int, int]) -> tuple[list[int], list[int]]:
    """Starts and ends of the spans that lie in no other one."""
    first: list[int] = []
    last: list[int] = []
    for start in sorted(spans):
        if not last or start >= last[-1]:
            first.append(start)
            last.append(spans[start])
    return first, last
