"""C and C++: `#include` names a file; what that includes comes with it, and so does what implements it.

A function is declared in a header and defined in some file that includes the header, so each header is a scope: of itself and of the
files that include it directly. A file opens the scopes of all headers that it includes, directly or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from carbon_mind.repo.facts.context import Context, directory
from carbon_mind.repo.facts.text import words
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, nearest, relative
from carbon_mind.values import RepoPath

MAX_REACH = 300  # headers that one file sees

# In angles these are the system's, whatever the repository calls its own files.
_SYSTEM = words(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool "
    "stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar wchar wctype unistd fcntl dirent dlfcn "
    "pthread poll sched search semaphore syslog termios regex glob grp pwd netdb endian malloc memory features windows"
)
_OFFERED = words("include includes inc src lib") | {""}  # names of directories that compilers are told to search


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves C and C++ files."""
    del context
    found = Found(files)
    suffixes: dict[str, list[RepoPath]] = defaultdict(list)
    for path in files:
        suffixes[path.rpartition("/")[2]].append(path)
    includes = {path: _included(path, files[path].imports, files, suffixes) for path in files}
    headers = {target for targets in includes.values() for target in targets}
    for path, targets in includes.items():
        for target in targets:
            found.exact(path, target)
        found.sees(path, *_reach(path, includes))
        # A header is in its own scope, and so is what includes it without being a header.
        for scope in [path] if path in headers else targets:
            found.shows(scope, path)
    return found.done()


def _reach(path: RepoPath, includes: dict[RepoPath, list[RepoPath]]) -> list[RepoPath]:
    """What the file includes, directly or not; nearest first, not more than MAX_REACH."""
    reached = dict.fromkeys(includes[path])
    for header in (pending := list(reached)):  # grows while it is walked
        for target in includes[header]:
            if len(reached) >= MAX_REACH:
                return list(reached)
            if target not in reached:
                reached[target] = None
                pending.append(target)
    return list(reached)


def _included(
    path: RepoPath, imports: Iterable[str], files: Files, suffixes: dict[str, list[RepoPath]]
) -> list[RepoPath]:
    here = directory(path)
    targets: set[RepoPath] = set()
    for text in imports:
        angled = text.startswith("<")
        name = text.strip('<>"')
        if angled and name.removesuffix(".h") in _SYSTEM:
            continue
        place = relative(here, name)
        target = first([place], files) if place and not angled else None
        if target is None:
            plain = "/".join(part for part in name.split("/") if part not in ("", ".", ".."))
            ends = [
                other
                for other in suffixes.get(plain.rpartition("/")[2], ())
                if other == plain or other.endswith(f"/{plain}")
            ]
            if angled and "/" not in plain:
                # One word in angles is found only where headers are offered to others.
                ends = [other for other in ends if directory(other).rpartition("/")[2] in _OFFERED]
            target = nearest(path, ends)
        if target is not None and target != path:
            targets.add(target)
    return sorted(targets)
