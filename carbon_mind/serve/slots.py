"""Which request runs in which slot, so that none loses its head.

A slot belongs to the session that it served last. A request of that session gets it again. Another agent gets a slot that belongs to
nobody, or the one that rested longest. What agents ask beside (titles, summaries, subagents) never takes the slot of a session while
there is another; where there is none, the session's state is kept aside and put back.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from carbon_mind.engine.server import ServerEngine


@dataclass(slots=True)
class Slot:
    """A slot, and what is known of it."""

    index: int
    engine: ServerEngine | None  # None where there is nothing but a way through
    session: str = ""  # whose it is
    side: bool = False  # it belongs to a request beside
    head: str = ""  # key of the head that it begins with
    busy: bool = False
    used: float = 0.0
    beyond: int = 0  # tokens that it holds behind the head, as far as is known

    @property
    def live(self) -> bool:
        """Whether a session would miss it."""
        return bool(self.session) and not self.side

    def forget(self) -> None:
        """Nothing is known of what it holds."""
        self.session, self.head, self.side, self.beyond = "", "", False, 0
        if self.engine is not None:
            self.engine.assume(())


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants a slot."""

    session: str
    head: str
    side: bool


class Slots:
    """The slots of one server."""

    def __init__(self, engines: Sequence[ServerEngine]) -> None:
        self.all = [Slot(i, engine) for i, engine in enumerate(engines)]
        self._changed = anyio.Condition()

    @asynccontextmanager
    async def taken(self, wish: Wish) -> AsyncIterator[Slot]:
        """A slot for one request; waits for one."""
        async with self._changed:
            while (slot := self._choose(wish)) is None:
                await self._changed.wait()
            slot.busy = True
        try:
            yield slot
        finally:
            slot.used = time.monotonic()
            slot.busy = False
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._changed.notify_all()

    def _choose(self, wish: Wish) -> Slot | None:
        own = [slot for slot in self.all if slot.session == wish.session and slot.side == wish.side and wish.session]
        if own:
            return next((slot for slot in own if not slot.busy), None)
        free = [slot for slot in self.all if not slot.busy]
        nobodys = [slot for slot in free if not slot.live]
        if nobodys:
            return min(nobodys, key=lambda slot: _worth(slot, wish))
        if wish.side and any(not slot.live for slot in self.all):
            return None  # one that nobody would miss is busy, and soon free
        return min(free, key=lambda slot: slot.used, default=None)


def _worth(slot: Slot, wish: Wish) -> tuple[bool, ...] | tuple[object, ...]:
    """Of slots that belong to nobody, an agent takes the one with its head, a request beside one without any."""
    if wish.side:
        return bool(slot.head), slot.used
    return slot.head != wish.head, bool(slot.session), slot.used
