"""Python: modules by their dotted name from a source root; a name that a package re-exports leads to the file that defines it."""

from __future__ import annotations

from collections import defaultdict

from carbon_mind.repo.facts.context import Context, directory, join
from carbon_mind.repo.facts.text import words
from carbon_mind.repo.imports.found import Files, Found, Resolved
from carbon_mind.repo.imports.paths import first
from carbon_mind.values import RepoPath

MAX_HOPS = 3  # re-exports of re-exports
_ROOTS = words("src lib python") | {""}


def resolve(files: Files, context: Context) -> dict[RepoPath, Resolved]:
    """Resolves Python files."""
    del context  # where packages start can be seen from the tree
    found = Found(files)
    modules = _Modules(files)
    packages: set[RepoPath] = set()
    for path, tags in files.items():
        named = {text.rpartition(":")[0] for text in tags.imports if ":" in text}
        for text in tags.imports:
            text, _, name = text.partition(":")
            if not name and text in named:
                continue  # the names that are taken out of it say more
            module = modules.module(path, text)
            if module is None:
                continue
            found.exact(path, modules.home(module, name) if name else module)
            if not name and module.endswith("__init__.py"):
                found.sees(path, module)
                packages.add(module)
    for package in sorted(packages):
        found.shows(package, *found.exact_of(package))
    return found.done()


class _Modules:
    """The repository's modules by name."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._defined: dict[RepoPath, frozenset[str]] = {}
        self._exports: dict[RepoPath, dict[str, list[str]]] = {}
        owners: dict[str, list[RepoPath]] = defaultdict(list)
        for path in files:
            if not path.endswith((".py", ".pyi")):
                continue
            parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                # A name starts where no package goes on: `import json` is not pkg/json.py.
                if not start or f"{'/'.join(parts[:start])}/__init__.py" not in files:
                    owners[".".join(parts[start:])].append(path)
        self._absolute = {name: found[0] for name, found in owners.items() if len(found) == 1}

    def module(self, path: RepoPath, text: str) -> RepoPath | None:
        """The file of the module that `text` means in `path`."""
        if text.startswith("."):
            folder = directory(path)
            rest = text.lstrip(".")
            for _ in range(len(text) - len(rest) - 1):
                if not folder:
                    return None
                folder = directory(folder)
            return self._at(join(folder, rest.replace(".", "/")) if rest else folder)
        here = directory(path)
        if join(here, "__init__.py") not in self._files and (beside := self._at(join(here, text.replace(".", "/")))):
            return beside
        found = self._absolute.get(text)
        if found is None or "." in text or found.endswith("/__init__.py"):
            return found
        # A lone module is found beside its user, above it, or in a source root; elsewhere it only has the same name as another's.
        place = directory(found)
        return found if place in _ROOTS or path.startswith(f"{place}/") else None

    def home(self, module: RepoPath, name: str, hops: int = MAX_HOPS) -> RepoPath:
        """The file that defines what `module` calls `name`."""
        if name in self._names(module):
            return module
        exports = self._re_exports(module)
        for source in exports.get(name, ()) if hops else ():
            target = self.module(module, source)
            if target is not None and target != module:
                return self.home(target, name, hops - 1)
        if module.endswith("__init__.py") and (submodule := self._at(join(directory(module), name))):
            return submodule
        for source in exports.get("*", ()) if hops else ():
            target = self.module(module, source)
            if target is not None and target != module:
                home = self.home(target, name, hops - 1)
                if name in self._names(home):
                    return home
        return module

    def _at(self, base: str) -> RepoPath | None:
        return first((f"{base}.py", f"{base}/__init__.py", f"{base}.pyi") if base else ("__init__.py",), self._files)

    def _names(self, module: RepoPath) -> frozenset[str]:
        if module not in self._defined:
            self._defined[module] = frozenset(item.name for item in self._files[module].definitions)
        return self._defined[module]

    def _re_exports(self, module: RepoPath) -> dict[str, list[str]]:
        """Name -> the modules that `module` takes it from; under "*" those of which no single name is taken."""
        if module not in self._exports:
            imports = self._files[module].imports
            named = {text.partition(":")[0] for text in imports if ":" in text}
            exports: dict[str, list[str]] = defaultdict(list)
            self._exports[module] = exports
            for text in imports:
                source, _, name = text.partition(":")
                if name or source not in named:
                    exports[name or "*"].append(source)
        return self._exports[module]
