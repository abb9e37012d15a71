"""The digest for an agent, by the directory that it says it works in.

A repository gets its digest told only where somebody made one: `carbon mind` was run there, or `carbon serve --repo` names it. What it
ships must be trusted, as everywhere. Whatever goes wrong costs the digest, never the request.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from carbon_mind import pipeline, settings
from carbon_mind.digest import folder as mind_folder
from carbon_mind.errors import CarbonError
from carbon_mind.opening import Listener
from carbon_mind.recall import Recall
from carbon_mind.repo.scan import locate
from carbon_mind.settings import Settings

LOOK_S = 60.0
"""Seconds for which it is remembered which repository a directory is in, and whether it has a digest."""


class Minds:
    """Digests of all repositories that agents work in."""

    def __init__(self, report: Listener, repo: Path | None) -> None:
        """`repo` is told to agents that name no directory, and to those that work in it. Raises RepositoryProblem."""
        self._report = report
        self._repo = locate(repo).root if repo is not None else None
        self._recalls: dict[Path, Recall | None] = {}
        self._roots: dict[str, tuple[float, Path | None]] = {}
        self._last: dict[Path, str] = {}
        self._told: set[str] = set()
        self._refreshing = threading.Semaphore()
        self._lock = threading.Lock()  # a recall answers one at a time

    def root(self, directory: str) -> Path | None:
        """The repository of a directory, None where there is none that is told; looked up once in a while."""
        when, known = self._roots.get(directory, (-math.inf, None))
        if time.monotonic() - when < LOOK_S:
            return known
        found = self._find(directory)
        self._roots[directory] = time.monotonic(), found
        return found

    def _find(self, directory: str) -> Path | None:
        try:
            root = locate(Path(directory)).root if directory else self._repo
        except (CarbonError, OSError, ValueError):
            return None
        if root is None:
            return None
        with self._lock:
            if self._recalls.get(root) is None:
                self._recalls[root] = self._recall(root)
            return root if self._recalls[root] is not None else None

    def digest(self, root: Path, special: Iterable[str]) -> str:
        """The block for a prompt, current; "" where there is none."""
        with self._lock:
            recall = self._recalls.get(root)
            try:
                found = recall.block(special) if recall is not None else ""
            except CarbonError as problem:
                found = ""
                if problem.message not in self._told:
                    self._told.add(problem.message)
                    self._report.notice(f"no digest for {root}: {problem.message}")
            self._last[root] = found
            return found

    def recent(self, root: Path, special: Iterable[str]) -> str:
        """The block as it was last seen, at once; it is looked at again meanwhile."""
        if root not in self._last:
            return self.digest(root, special)
        if self._refreshing.acquire(blocking=False):
            threading.Thread(target=self._refresh, args=(root, tuple(special)), daemon=True).start()
        return self._last[root]

    def _refresh(self, root: Path, special: tuple[str, ...]) -> None:
        try:
            self.digest(root, special)
        finally:
            self._refreshing.release()

    def _recall(self, root: Path) -> Recall | None:
        try:
            place = locate(root)
            found: Settings = settings.load(place.root, {})
            made = mind_folder.read_index(pipeline.find_folder_of(place, found)) is not None
        except CarbonError:
            return None
        return Recall(place, found) if made or root == self._repo else None
