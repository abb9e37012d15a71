"""Containers: what the image is built on, what of the repository it starts, and which environment names a run needs.

Names only: a value in such a file may well be a real one. A command counts only when what it starts is seen in the
repository; paths in an image are not paths in the tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from carbon_mind.repo.facts.context import Context, Wants, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import json_lines, lines, listing, parse_json, strings, table, word, words
from carbon_mind.repo.facts.yaml_tree import Fields, Text, Tree, at, fields, items, parse_yaml
from carbon_mind.repo.facts.yaml_tree import text as scalar
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(tree=True)  # one line of names over all these files

_IMAGES = ("Dockerfile", "Containerfile", "docker/Dockerfile", "docker/Containerfile")
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")  # as compose itself looks
_APP = "app.json"

_NAME = re.compile(r"[A-Z][A-Z0-9_]{1,40}\Z")
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_FROM = re.compile(r"(?:--platform=\S+\s+)?(\S{1,160})(?:\s+AS\s+(\S+))?\s*\Z", re.IGNORECASE)
_IMAGE = re.compile(r"[a-z0-9][\w./:-]*\Z", re.ASCII)
_HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")
_ASSIGNED = re.compile(r"""([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)""")
_REQUIRED = re.compile(r"\$\{([A-Za-z_]\w*):?\?")
_REFERENCE = re.compile(r"\$\{?([A-Za-z_]\w*)(:?[-+?])?")
_ARGUMENT = re.compile(r"[\w@.+:/=,-]{1,80}\Z", re.ASCII)
_SECRET = re.compile(r"pass|secret|token|key|cred|auth|://", re.IGNORECASE)
_APPLICATION = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*\Z", re.ASCII)
_MODULE = re.compile(r"[A-Za-z_][\w.]*\Z", re.ASCII)

_INTERPRETERS = words("python python3 node ruby php bash sh bun")
_SERVERS = words("uvicorn gunicorn hypercorn granian daphne")
_RUNNERS = (["uv", "run"], ["poetry", "run"], ["pipenv", "run"], ["pdm", "run"])
_GIVEN = words(  # set by the builder
    "TARGETPLATFORM TARGETOS TARGETARCH TARGETVARIANT BUILDPLATFORM BUILDOS BUILDARCH BUILDVARIANT HTTP_PROXY "
    "HTTPS_PROXY FTP_PROXY NO_PROXY ALL_PROXY SOURCE_DATE_EPOCH"
)
_MAX_ARGUMENTS = 8
_ROOM = 120


@dataclass(slots=True)
class Build:
    """What a Dockerfile says: the last stage's image and start, and names without a value with their lines."""

    image: tuple[int, str] = (0, "")
    start: dict[str, tuple[int, list[str] | None]] = field(default_factory=dict)  # None: in shell form
    names: dict[str, int] = field(default_factory=dict)


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of the root's (or of docker/'s) container files."""
    found = Found("")
    names: dict[str, tuple[int, str]] = {}  # name -> where it stands
    place, content = _first(context, _COMPOSE)
    if place:
        _compose(found, names, place, content, context)
    _app(names, context)
    place, content = _first(context, _IMAGES)
    if place:
        build = _read(content)
        _start(found, build, place, context)
        line, image = build.image
        if image:
            found.constraint(f"container: {image}", line, place)
        if "/" not in place:
            for name, number in build.names.items():
                names.setdefault(name, (number, place))
    if shown := listing(list(names), _ROOM):
        found.constraint(f"environment: {shown}", *next(iter(names.values())))
    return found.done()


def _first(context: Context, places: tuple[str, ...]) -> tuple[str, str]:
    return next(((place, text) for place in places if (text := context.text(place))), ("", ""))


# --- compose and app.json ------------------------------------------------------------------------------------------


def _compose(found: Found, names: dict[str, tuple[int, str]], place: str, text: str, context: Context) -> None:
    rows = lines(text)
    built = 0
    for service in fields(at(parse_yaml(text), "services")).values():
        if isinstance(service, Fields) and not built and _builds(service.fields.get("build"), context):
            built = service.lines["build"]
        for name, line in _needed(at(service, "environment"), rows):
            if _NAME.match(name):
                names.setdefault(name, (line, place))
    if built:
        found.command("run", "docker compose up", built, place)


def _builds(build: Tree | None, context: Context) -> bool:
    """Whether the image is built of a Dockerfile in this repository."""
    where = scalar(build) if isinstance(build, Text) else scalar(at(build, "context"))
    file = scalar(at(build, "dockerfile")) or "Dockerfile"
    return bool(where) and "$" not in where + file and context.has(resolve("", f"{where}/{file}"))


def _needed(environment: Tree | None, rows: list[str]) -> list[tuple[str, int]]:
    """(name, line) of what has no value: `- NAME`, `NAME:`, and what a value demands with `${NAME:?message}`."""
    needed: list[tuple[str, int]] = []
    if isinstance(environment, Fields):
        for name, value in environment.fields.items():
            line = environment.lines[name]
            if rows[line - 1].split("#")[0].rstrip().endswith(":") and not scalar(value):
                needed.append((name, line))
            needed += [(inner, line) for inner in _REQUIRED.findall(scalar(value))]
        return needed
    for item in items(environment):
        entry = scalar(item)
        needed += [(inner, item.line) for inner in _REQUIRED.findall(entry)] if "=" in entry else [(entry, item.line)]
    return needed


def _app(names: dict[str, tuple[int, str]], context: Context) -> None:
    text = context.text(_APP) or ""
    wanted = table(parse_json(text), "env")
    if not wanted:
        return
    where = json_lines(text)
    for name in wanted:
        said = table(wanted, name)
        if _NAME.match(name) and said.get("required") is True and not ("value" in said or "generator" in said):
            names.setdefault(name, (where.get(("env", name), 0), _APP))


# --- Dockerfile ----------------------------------------------------------------------------------------------------


def _read(text: str) -> Build:
    build = Build()
    stages: set[str] = set()
    arguments: dict[str, int] = {}
    given: set[str] = set()
    used: set[str] = set()
    for number, row in _instructions(text):
        match = _INSTRUCTION.match(row)
        instruction, rest = (match.group(1).upper(), match.group(2).strip()) if match else ("", "")
        for name, default in _REFERENCE.findall(rest):
            (given if default or instruction in {"ARG", "ENV"} else used).add(name)
        if instruction == "FROM":
            build.image, build.start = (0, ""), {}
            if from_ := _FROM.match(rest):
                image = from_.group(1).partition("@")[0]  # the digest is for machines
                if image not in stages | {"scratch"} and _IMAGE.match(image):
                    build.image = (number, image)
                stages.add(from_.group(2) or "")
        elif instruction in {"CMD", "ENTRYPOINT"}:
            build.start[instruction] = (number, _exec_form(rest))
        elif instruction == "ARG":
            name, default, _ = rest.partition("=")
            if default:
                given.add(name)
            elif _NAME.match(name):
                arguments.setdefault(name, number)
        elif instruction == "ENV":
            values = _ASSIGNED.findall(rest) if "=" in rest.split(None, 1)[0] else [tuple((rest + " ").split(" ", 1))]
            for name, value in values:
                if _NAME.match(name) and value.strip() in {"", '""', "''"}:
                    build.names.setdefault(name, number)
                else:
                    given.add(name)
    # An argument that nothing uses, or that only feeds a default, is not needed.
    arguments = {name: number for name, number in arguments.items() if name in used and name not in _GIVEN}
    build.names = {name: number for name, number in (build.names | arguments).items() if name not in given}
    return build


def _instructions(text: str) -> list[tuple[int, str]]:
    """Instructions with their continuation lines and without comments; the text of a here-document is none."""
    rows: list[tuple[int, str]] = []
    open_line = False
    ends = ""
    for number, row in enumerate(lines(text), start=1):
        if ends:
            ends = "" if row.strip() == ends else ends
            continue
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        part = row.rstrip().removesuffix("\\")
        if not open_line:
            rows.append((number, part))
        elif len(rows[-1][1]) < 4000:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {part.strip()}")
        open_line = row.rstrip().endswith("\\")
        if not open_line and (match := _HEREDOC.search(row)):
            ends = match.group(1)
    return rows


def _exec_form(text: str) -> list[str] | None:
    if not text.startswith("["):
        return None
    inner = parse_json(f'{{"a": {text}}}').get("a")
    arguments = strings(inner)
    return arguments if isinstance(inner, list) and arguments and len(arguments) == len(inner) else None


def _start(found: Found, build: Build, place: str, context: Context) -> None:
    line, first = build.start.get("ENTRYPOINT", (0, []))
    last_line, last = build.start.get("CMD", (0, []))
    if first is None or last is None:
        return
    arguments = first + last
    plain = all(_ARGUMENT.match(argument) and not _SECRET.search(argument) for argument in arguments)
    if plain and len(arguments) <= _MAX_ARGUMENTS and _runs_ours(arguments, context):
        found.command("run", " ".join(arguments), line or last_line, place, here=False)


def _runs_ours(arguments: list[str], context: Context) -> bool:
    for runner in _RUNNERS:
        if arguments[:2] == runner:
            arguments = arguments[2:]
    if not arguments or arguments[0].startswith(("/", "-")):
        return False
    program, rest = arguments[0], [argument for argument in arguments[1:] if argument != "-u"]
    if program in _INTERPRETERS and rest:
        if rest[0] == "-m" and program.startswith("python"):
            return len(rest) > 1 and _module(rest[1], ("{}.py", "{}/__main__.py"), context)
        return not rest[0].startswith(("/", "-")) and context.has(resolve("", rest[0]))
    if program in _SERVERS:
        matches = [match for argument in rest if (match := _APPLICATION.match(argument))]
        return any(_module(match.group(1), ("{}.py", "{}/__init__.py"), context) for match in matches)
    if "/" in program:
        return program.startswith("./") and context.has(resolve("", program))
    return bool(word(program)) and program in table(context.toml("pyproject.toml"), "project", "scripts")


def _module(name: str, shapes: tuple[str, ...], context: Context) -> bool:
    path = name.replace(".", "/") if _MODULE.match(name) else ""
    return bool(path) and any(context.has(join(top, shape.format(path))) for top in ("", "src") for shape in shapes)
