"""Makefiles: targets by name. Variables and recipes are not evaluated, with two exceptions that real C projects need:
a `.DEFAULT` rule which forwards every target into subdirectories, and the names of the programs that `all` links.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from carbon_mind.repo.facts.context import Context, Wants, directory, join, ours
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


@dataclass(slots=True)
class Makefile:
    """What a scan of one Makefile gives: target -> (line, prerequisites), variable -> (line, first value)."""

    targets: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    variables: dict[str, tuple[int, str]] = field(default_factory=dict)
    default: str = ""
    forwards: list[str] = field(default_factory=list)  # words after -C in the .DEFAULT recipe


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Commands and entry points of one Makefile."""
    found = Found(path)
    here = directory(path)
    if path != _preferred(context, here) or (here and path in _covered(context)):
        return found.done()
    made = scan(text)
    _targets(found, made, f"make -C {quote(here)}" if here else "make", _is_c(context, here))
    _programs(found, made, path, context)
    if not here:
        for below, inner in _forwarded(made, context).items():
            _targets(found, inner, "make", is_c=True, path=below)
            _programs(found, inner, below, context)
    return found.done()


def scan(text: str) -> Makefile:
    """Targets and variables of a Makefile, without evaluating anything."""
    made = Makefile()
    inside = ""
    defining = False
    for number, row in _joined(text):
        if row.startswith("\t"):
            if inside == ".DEFAULT" and (match := _FORWARD.search(row)):
                made.forwards.append(match.group(1))
            continue
        if row.startswith(("define ", "endef")):
            defining = row.startswith("define ")
            continue
        row = row.split("#", 1)[0]
        if defining or not row.strip():
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
        for name in names.split():
            made.targets.setdefault(name, (number, prerequisites.split()))
            if not made.default and name[0] not in ".%$":
                made.default = name
    return made


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


def _targets(found: Found, made: Makefile, call: str, is_c: bool, path: str = "") -> None:
    plain = {name: line for name, (line, _) in made.targets.items() if word(name)}
    default = made.default
    wanted = made.targets.get(default, (0, []))[1]
    if default and (default in _BUILDS or any(name in _BUILDS for name in wanted)) and (is_c or default in _BUILDS):
        found.command("build", call, made.targets[default][0], path, here=False)
        plain.pop("all", None)
    for kind, name in ranked(plain):
        if name == "check":
            needs = made.targets[name][1]
            if needs == ["test"] and "test" in plain:
                continue  # only another name for it
            kind = "test" if "test" in needs or (is_c and "test" not in plain) else "lint"
        found.command(kind, f"{call} {name}", plain[name], path, here=False)


def _is_c(context: Context, here: str) -> bool:
    return context.has_suffix(*_C_SUFFIXES) if not here else any(p.endswith(_C_SUFFIXES) for p in context.below(here))


def _forwarded(made: Makefile, context: Context) -> dict[str, Makefile]:
    """Makefiles of the directories into which the root's `.DEFAULT` rule forwards; loops run over one variable."""
    if not made.forwards:
        return {}
    words = [value for name, (_, value) in made.variables.items() if name.lower() in {"subdirs", "dirs"}]
    names = [name for value in words for name in value.split()] + made.forwards
    forwarded: dict[str, Makefile] = {}
    for name in names:
        path = _preferred(context, name) if word(name) and ours(f"{name}/") else ""
        if path and path not in forwarded and (text := context.text(path)) is not None:
            forwarded[path] = scan(text)
    return dict(list(forwarded.items())[:2])


def _covered(context: Context) -> dict[str, Makefile]:
    """Makefiles whose targets the root Makefile already offers."""
    text = context.text(_preferred(context, ""))
    return _forwarded(scan(text), context) if text is not None else {}


def _programs(found: Found, made: Makefile, path: str, context: Context) -> None:
    """Programs that the default target links, each with the C file that carries its name."""
    here = directory(path)
    wanted = [made.default, *made.targets.get(made.default, (0, []))[1]]
    wanted += [name for key in ("all", "build") for name in made.targets.get(key, (0, []))[1]]
    for name in list(dict.fromkeys(wanted))[:16]:
        if name not in made.targets or kind_of(name):
            continue
        line, needs = made.targets[name]
        reference = _REFERENCE.fullmatch(name)
        if reference and reference.group(1) in made.variables:
            line, value = made.variables[reference.group(1)]
            program = word(_REFERENCE.sub("", value))
        else:
            program = word(name)
        objects = {part for need in needs[:40] for part in _expand(need, made)}
        for stem in dict.fromkeys((program.rpartition("/")[2], program.rpartition("-")[2], "main")):
            source = next((s for s in _C_SUFFIXES if stem and context.has(join(here, stem + s))), "")
            if source and {f"{stem}.o", f"{stem}{source}"} & objects:
                found.entry(program, join(here, stem + source), line, path)
                break


def _expand(need: str, made: Makefile) -> list[str]:
    reference = _REFERENCE.fullmatch(need)
    return made.variables.get(reference.group(1), (0, ""))[1].split() if reference else [need]
