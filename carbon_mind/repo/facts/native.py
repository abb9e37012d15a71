"""C and C++ build systems: CMake with its presets, Meson, the GNU build system."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import first_line, json_lines, numbered, parse_json, table, version, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("CMakePresets.json", "CMakeLists.txt", "meson.build", "configure.ac"), limit=10)

_PROJECT = re.compile(r"^\s*project\s*\(", re.IGNORECASE)
_TESTING = re.compile(r"^\s*(?:enable_testing\s*\(|include\s*\(\s*CTest\s*\))", re.IGNORECASE)
_MINIMUM = re.compile(r"\s*cmake_minimum_required\s*\(\s*VERSION\s+(\d[\d.]*)", re.IGNORECASE)
_STANDARD = re.compile(r"\s*set\s*\(\s*CMAKE_(C|CXX)_STANDARD\s+(\d+)", re.IGNORECASE)
_EXECUTABLE = re.compile(r"\s*add_executable\s*\(\s*([\w.+-]+)\s+([\w./+-]+\.(?:c|cc|cpp|cxx))\b", re.IGNORECASE)
_AC_INIT = re.compile(r"^\s*AC_INIT\b")
_AM_TESTS = re.compile(r"^\s*TESTS\s*\+?=")
_MESON_TEST = re.compile(r"^\s*test\s*\(")
_MESON_PROGRAM = re.compile(r"""(?:\s*\w+\s*=)?\s*executable\s*\(\s*'([\w.+-]+)'\s*,\s*'([\w./+-]+)'""")
_MESON_VERSION = re.compile(r"""meson_version\s*:\s*'([^']{1,40})'""")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one build file. Below a project's top only programs are of interest."""
    found = Found(path)
    name = path.rpartition("/")[2]
    top = not found.directory or context.nearest(directory(path), name) is None
    if name == "CMakePresets.json":
        _presets(found, text)
    elif name == "CMakeLists.txt":
        _cmake(found, text, top and not context.has(join(found.directory, "CMakePresets.json")))
        _executables(found, text, _EXECUTABLE, context)
    elif name == "configure.ac":
        _autotools(found, text, context)
    else:
        _meson(found, text, top, context)
        _executables(found, text, _MESON_PROGRAM, context)
    return found.done()


def _cmake(found: Found, text: str, top: bool) -> None:
    project = first_line(text, _PROJECT)
    testing = first_line(text, _TESTING)
    if top and project:
        found.command("build", "cmake -S . -B build && cmake --build build", project)
        if testing:
            found.command("test", "ctest --test-dir build", testing)
            found.command("test-one", "ctest --test-dir build -R NAME", testing)
    for number, row in numbered(text) if project else ():
        if match := _MINIMUM.match(row):
            found.constraint(f"CMake >={match.group(1)}", number, where=True)
        elif match := _STANDARD.match(row):
            found.constraint(f"{'C++' if match.group(1) == 'CXX' else 'C'}{match.group(2)}", number, where=True)


def _presets(found: Found, text: str) -> None:
    """Presets have no line of their own in the key index, so their section's line stands for them."""
    presets = parse_json(text)
    at = json_lines(text) if presets else {}
    for key, call in (("configurePresets", ""), ("buildPresets", "build"), ("testPresets", "test")):
        entries = presets.get(key)
        for entry in (entries if isinstance(entries, list) else [])[:4]:
            name = word(table(entry).get("name"))
            if not name or table(entry).get("hidden"):
                continue
            line = at.get((key,), 0)
            if call == "build":
                configure = word(table(entry).get("configurePreset"))
                first = f"cmake --preset {configure} && " if configure else ""
                found.command("build", f"{first}cmake --build --preset {name}", line)
            elif call == "test":
                found.command("test", f"ctest --preset {name}", line)
                found.command("test-one", f"ctest --preset {name} -R NAME", line)
            elif not presets.get("buildPresets"):
                found.command("build", f"cmake --preset {name}", line)


def _meson(found: Found, text: str, top: bool, context: Context) -> None:
    project = first_line(text, _PROJECT)
    if not top or not project:
        return
    found.command("build", "meson setup build && meson compile -C build", project)
    for path in [p for p in context.below(found.directory) if p.rpartition("/")[2] == "meson.build"][:20]:
        if line := first_line(context.text(path) or "", _MESON_TEST):
            found.command("test", "meson test -C build", line, path)
            found.command("test-one", "meson test -C build NAME", line, path)
            break
    for number, row in numbered(text):
        if (match := _MESON_VERSION.search(row)) and (spec := version(match.group(1))):
            found.constraint(f"Meson {spec}", number, where=True)


def _autotools(found: Found, text: str, context: Context) -> None:
    line = first_line(text, _AC_INIT)
    automake = join(found.directory, "Makefile.am")
    if line and context.has(automake):
        found.command("build", "autoreconf -i && ./configure && make", line)
        if tests := first_line(context.text(automake) or "", _AM_TESTS):
            found.command("test", "make check", tests, automake)
            found.command("test-one", "make check TESTS=path/to/test", tests, automake)


def _executables(found: Found, text: str, pattern: re.Pattern[str], context: Context) -> None:
    for number, row in numbered(text):
        if match := pattern.match(row):
            file = resolve(found.directory, match.group(2))
            if word(match.group(1)) and context.has(file):
                found.entry(match.group(1), file, number)
