"""What is taken out of a system text and where it is told: nothing is dropped, nothing else is touched."""

from __future__ import annotations

from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbon_mind.safety.block import BEGIN, END, put
from carbon_mind.serve import rewrite
from carbon_mind.serve.rewrite import (
    Instructions,
    by_name,
    changed,
    directory,
    freshen,
    instructions,
    settle,
    skeleton,
    take_block,
    told,
)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("  Today's date: Mon Nov 30 2026", "date"),
        ("Today\u2019s date is 2026-11-30.", "date"),
        ("Current date: 30/11/2026", "date"),
        ("- Current time: 10:31", "date"),
        ("Date: 2026-11-30", "date"),
        ("The current date is Monday, November 30, 2026", "date"),
        ("Session ID: 0f8a-1", "nonce"),
        ("x-anthropic-billing-header: cch=1234", "nonce"),
        ("<request_id>42</request_id>", "nonce"),
        ("nonce: abc", "nonce"),
    ],
)
def test_lines_that_change_are_taken_out_and_told(line: str, rule: str) -> None:
    found = settle(f"Before.\n{line}\nBehind.\n")
    assert found.text == "Before.\nBehind.\n"
    assert found.moved == ((rule, line.strip()),)
    assert found.rules == (rule,)
    assert line.strip() in told(found.moved, "")
    assert settle(f"{line}\nBehind.").text == "Behind."
    assert settle(f"Before.\n{line}").text == "Before."


@pytest.mark.parametrize(
    "text",
    [
        "When the current date matters, run `date`.",
        "Answer today, not in 30 minutes.",
        "The release of 2026-11-30 broke it.",
        "Give each session id a name.",
        "Use 10:30 as the time in tests of timestamps, as of 2020-01-01 they " + "x" * 200 + " today's date",
        "",
    ],
)
def test_other_lines_stay(text: str) -> None:
    assert settle(text) == rewrite.Settled(text)


@given(st.text(max_size=400))
def test_nothing_is_dropped(text: str) -> None:
    found = settle(text)
    left = "".join([found.text, *(said for _, said in found.moved)])
    assert sorted("".join(left.split())) == sorted("".join(text.split()).replace("\0", "")) or "\0" in text


def test_line_ends_become_those_of_unix() -> None:
    assert settle("a\r\nb\r\n") == rewrite.Settled("a\nb\n", (), ("crlf",))


def test_the_managed_block_is_lifted_as_it_is() -> None:
    agents = put(b"# Rules\n\nUse tabs.\n", b"digest").decode()
    found = settle(f"Instructions from: /r/AGENTS.md\n{agents}\nMore.")
    assert found.rules == ("mind",)
    assert found.text == "Instructions from: /r/AGENTS.md\n# Rules\n\nUse tabs.\n\nMore."
    ((rule, block),) = found.moved
    assert (rule, block) == ("mind", f"{BEGIN.decode()}\ndigest\n{END.decode()}")
    assert told(found.moved, "another digest") == block, "the digest is not told twice"
    assert take_block(f"{END.decode()} {BEGIN.decode()}") == (f"{END.decode()} {BEGIN.decode()}", "")
    assert take_block(block + block) == (block + block, "")


def test_what_is_told_goes_from_stable_to_volatile() -> None:
    moved = (("date", "Date: 2026-11-30"), ("nonce", "nonce: 1"))
    assert told(moved, "the digest\n") == f"the digest\n\n{rewrite.MOVED}\nDate: 2026-11-30\nnonce: 1"
    assert told((), "") == ""


def test_tools_are_put_in_order_as_they_are() -> None:
    tools = [msgspec.Raw(text) for text in (b'{"function": {"name":"b"}}', b'{"function":{"name": "a"} }')]
    ordered = by_name(tools)
    assert ordered is not None
    assert [bytes(tool) for tool in ordered] == [bytes(tools[1]), bytes(tools[0])]
    assert by_name(ordered) is None
    assert by_name([*tools, msgspec.Raw(b"{}")]) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<env>\n  Working directory: /home/me/a b\n</env>", "/home/me/a b"),
        ("<cwd>\n/srv/x\n</cwd>", "/srv/x"),
        ("cwd: `/srv/x`", "/srv/x"),
        ("Working directory: C:\\work\\x", "C:\\work\\x"),
        ("Working directory: relative/path", ""),
        ("the working directory", ""),
        ("", ""),
    ],
)
def test_the_directory_that_an_agent_names(text: str, found: str) -> None:
    assert directory(["none here", text]) == found


FILES = {"/r/AGENTS.md": "# Rules\n\nUse tabs.\n", "/r/more.md": "More.\n"}


def test_instruction_files_are_found_by_what_they_hold() -> None:
    text = (
        f"Rules.\nInstructions from: /r/AGENTS.md\n{FILES['/r/AGENTS.md']}\nInstructions from: /r/more.md\nOther.\nEnd"
    )
    (found,) = instructions(text, FILES.get)
    assert text[found.start : found.end] == FILES["/r/AGENTS.md"]
    other = text.replace("Use tabs.", "Use spaces, and no tabs.")
    edited = {**FILES, "/r/AGENTS.md": "# Rules\n\nUse spaces, and no tabs.\n"}
    assert skeleton(text, [found]) == skeleton(other, instructions(other, edited.get))
    pi = f'<project_instructions path="/r/AGENTS.md">\n{FILES["/r/AGENTS.md"]}\n</project_instructions>'
    assert [part.path for part in instructions(pi, FILES.get)] == ["/r/AGENTS.md"]
    assert instructions("Instructions from: /gone\nx", FILES.get) == []
    assert skeleton("abc", [Instructions("p", 1, 2)]) == "a\0c"


def test_a_head_of_another_day_is_made_todays() -> None:
    text = f"  Today's date: Mon Nov 30 2026\nReleased 2026-11-30.\nInstructions from: /r/AGENTS.md\n{FILES['/r/AGENTS.md']}\nEnd"
    edited = {"/r/AGENTS.md": "# Rules\n\nUse spaces.\n"}
    fresh = freshen(text, [("/r/AGENTS.md", FILES["/r/AGENTS.md"])], date(2027, 1, 5), edited.get)
    assert "Today's date: Tue Jan 05 2027" in fresh
    assert "Released 2026-11-30." in fresh, "a date that is none of today's stays"
    assert fresh.endswith("Instructions from: /r/AGENTS.md\n# Rules\n\nUse spaces.\n\nEnd")
    assert freshen("Current date: 2026-11-30", [], date(2027, 1, 5), FILES.get) == "Current date: 2027-01-05"


def test_a_change_is_told_in_one_short_line() -> None:
    assert changed("X", "a\nb", "a\nb") == ""
    assert changed("AGENTS.md", "a\nb\n", "a\nc\n") == (
        "AGENTS.md changed since this session began. now: c; no longer: b"
    )
    long = changed("X", "", "\n".join(f"line {i}" for i in range(200)))
    assert len(long) < 420
    assert "(200 lines are new, 0 are gone)" in long
    assert "\n" not in changed("X", "a", "b\x1b[31m\nc")
