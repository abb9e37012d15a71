"""What a session was given stays, and what is another meanwhile is told once, at the user's next word."""

from __future__ import annotations

from pathlib import Path

import msgspec

from carbon_mind.serve.records import Records, forget_all
from carbon_mind.serve.sessions import Now, Session, begin, go_on, look

TEXT = "Rules.\nToday's date: Mon Nov 30 2026\nInstructions from: /r/AGENTS.md\n{agents}\nEnd."


def now(day: str = "Mon Nov 30 2026", agents: str = "Use tabs.", digest: str = "digest 1", more: str = "") -> Now:
    text = TEXT.format(agents=agents).replace("Mon Nov 30 2026", day) + more
    return look([text], normalize=True, read=lambda _path: agents, digest=digest, place="user")[0]


def test_nothing_changed_nothing_told() -> None:
    session = begin(now())
    assert "digest 1" in session.told
    assert "Mon Nov 30 2026" in session.told
    assert "Mon Nov 30 2026" not in session.texts[0]
    assert go_on(session, now(), 1) == session


def test_a_new_day_a_new_digest_and_an_edited_file_are_told_once() -> None:
    session = begin(now())
    later = now("Tue Dec 01 2026", "Use spaces.", "digest 2")
    assert go_on(session, later, None) == session, "a tool has answered: the user said nothing yet"
    assert go_on(session, later, 0) == session, "the first word is where all of it is told"
    gone_on = go_on(session, later, 3)
    assert (gone_on.texts, gone_on.told) == (session.texts, session.told), "byte for byte"
    (line,) = gone_on.notes.values()
    assert line.startswith("[By now: Today's date: Tue Dec 01 2026.")
    assert "The digest of the repository changed since this session began. now: digest 2; no longer: digest 1" in line
    assert "AGENTS.md changed since this session began. now: Use spaces.; no longer: Use tabs." in line
    assert "\n" not in line
    assert go_on(gone_on, later, 3) == gone_on, "asked again"
    assert go_on(gone_on, later, 4) == gone_on, "it has been told"
    back = go_on(gone_on, now("Wed Dec 02 2026", "Use spaces.", "digest 2"), 5)
    assert list(back.notes) == [3, 5]
    assert back.notes[5] == "[By now: Today's date: Wed Dec 02 2026.]"


def test_what_the_client_itself_says_otherwise_is_passed_on() -> None:
    session = begin(now())
    gone_on = go_on(session, now(more="\nPlan only."), None)
    assert gone_on.texts[0].endswith("Plan only.")
    assert gone_on.told == session.told


def test_without_normalize_only_the_digest_is_held() -> None:
    texts = [TEXT.format(agents="x")]
    seen, rules = look(texts, normalize=False, read=lambda _path: None, digest="digest 1", place="system")
    session = begin(seen)
    assert (session.texts, session.told, rules) == ((), "digest 1", ())
    other, _ = look(texts, normalize=False, read=lambda _path: None, digest="digest 2", place="system")
    assert go_on(session, other, 2) == session


def test_records_outlive_the_process_and_are_forgotten(tmp_path: Path) -> None:
    records = Records(tmp_path / "sessions", Session, most=2, age_s=3600)
    session = begin(now())
    for key in ("a", "b", "c"):
        records.write(key, session)
    assert records.read("a") is None
    assert Records(tmp_path / "sessions", Session, most=2, age_s=3600).read("c") == session
    assert len(list(records.all())) == 2
    (path, *_) = (tmp_path / "sessions").glob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    for damage in (b"", b"{", b"[" * 100_000, msgspec.json.encode({"began": 1})):
        path.write_bytes(damage)
        assert len(list(records.all())) == 1
    assert forget_all(tmp_path) == 2
    assert forget_all(tmp_path / "none") == 0
