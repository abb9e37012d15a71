"""JavaScript and TypeScript: relative paths, aliases of tsconfig.json and of bundlers, packages of the workspace.

A file that only gathers others (index.ts) is named by the import; what it gathers becomes visible. A workspace package resolves
to its source: what is built from it is not in the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from carbon_mind.repo.facts.context import Context, directory, join
from carbon_mind.repo.facts.text import parse_json, strings, table
from carbon_mind.repo.imports.aliases import Aliases
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, relative
from carbon_mind.values import RepoPath

MAX_GATHERED = 200  # files that one index brings along
MAX_PACKAGES = 1000
_ENDS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_BUILT = re.compile(r"\A(dist|lib|build|out|output|esm|cjs|es|umd|types|temp)/")
_COMPILED = re.compile(r"(\.d)?\.[cm]?[jt]sx?\Z")
_CONDITIONS = ("source", "types", "import", "module", "require", "default", "node", "browser", "development")
_SOURCES = ("src/index", "index", "src/main", "lib/index", "source/index")


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves JavaScript and TypeScript files."""
    found = Found(files)
    packages = _Packages(files, context)
    aliases = Aliases(context)
    named: set[RepoPath] = set()
    known: dict[tuple[str, str], RepoPath | None] = {}  # an import means the same everywhere in a directory
    for path, tags in files.items():
        here = directory(path)
        for text in tags.imports:
            if (here, text) not in known:
                known[here, text] = _target(path, text.partition("?")[0], files, packages, aliases)
            target = known[here, text]
            found.exact(path, target)
            if target is not None and _gathers(target):
                found.sees(path, target)
                named.add(target)
    for index in sorted(named):
        found.shows(index, *_gathered(index, found))
    return found.done()


def _target(path: RepoPath, text: str, files: Files, packages: _Packages, aliases: Aliases) -> RepoPath | None:
    if text.startswith("."):
        place = relative(directory(path), text)
        return None if place is None else at(place, files)
    if text.startswith("#") and (target := packages.private(path, text)):
        return target
    for place in aliases.places(path, text):
        if target := at(place, files):
            return target
    return packages.public(text)


def at(place: str, files: Files) -> RepoPath | None:
    """The source file that a path without its end (or with that of the compiled file) means."""
    compiled = re.sub(r"\.([cm]?)jsx?\Z", r".\1ts", place)
    shapes = [place, compiled, f"{compiled}x"] if compiled != place else [place]
    shapes += [place + end for end in _ENDS] if place else []
    shapes += [join(place, f"index{end}") for end in _ENDS]
    return first(shapes, files)


def _gathers(path: str) -> bool:
    return path.rpartition("/")[2].startswith("index.")


def _gathered(index: RepoPath, found: Found) -> Iterable[RepoPath]:
    """What the index names, and what an index among these names in turn."""
    reached = dict.fromkeys([index])
    pending = [index]
    for path in pending:  # grows while it is walked
        for target in found.exact_of(path):
            if target not in reached and len(reached) < MAX_GATHERED:
                reached[target] = None
                if _gathers(target):
                    pending.append(target)
    return reached


class _Packages:
    """The packages of the workspace by name, each with its manifest."""

    def __init__(self, files: Files, context: Context) -> None:
        self._files = files
        self._context = context
        self._targets: dict[str, RepoPath | None] = {}
        self._manifests: dict[str, dict[str, object]] = {}  # directory -> manifest
        self._places: dict[str, str] = {}  # name -> directory
        manifests = [path for path in context.paths if path == "package.json" or path.endswith("/package.json")]
        for path in sorted(manifests, key=lambda path: (path.count("/"), path))[:MAX_PACKAGES]:
            if "node_modules/" in path:
                continue
            manifest = parse_json(context.text(path) or "")
            name = manifest.get("name")
            if isinstance(name, str) and name:
                self._places.setdefault(name, directory(path))
            self._manifests[directory(path)] = manifest

    def public(self, text: str) -> RepoPath | None:
        """The file that `name` or `name/part` means, if the workspace has such a package."""
        if text not in self._targets:
            parts = text.split("/")
            length = 2 if text.startswith("@") else 1
            place = self._places.get("/".join(parts[:length]))
            self._targets[text] = None if place is None else self._inside(place, "/".join(parts[length:]))
        return self._targets[text]

    def private(self, path: RepoPath, text: str) -> RepoPath | None:
        """The file that `#name` means by the `imports` of the nearest manifest."""
        manifest = self._context.nearest(path, "package.json")
        if manifest is None:
            return None
        here = directory(manifest)
        imports = table(self._manifests.get(here), "imports")
        return self._first(here, _mapped(imports, text))

    def _inside(self, place: str, part: str) -> RepoPath | None:
        manifest = self._manifests[place]
        exports = manifest.get("exports")
        subpaths = isinstance(exports, dict) and any(key.startswith(".") for key in exports)
        given: list[str] = []
        if part:
            given += _mapped(table(exports), f"./{part}") if subpaths else []
            given += [part, f"src/{part}"]
        else:
            given += strings(manifest.get("source"))
            given += _mapped(table(exports), ".") if subpaths else list(_flat(exports))
            given += [str(manifest.get(key)) for key in ("types", "typings", "module", "main") if manifest.get(key)]
            given += _SOURCES
        return self._first(place, given)

    def _first(self, place: str, given: Iterable[str]) -> RepoPath | None:
        for text in given:
            inner = relative("", text)
            shapes = [inner or ""]
            if inner and _BUILT.match(inner):
                # Built files are named after the source's folder: dist/x.js comes from src/x.ts.
                shapes.append(_COMPILED.sub("", _BUILT.sub("src/", inner)))
            for shape in shapes:
                if shape and (target := at(join(place, shape), self._files)):
                    return target
        return None


def _mapped(table_: dict[str, object], key: str) -> list[str]:
    """What the subpath table of `exports` or `imports` gives for a key; a pattern has one star."""
    if key in table_:
        return list(_flat(table_[key]))
    for pattern in sorted(table_, key=len, reverse=True):
        before, star, after = pattern.partition("*")
        if star and key.startswith(before) and key.endswith(after) and len(key) >= len(before) + len(after):
            middle = key[len(before) : len(key) - len(after)]
            return [value.replace("*", middle) for value in _flat(table_[pattern])]
    return []


def _flat(value: object, depth: int = 4) -> Iterator[str]:
    """The strings in nested conditions, those of the source first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth:
        for condition in _CONDITIONS:
            if condition in value:
                yield from _flat(value[condition], depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _flat(item, depth - 1)
