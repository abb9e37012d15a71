"""A store that writes behind the caller's back: a snapshot of hundreds of megabytes is on disk while the answer is under way.

What is to be written counts as there at once, and a read waits for it. One thread writes, in the order in which it was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from carbon_mind.errors import CarbonError
from carbon_mind.store.format import Header
from carbon_mind.store.states import Snapshot, Store, name_of
from carbon_mind.values import Identity


class BackgroundStore(Store):
    """A `Store` whose `put` returns before the bytes are on disk; `failed` is told what could not be written."""

    def __init__(self, folder: Path, budget: int, failed: Callable[[str], None]) -> None:
        """Opens the folder. Raises StorageProblem."""
        super().__init__(folder, budget)
        self._failed = failed
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._pending: dict[str, Future[None]] = {}

    def has(self, name: str) -> bool:
        """Whether it is there, or will be in a moment."""
        return name in self._pending or super().has(name)

    def read(self, name: str, identity: Identity, tokens: tuple[int, ...], *, into: Path | None = None) -> Snapshot:
        """See `Store.read`; waits until it has been written."""
        if (pending := self._pending.get(name)) is not None:
            pending.result()
        return super().read(name, identity, tokens, into=into)

    def put(self, header: Header, payload: bytes | bytearray | memoryview, *, replace: bool = False) -> tuple[str, int]:
        """Have it written; the bytes must not change any more. Returns its name and the bytes of the payload."""
        name = name_of(header)
        if name not in self._pending:
            self._pending[name] = self._writer.submit(self._write, name, header, payload, replace)
        return name, len(payload)

    def _write(self, name: str, header: Header, payload: bytes | bytearray | memoryview, replace: bool) -> None:
        try:
            super().put(header, payload, replace=replace)
        except CarbonError as refused:
            self._failed(refused.message)
        finally:
            self._pending.pop(name, None)

    def close(self) -> None:
        """Wait for what is being written."""
        self._writer.shutdown()
