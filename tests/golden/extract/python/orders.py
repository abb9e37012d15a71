"""Orders of a small shop.

FIXME: a docstring is not a comment, so this is no marker.
"""

from __future__ import annotations

import json
import os.path as osp, decimal
from collections.abc import Iterator
from typing import Generic, TypeVar

from . import prices
from ..stock.shelf import Shelf, empty_shelf as shelf
from .errors import *

T = TypeVar("T")
MAX_ITEMS = 100  # HACK: the scanner's display has three digits
RETRY_AFTER: float = 2.5
_CACHE_KEY = "FIXME: text, not a comment"
default_name = "Größe"
type Money = decimal.Decimal


class Basket(Generic[T], metaclass=prices.PriceMeta):
    """What a customer carries."""

    LIMIT = 12
    items: list[Item]

    def __init__(self, owner: str, /, *items: T, shelf: Shelf = shelf("A", width=3), **extra: object) -> None:
        self.items = list(items)
        self.owner = owner

    @property
    def total(self) -> Money:
        # XXX(jürgen): rounds twice — once per item
        return sum(item.price for item in self.items)

    @staticmethod
    async def load(
        path: str,  # where it lies
        *,
        encoding: str = "utf-8",
        strict=True,
    ) -> Basket[T]:
        def parse(line):
            return json.loads(line)

        return Basket(*map(parse, open_text(path)))

    class Row(prices.Line, Iterator[str]):
        pass


class Item(Basket): ...


@prices.cached(seconds=60)
def cheapest(baskets: list[Basket[Item]], key=lambda b: b.total) -> Item | None:
    """The cheapest item."""
    # DEBUG and BUGS are words of their own.
    # See the manual. BUG: an empty basket raises
    return min(baskets, key=key)


if osp.exists("orders.json"):

    def größe(x): return len(x)
