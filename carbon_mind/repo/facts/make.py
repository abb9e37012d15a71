"""Makefiles: targets by name, with the files they include. Variables and recipes are not evaluated, with exceptions that
real projects need: a `.DEFAULT` rule which forwards every target into subdirectories, a rule `%: common-%` which offers
an included file's targets under plain names, and the names of the programs that `all` links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from carbon_mind.repo.facts.context import Context, Wants, directory, join, ours, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import kind_of, ranked
from carbon_mind.repo.facts.text import lines, quote, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("GNUmakefile", "makefile", "Makefile"), limit=6)

_ASSIGN = re.compile(r"\s*(?:export\s+|override\s+)*([A-Za-z_][\w.-]*)\s*(?:\?=|\+=|:{0,3}=)\s*(.*)")
_LOCAL_ASSIGN = re.compile(r"\s*(?:export\s+|override\s+|private\s+)*[A-Za-z_][\w.-]*\s*(?:\?=|\+=|:{0,3}=)")
_REFERENCE = re.compile(r"\$[({](\w+)[)}]")
_FORWARD = re.compile(r"\$[({]MAKE[)}]\s+-C\s+(\S+)\s+\$[@({]")
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_LONG = 4000  # lists of object files are long, and often on one line
_BUILDS = frozenset({"all", "build", "compile", "default"})


_INCLUDE = re.compile(r"[-s]?include\s+([^\s$*?\[]+)\s*(?:#.*)?\Z")
_PRINTS = re.compile(r"\s*[@-]*\s*(?:echo|printf|true|:)(?:\s|$)|\s*@?#")
_MAX_INCLUDES = 6


@dataclass(slots=True)
class Target:
    """Where a target stands, and what it needs first."""

    line: int
    needs: list[str]
    path: str
    talks: bool = False  # its recipe only prints


@dataclass(slots=True)
class Makefile:
    """What a scan of one Makefile gives. A variable has its line and its first value."""

    targets: dict[str, Target] = field(default_factory=dict)
    variables: dict[str, tuple[int, str]] = field(default_factory=dict)
    default: str = ""
    includes: list[str] = field(default_factory=list)
    prefix: str = ""  # of targets that a pattern rule offers without it
    forwards: list[str] = field(default_factory=list)  # words after -C in the .DEFAULT recipe


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Commands and entry points of one Makefile."""
    found = Found(path)
    here = directory(path)
    if path != _preferred(context, here) or (here and path in _covered(context)):
        return found.done()
    made = read(path, context)
    _targets(found, made, f"make -C {quote(here)}" if here else "make", _is_c(context, here))
    _programs(found, made, path, context)
    if not here:
        for below, inner in _forwarded(made, context).items():
            _targets(found, inner, "make", is_c=True)
            _programs(found, inner, below, context)
    return found.done()


def read(path: str, context: Context) -> Makefile:
    """A Makefile with the files that it includes; names in them count from where make runs."""
    here = directory(path)
    made = scan(context.text(path) or "", path)
    waiting = list(made.includes)
    for name in waiting[:_MAX_INCLUDES]:
        inner = resolve(here, name)
        if not inner or inner == path or (text := context.text(inner)) is None:
            continue
        included = scan(text, inner)
        for target, value in included.targets.items():
            made.targets.setdefault(target, value)
        made.prefix = made.prefix or included.prefix
    if made.prefix:
        for name, value in list(made.targets.items()):
            if name.startswith(made.prefix):
                made.targets.setdefault(name.removeprefix(made.prefix), value)
    return made


def scan(text: str, path: str) -> Makefile:
    """Targets and variables of one file, without evaluating anything."""
    made = Makefile()
    inside = ""
    defining = False
    done: set[str] = set()  # rules whose recipe does something
    for number, row in _joined(text):
        if row.startswith("\t"):
            _recipe(made, inside, row, done)
            continue
        if row.startswith(("define ", "endef")):
            defining = row.startswith("define ")
            continue
        row = row.split("#", 1)[0]
        if defining or not row.strip():
            continue
        if match := _INCLUDE.match(row):
            made.includes.append(match.group(1))
            continue
        if match := _ASSIGN.match(row):
            made.variables.setdefault(match.group(1), (number, match.group(2).strip()))
            continue
        names, colon, rest = row.partition(":")
        if not colon or row[0].isspace() or "=" in names:
            continue
        inside = names.strip()
        prerequisites = rest.lstrip(":").split(";")[0]
        if _LOCAL_ASSIGN.match(prerequisites):
            continue
        needs = prerequisites.split()
        if inside == "%" and len(needs) == 1 and needs[0].endswith("%"):
            made.prefix = needs[0].removesuffix("%")
        for name in names.split():
            made.targets.setdefault(name, Target(number, needs, path))
            if not made.default and name[0] not in ".%$":
                made.default = name
    return made


def _recipe(made: Makefile, inside: str, row: str, done: set[str]) -> None:
    """One line of the recipe of the targets `inside`."""
    if inside == ".DEFAULT" and (match := _FORWARD.search(row)):
        made.forwards.append(match.group(1))
    elif inside not in done:
        if not _PRINTS.match(row):
            done.add(inside)
        for name in inside.split():
            if name in made.targets:
                made.targets[name].talks = inside not in done


def _joined(text: str) -> list[tuple[int, str]]:
    """Lines with their continuation lines; the number is the first one's."""
    joined: list[tuple[int, str]] = []
    open_line = False
    for number, row in enumerate(lines(text, _LONG), start=1):
        part = row.removesuffix("\\")
        if open_line and len(joined[-1][1]) < _LONG:
            joined[-1] = (joined[-1][0], f"{joined[-1][1]} {part.strip()}")
        elif not open_line:
            joined.append((number, part))
        open_line = row.endswith("\\")
    return joined


def _preferred(context: Context, here: str) -> str:
    return next((join(here, name) for name in WANTS.names if context.has(join(here, name))), "")


def _targets(found: Found, made: Makefile, call: str, is_c: bool) -> None:
    plain = {name: target for name, target in made.targets.items() if word(name)}
    default = made.default
    wanted = made.targets[default].needs if default else []
    builds = default in _BUILDS or (is_c and any(name in _BUILDS for name in wanted))
    if default and builds and not (made.targets[default].talks and not wanted):
        found.command("build", call, made.targets[default].line, made.targets[default].path, here=False)
        if default == "build" or wanted == ["build"]:
            plain.pop("build", None)
    elif "all" in plain and "build" not in plain and (plain["all"].needs or not plain["all"].talks):
        found.command("build", f"{call} all", plain["all"].line, plain["all"].path, here=False)
    for kind, name in ranked(plain):
        if name == "check":
            needs = plain[name].needs
            if needs == ["test"] and "test" in plain:
                continue  # only another name for it
            kind = "test" if "test" in needs or (is_c and "test" not in plain) else "lint"
        found.command(kind, f"{call} {name}", plain[name].line, plain[name].path, here=False)


def _is_c(context: Context, here: str) -> bool:
    return context.has_suffix(*_C_SUFFIXES) if not here else any(p.endswith(_C_SUFFIXES) for p in context.below(here))


def _forwarded(made: Makefile, context: Context) -> dict[str, Makefile]:
    """Makefiles of the directories into which the root's `.DEFAULT` rule forwards; loops run over one variable."""
    if not made.forwards:
        return {}
    lists = [value for name, (_, value) in made.variables.items() if name.lower() in {"subdirs", "dirs"}]
    names = [name for value in lists for name in value.split()] + made.forwards
    forwarded: dict[str, Makefile] = {}
    for name in names:
        path = _preferred(context, name) if word(name) and ours(f"{name}/") else ""
        if path and path not in forwarded and context.text(path) is not None:
            forwarded[path] = read(path, context)
    return dict(list(forwarded.items())[:2])


def _covered(context: Context) -> dict[str, Makefile]:
    """Makefiles whose targets the root Makefile already offers."""
    root = _preferred(context, "")
    return _forwarded(read(root, context), context) if context.text(root) is not None else {}


def _programs(found: Found, made: Makefile, path: str, context: Context) -> None:
    """Programs that the default target links, each with the C file that carries its name."""
    here = directory(path)
    wanted = [made.default]
    wanted += [
        need for key in (made.default, "all", "build") if key in made.targets for need in made.targets[key].needs
    ]
    for name in list(dict.fromkeys(wanted))[:16]:
        if name not in made.targets or kind_of(name):
            continue
        line = made.targets[name].line
        reference = _REFERENCE.fullmatch(name)
        if reference and reference.group(1) in made.variables:
            line, value = made.variables[reference.group(1)]
            program = word(_REFERENCE.sub("", value))
        else:
            program = word(name)
        objects = _objects(name, made)
        for stem in dict.fromkeys((program.rpartition("/")[2], program.rpartition("-")[2], "main")):
            source = next((s for s in _C_SUFFIXES if stem and context.has(join(here, stem + s))), "")
            if source and {f"{stem}.o", f"{stem}{source}"} & objects:
                found.entry(program, join(here, stem + source), line, path)
                break


def _objects(name: str, made: Makefile) -> set[str]:
    """What a program is linked from; one that needs another program is made of that one's objects."""
    needs = made.targets[name].needs[:40]
    needs += [inner for need in needs if need in made.targets for inner in made.targets[need].needs[:40]]
    return {part for need in needs for part in _expand(need, made)}


def _expand(need: str, made: Makefile) -> list[str]:
    reference = _REFERENCE.fullmatch(need)
    return made.variables.get(reference.group(1), (0, ""))[1].split() if reference else [need]
