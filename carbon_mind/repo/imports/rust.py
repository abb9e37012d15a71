"""Rust: `mod` lines make a tree of files below each crate root, and a path walks it to the deepest module that it names.

An item that a module re-exports (`pub use`) leads to the file that defines it. A crate of the workspace is known by the name in
its Cargo.toml, with underscores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from carbon_mind.repo.facts.context import Context, Wants, directory, join
from carbon_mind.repo.facts.text import table
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first, relative
from carbon_mind.values import RepoPath

MAX_HOPS = 3  # re-exports of re-exports
_WANTS = Wants(names=("Cargo.toml",), limit=400, in_tests=True)
_MODULE_FILES = ("main.rs", "lib.rs", "mod.rs")

Names = tuple[str, ...]


@dataclass(slots=True)
class _Crate:
    modules: dict[Names, RepoPath] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file is in a crate."""

    crate: _Crate
    names: Names


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves Rust files."""
    found = Found(files)
    tree = _Tree(files, context)
    parents: set[RepoPath] = set()
    for path, tags in files.items():
        place = tree.places[path]
        for text in tags.imports:
            if text.startswith("path:"):
                target = _relative_file(path, text[5:])
            elif text == "super::*":
                # What a test module inside the file writes as well, so the file above may not be meant.
                parent = place.crate.modules.get(place.names[:-1]) if place.names else None
                if parent is not None and parent != path:
                    found.sees(path, parent)
                    parents.add(parent)
                continue
            else:
                target = tree.find(path, text)
            if target is not None and target in files:
                found.exact(path, target)
                if tree.is_parent(target):
                    found.sees(path, target)
                    parents.add(target)
    for parent in sorted(parents):
        found.shows(parent, parent, *found.exact_of(parent))
    return found.done()


def _relative_file(path: str, text: str) -> RepoPath | None:
    place = relative(directory(path), text)
    return RepoPath(place) if place else None


class _Tree:
    """Every file's place, and the crates by name."""

    def __init__(self, files: Files, context: Context) -> None:
        self._files = files
        self.places: dict[RepoPath, _Place] = {}
        self._crates: dict[str, _Crate] = {}
        self._exports: dict[RepoPath, dict[str, list[str]]] = {}
        self._defined: dict[RepoPath, frozenset[str]] = {}
        for name, root in _roots(files, context):
            crate = self._grow(root)
            if name:
                self._crates.setdefault(name, crate)
        # What no root reaches (an example, a file behind a macro) stands for itself.
        for path in sorted(
            files, key=lambda path: (path.rpartition("/")[2] not in _MODULE_FILES, path.count("/"), path)
        ):
            if path not in self.places:
                self._grow(path)

    def _grow(self, root: RepoPath) -> _Crate:
        crate = _Crate({(): root})
        self.places.setdefault(root, _Place(crate, ()))
        pending: list[tuple[RepoPath, Names, str]] = [(root, (), directory(root))]
        for path, names, folder in pending:  # grows while it is walked
            for text in self._files[path].imports:
                if text.startswith("path:"):
                    child = _relative_file(path, text[5:])
                    added: Names = (child.rpartition("/")[2].removesuffix(".rs"),) if child else ()
                elif text.startswith("self::"):
                    added = tuple(text.split("::")[1:])
                    base = join(folder, "/".join(added))
                    child = first((f"{base}.rs", f"{base}/mod.rs"), self._files)
                else:
                    continue
                full = (*names, *added)
                if child is None or child not in self._files or full in crate.modules:
                    continue
                crate.modules[full] = child
                self.places.setdefault(child, _Place(crate, full))
                inside = directory(child) if child.endswith("/mod.rs") else child.removesuffix(".rs")
                pending.append((child, full, inside))
        return crate

    def is_parent(self, path: RepoPath) -> bool:
        """Whether the file has modules below it, so that what it imports may be there for others."""
        return path.rpartition("/")[2] in _MODULE_FILES or any(
            text.startswith("self::") for text in self._files[path].imports
        )

    def find(self, path: RepoPath, text: str, hops: int = MAX_HOPS) -> RepoPath | None:
        """The file that a path in `path` means; None when it is not of this repository."""
        place = self.places[path]
        head, *rest = text.split("::")
        crate, names = place.crate, place.names
        if head == "crate":
            names = ()
        elif head == "super":
            while head == "super":
                if not names:
                    return None
                names = names[:-1]
                head, *rest = rest or [""]
            rest = [head, *rest]
        elif head != "self":
            if (*names, head) in crate.modules:
                rest = [head, *rest]
            elif head in self._crates:
                crate, names = self._crates[head], ()
            else:
                return None
        module = crate.modules.get(names)
        while rest and (*names, rest[0]) in crate.modules:
            names = (*names, rest.pop(0))
            module = crate.modules[names]
        if module is None or not rest or rest[0] == "*" or rest[0] in self._names(module):
            return module
        if hops and (home := self._re_exported(module, rest, hops)):
            return home
        # From inside a test module `super` is the file itself; elsewhere the item may come from a macro.
        return None if text.startswith("super::") else module

    def _re_exported(self, module: RepoPath, rest: list[str], hops: int) -> RepoPath | None:
        exports = self._re_exports(module)
        for text in exports.get(rest[0], ()):
            source = "::".join((text, *rest[1:]))
            if (home := self.find(module, source, hops - 1)) is not None and home != module:
                return home
        for text in exports.get("*", ()):
            source = text.removesuffix("::*")
            home = self.find(module, source, hops - 1)
            if home is not None and home != module and rest[0] in self._names(home):
                return home
        return None

    def _names(self, path: RepoPath) -> frozenset[str]:
        if path not in self._defined:
            self._defined[path] = frozenset(item.name for item in self._files[path].definitions)
        return self._defined[path]

    def _re_exports(self, path: RepoPath) -> dict[str, list[str]]:
        """Last name -> the paths of `use` lines that end in it."""
        if path not in self._exports:
            exports: dict[str, list[str]] = {}
            self._exports[path] = exports
            for text in self._files[path].imports:
                if "::" in text and not text.startswith("path:"):
                    exports.setdefault(text.rpartition("::")[2], []).append(text)
        return self._exports[path]


def _roots(files: Files, context: Context) -> Iterator[tuple[str, RepoPath]]:
    """(name by which others use it or "", root file) of each crate; libraries first."""
    programs: list[RepoPath] = []
    for manifest in context.choose(_WANTS):
        here = directory(manifest)
        parsed = context.toml(manifest)
        library, package = table(parsed, "lib"), table(parsed, "package")
        name = str(library.get("name") or package.get("name") or "").replace("-", "_")
        given = library.get("path")
        place = relative(here, given) if isinstance(given, str) else join(here, "src/lib.rs")
        if package and name and place in files:
            yield name, RepoPath(str(place))
        declared = parsed.get("bin")
        for entry in declared if isinstance(declared, list) else ():
            given = table(entry).get("path")
            place = relative(here, given) if isinstance(given, str) else None
            if place in files:
                programs.append(RepoPath(str(place)))
        programs += [
            path for name in ("src/main.rs", "build.rs") if (path := RepoPath(join(here, name))) in files and package
        ]
        for folder in ("src/bin", "tests", "benches", "examples") if package else ():
            base = join(here, folder)
            for path in context.below(base):
                inner = path[len(base) + 1 :]
                if path in files and ("/" not in inner or (inner.count("/") == 1 and inner.endswith("/main.rs"))):
                    programs.append(path)
    yield from (("", path) for path in dict.fromkeys(programs))
