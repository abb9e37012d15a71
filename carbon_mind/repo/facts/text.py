"""Reading manifests as data: lines with their numbers, bounded and cleaned, and the shapes that may leave here.

Whatever a repository says can end up in a prompt and in a terminal, so a name enters a command only when it is one
plain shell word, and a version only when it looks like one. Refusing is silent: the fact is absent.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache

MAX_LINE = 500
MAX_TEXT = 512 * 1024
MAX_FACT = 160

_WORD = re.compile(r"[A-Za-z0-9_@.+][A-Za-z0-9_@%+=:,./-]*\Z")
_VERSION_TOKEN = re.compile(r"[\w.*+<>=!~^|&/-]{1,40}\Z", re.ASCII)
_VERSION_PIECES = re.compile(r"[.+_/<>=!~^|&*\d-]+")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\Z")


def words(text: str) -> frozenset[str]:
    """The blank-separated words of a constant list."""
    return frozenset(text.split())


def lines(text: str, limit: int = MAX_LINE) -> list[str]:
    """Lines as editors and grep count them (only at `\\n`); an overlong line becomes "" so that no regex sees it."""
    rows = text.removeprefix("\ufeff").split("\n")
    return [row.rstrip("\r") if len(row) <= limit else "" for row in rows]


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """(1-based line number, line)."""
    return enumerate(lines(text), start=1)


def first_line(text: str, pattern: re.Pattern[str]) -> int:
    """Number of the first line in which `pattern` is found, or 0."""
    return next((number for number, row in numbered(text) if pattern.search(row)), 0)


_CHANNELS = words("stable beta nightly latest system lts")
_VERSION_WORDS = _CHANNELS | words(
    "v x a b c p t rc alpha dev pre preview post final ga snapshot patch otp or and python pypy cpython ruby "
    "jruby truffleruby go java temurin openjdk graalvm zulu corretto node iron jod hydrogen gallium fermium "
    "erbium krypton"
)

# Fixed ranges, not unicodedata: its tables change with the Python version, and the output must not.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\ue000-\uf8ff"
    "\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def clean(text: str) -> str:
    """One line of visible characters: controls, zero-width and bidirectional marks gone, blanks collapsed."""
    spaced = text.replace("\t", " ").replace("\n", " ").replace("\r", " ")
    return " ".join(_INVISIBLE.sub("", spaced).split())


def plain_path(path: str) -> bool:
    """Whether a path can be written into one line unchanged."""
    return clean(path) == path


def word(text: object) -> str:
    """`text` when it is a single shell word that needs no quoting and is no option, else ""."""
    return text if isinstance(text, str) and len(text) <= 100 and _WORD.match(text) else ""


def target(text: object) -> str:
    """`text` when it reads `module:function`, else "". Extras behind it (`[dev]`) are dropped."""
    name = text.split("[")[0].strip() if isinstance(text, str) and len(text) <= 200 else ""
    return name if _TARGET.match(name) else ""


def version(text: object) -> str:
    """`text` when it looks like a version or a range of versions, else "".

    Every run of letters must be a word that versions are made of: prose, also in-one-word-prose, does not get through.
    """
    spec = clean(text) if isinstance(text, str) and len(text) <= 200 else ""
    tokens = spec.replace(",", " ").split()
    letters = [piece for token in tokens for piece in _VERSION_PIECES.split(token.lower()) if piece]
    plain = all(_VERSION_TOKEN.match(token) for token in tokens) and all(piece in _VERSION_WORDS for piece in letters)
    tells = any(char.isdigit() for char in spec) or any(piece in _CHANNELS for piece in letters)
    return spec if tells and plain and len(spec) <= 60 and len(tokens) <= 8 else ""


def quote(path: str) -> str:
    """A path as one shell word; `./` keeps a leading dash from being read as an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def listing(names: list[str], room: int) -> str:
    """As many names as fit into `room` characters, and how many are left."""
    shown: list[str] = []
    used = 0
    for name in names:
        used += len(name) + 2
        if used > room - 10:
            break
        shown.append(name)
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if shown and rest else "")


# --- JSON and TOML: parsed by the standard library, located by a scan ------------------------------------------


def parse_json(text: str) -> dict[str, object]:
    """The object a JSON text holds; {} when it is malformed or no object."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def parse_toml(text: str) -> dict[str, object]:
    """The document a TOML text holds; {} when it is malformed."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}


def table(value: object, *keys: str) -> dict[str, object]:
    """The nested table below `keys`; {} when something else stands there. Keys are strings in JSON and TOML."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return dict(value) if isinstance(value, Mapping) else {}


def strings(value: object) -> list[str]:
    """The strings of a list, or a single string as a list."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,\n]')


def json_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line of each key by its path, e.g. ("scripts", "test"): 12. Only for a text that `parse_json` accepts."""
    found: dict[tuple[str, ...], int] = {}
    stack: list[str | None] = []  # one entry for each open bracket: the key last seen in it, None in a list
    number = 1
    last = ""
    last_line = 1
    for match in _JSON_TOKEN.finditer(text):
        part = match.group()
        if part == "\n":
            number += 1
            continue
        if part in "{[":
            stack.append("" if part == "{" else None)
        elif part in "}]":
            if stack:
                stack.pop()
        elif part == ":":
            key = _json_string(last)
            if stack:
                stack[-1] = key
            if len(stack) <= 3 and None not in stack:
                found[tuple(name or "" for name in stack)] = last_line
        last, last_line = part, number
    return found


def _json_string(quoted: str) -> str:
    try:
        value = json.loads(quoted)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


_TOML_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_TOML_KEY = re.compile(rf"\s*({_TOML_PART}(?:\s*\.\s*{_TOML_PART})*)\s*=")
_TOML_HEADER = re.compile(rf"\s*\[\[?\s*({_TOML_PART}(?:\s*\.\s*{_TOML_PART})*)\s*\]")
_TOML_SPLIT = re.compile(_TOML_PART)


def toml_line(text: str, *keys: str) -> int:
    """Line that shows the key or table `keys`: itself, else its first sub-table, else the nearest table around it."""
    index = _toml_index(text)
    if keys in index:
        return index[keys]
    around = depth = 0
    for full, number in index.items():
        if full[: len(keys)] == keys:
            return number
        if keys[: len(full)] == full and len(full) > depth:
            around, depth = number, len(full)
    return around


@lru_cache(maxsize=4)  # one manifest is asked for many keys in a row
def _toml_index(text: str) -> dict[tuple[str, ...], int]:
    """Full name of each table and key -> first line, in the order of lines."""
    index: dict[tuple[str, ...], int] = {}
    header: tuple[str, ...] = ()
    for number, row in numbered(text):
        if match := _TOML_HEADER.match(row):
            header = full = _toml_parts(match.group(1))
        elif match := _TOML_KEY.match(row):
            full = header + _toml_parts(match.group(1))
        else:
            continue
        index.setdefault(full, number)
    return index


def _toml_parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _TOML_SPLIT.findall(dotted))


# --- ini files ----------------------------------------------------------------------------------------------------

_INI_SECTION = re.compile(r"\[([^\]]+)\]")
_INI_KEY = re.compile(r"([A-Za-z_][\w.-]*)\s*[=:]\s*(.*)")


def parse_ini(text: str) -> dict[str, dict[str, tuple[int, str]]]:
    """section -> key -> (line, value with its continuation lines); section -> "" -> (line, "") for the section itself.

    Written here because configparser knows no line numbers and differs between Python versions on malformed input.
    """
    sections: dict[str, dict[str, tuple[int, str]]] = {}
    current: dict[str, tuple[int, str]] = {}
    key = ""
    for number, row in numbered(text):
        if not row.strip() or row.lstrip().startswith(("#", ";")):
            continue
        if row[0].isspace():
            if key:
                line, value = current[key]
                current[key] = (line, f"{value}\n{row.strip()}")
        elif match := _INI_SECTION.match(row):
            current = sections.setdefault(match.group(1).strip(), {"": (number, "")})
            key = ""
        elif match := _INI_KEY.match(row):
            key = match.group(1).lower()
            current[key] = (number, match.group(2).strip())
    return sections
