"""A session keeps what it was given.

Whatever the gateway moved or put in is the same, byte for byte, in every turn of a session, also after the gateway was started again: an
earlier byte that changed would cost the whole history. What is another meanwhile (midnight, a new digest, an edited AGENTS.md) is told in
one short line at the next word of the user, and that line belongs to that word from then on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

import msgspec

from carbon_mind.serve import rewrite
from carbon_mind.serve.wire import digest_of

Place = Literal["system", "user"]
"""Where text goes that stands behind everything stable: the end of the system text, or the start of the first word of the user."""


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a session was given."""

    began: int  # seconds since the epoch
    normalize: bool
    texts: tuple[str, ...]  # system texts, settled; empty where they are passed on as they come
    skeleton: str  # hash of what must be the same for these to stay
    parts: tuple[tuple[str, str], ...]  # instruction files: path, text as given
    told: str  # the text behind the stable part
    place: Place
    moved: tuple[tuple[str, str], ...]  # (rule, text) as last told
    digest: str  # as last told
    seen: tuple[tuple[str, str], ...]  # instruction files: path, text as last told
    notes: dict[int, str] = {}  # which word of the user -> the line above it


@dataclass(frozen=True, slots=True)
class Now:
    """The same things as they are at this request."""

    normalize: bool
    texts: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]
    skeleton: str
    moved: tuple[tuple[str, str], ...]
    digest: str
    place: Place


def look(
    texts: Sequence[str], *, normalize: bool, read: rewrite.Read, digest: str, place: Place
) -> tuple[Now, tuple[str, ...]]:
    """What the system texts of a request say now, and the rules that did something."""
    if not normalize:
        shown = "" if any(map(rewrite.has_block, texts)) else digest
        return Now(False, (), (), "", (), shown, place), ()
    settled = [rewrite.settle(text) for text in texts]
    found = [(text.text, rewrite.instructions(text.text, read)) for text in settled]
    parts = tuple((part.path, text[part.start : part.end]) for text, listed in found for part in listed)
    moved = tuple(item for text in settled for item in text.moved)
    now = Now(
        True,
        tuple(text.text for text in settled),
        parts,
        digest_of([rewrite.skeleton(text, listed) for text, listed in found]),
        moved,
        "" if any(rule == "mind" for rule, _ in moved) else digest,
        place,
    )
    return now, tuple(dict.fromkeys(rule for text in settled for rule in text.rules))


def begin(now: Now) -> Session:
    """A session that is given what there is now."""
    return Session(
        began=int(time.time()),
        normalize=now.normalize,
        texts=now.texts,
        skeleton=now.skeleton,
        parts=now.parts,
        told=rewrite.told(now.moved, now.digest),
        place=now.place,
        moved=now.moved,
        digest=now.digest,
        seen=now.parts,
    )


def go_on(session: Session, now: Now, word: int | None) -> Session:
    """The session at a later request; `word` is the number of the user's word that is new with it, None where a tool answered.

    Where the client itself says something else now (another mode, other rules), that is passed on: only what is known to change from
    day to day is held.
    """
    if session.skeleton != now.skeleton:
        session = msgspec.structs.replace(
            session, texts=now.texts, skeleton=now.skeleton, parts=now.parts, seen=now.parts
        )
    if not session.normalize or not word or word in session.notes:
        return session
    lines = _news(session, now)
    if not lines:
        return session
    notes = {**session.notes, word: f"[{' '.join(lines)}]"}
    return msgspec.structs.replace(session, notes=notes, moved=now.moved, digest=now.digest, seen=now.parts)


def _news(session: Session, now: Now) -> list[str]:
    """A line for each thing that is not what was told last."""
    lines = []
    for rule in ("date", "nonce"):
        told, said = ([text for name, text in moved if name == rule] for moved in (session.moved, now.moved))
        if told != said and said:
            lines.append(f"By now: {'; '.join(said)}.")
    minds = [
        digest or "\n".join(text for name, text in moved if name == "mind")
        for digest, moved in ((session.digest, session.moved), (now.digest, now.moved))
    ]
    if minds[1]:
        lines.append(rewrite.changed("The digest of the repository", *minds))
    known = dict(session.seen)
    for path, text in now.parts:
        lines.append(rewrite.changed(PurePath(path).name, known.get(path, ""), text))
    return [line for line in lines if line]
