"""Relative paths and lookups that several families share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from carbon_mind.values import RepoPath


def relative(parent: str, text: str) -> str | None:
    """`text` as a path from the directory `parent`; "" is the root, None lies outside the repository."""
    if text.startswith("/"):
        return None
    parts = parent.split("/") if parent else []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def nearest(path: str, found: Sequence[RepoPath]) -> RepoPath | None:
    """The one that shares most of its directories with `path`; None when that is not one but several."""
    if len(found) < 2:
        return found[0] if found else None
    if len(found) > MAX_CHOICE:
        return None
    shared = [_shared(path, other) for other in found]
    best = max(shared)
    return found[shared.index(best)] if shared.count(best) == 1 else None


MAX_CHOICE = 16


def _shared(left: str, right: str) -> int:
    count = 0
    for a, b in zip(left.split("/")[:-1], right.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count


def first(candidates: Iterable[str], known: Collection[RepoPath]) -> RepoPath | None:
    """The first candidate that is known."""
    return next((RepoPath(candidate) for candidate in candidates if candidate in known), None)
