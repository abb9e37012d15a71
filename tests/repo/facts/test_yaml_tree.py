"""YAML as a tree of strings with lines; hostile documents end as an empty mapping, quickly."""

from __future__ import annotations

import pytest

from carbon_mind.repo.facts.yaml_tree import (
    EMPTY,
    MAX_YAML,
    Fields,
    Items,
    Text,
    at,
    fields,
    items,
    parse_yaml,
    text,
    texts,
)


def test_lines_and_texts_as_written() -> None:
    tree = parse_yaml("on: [push]\nversion: 1.10\nrun: |\n  a\n  b\nfold: >-\n  c\n  d\nnone:\n")
    assert tree == Fields(
        {
            "on": Items((Text("push", 1),), 1),
            "version": Text("1.10", 2),
            "run": Text("a\nb\n", 4),
            "fold": Text("c d", 7, folded=True),
            "none": Text("", 9),
        },
        1,
        {"on": 1, "version": 2, "run": 3, "fold": 6, "none": 9},
    )
    assert text(at(tree, "version")) == "1.10"
    assert [item.value for item in texts(at(tree, "on"))] == ["push"]
    assert (at(tree, "on", "x"), fields(at(tree, "run")), items(None)) == (None, {}, ())


BOMB = "a: &a0 [x, x]\n" + "".join(f"b{n}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        "&a [*a]",
        "[" * 10_000,
        "".join(" " * depth + "k:\n" for depth in range(100)),
        "a: b: c",
        "- a\nb: c",
        "a: *gone",
        "a: \x00",
        "a: \ud800",
        "\t- x",
        "x" * (MAX_YAML + 1),
        "",
        "- x\n" * 30_000,
    ],
    ids=range(13),
)
def test_hostile_documents(document: str) -> None:
    assert parse_yaml(document) == EMPTY


def test_merge_keys_and_complex_keys_are_data() -> None:
    assert fields(parse_yaml("<<: {a: b}\n? [x]\n: y\n")) == {"<<": Fields({"a": Text("b", 1)}, 1, {"a": 1})}
