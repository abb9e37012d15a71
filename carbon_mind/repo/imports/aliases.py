"""Names for directories of a JavaScript project: `paths` and `baseUrl` of tsconfig.json, and what a bundler's settings show.

A settings file of a bundler is a program. It is not run; only a line that maps a short name to a literal path counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from carbon_mind.repo.facts.context import Context, directory, join
from carbon_mind.repo.facts.text import lines, parse_json, strings, table
from carbon_mind.repo.imports.paths import relative
from carbon_mind.values import RepoPath

MAX_EXTENDS = 4
_CONFIGS = ("tsconfig.json", "jsconfig.json")
_BUNDLERS = tuple(
    f"{name}.{end}"
    for name in ("vite.config", "vitest.config", "webpack.config", "vue.config", "rollup.config", "craco.config")
    for end in ("ts", "js", "mts", "mjs", "cjs")
)
_ALIAS = re.compile(r"""(?:['"]([@~#]?[\w-]*)/?\$?['"]|\b([a-zA-Z]\w*))\s*:\s*[^'"`\n]*[`'"](.*)""")
_FIND = re.compile(r"""find:\s*['"]([@~#]?[\w-]*)/?['"],\s*replacement:\s*[^'"`\n]*[`'"](.*)""")
_PLACE = re.compile(r"""(?:\A|['"])\.?/?((?!\.\.)[\w.-]+(?:/[\w.-]+)*)/?['"`]""")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*(?:.*?\*/|.*)', re.S)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


@dataclass(frozen=True, slots=True)
class _Settings:
    """What one settings file says: (pattern, places) with the longest pattern first, and where bare names start."""

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    base: str | None = None


class Aliases:
    """Answers for each file by the settings that are nearest to it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._by_directory: dict[str, tuple[_Settings, ...]] = {}

    def places(self, path: RepoPath, text: str) -> Iterator[str]:
        """Paths that `text` may stand for in `path`, the likeliest first."""
        for settings in self._settings(directory(path)):
            for pattern, places in settings.patterns:
                before, star, after = pattern.partition("*")
                if text == pattern:
                    yield from places
                elif star and text.startswith(before) and text.endswith(after):
                    middle = text[len(before) : len(text) - len(after) or None]
                    yield from (place.replace("*", middle) for place in places)
            if settings.base is not None:
                yield join(settings.base, text)

    def _settings(self, here: str) -> tuple[_Settings, ...]:
        if here not in self._by_directory:
            context = self._context
            own: list[_Settings] = []
            if config := next((name for name in _CONFIGS if context.has(join(here, name))), None):
                own.append(self._compiler(join(here, config)))
            own += [_bundler(here, text) for name in _BUNDLERS if (text := context.text(join(here, name)))]
            above = self._settings(directory(here)) if here else ()
            # Of compilers' settings the nearest counts; a bundler's are looked at besides.
            self._by_directory[here] = (*own, *above)
        return self._by_directory[here]

    def _compiler(self, config: str, depth: int = MAX_EXTENDS) -> _Settings:
        text = self._context.text(config)
        if text is None or not depth:
            return _Settings()
        here = directory(config)
        parsed = parse_json(_TRAILING.sub(r"\1", _COMMENT.sub(r"\1", text)))
        options = table(parsed, "compilerOptions")
        given = options.get("baseUrl")
        base = relative(here, given) if isinstance(given, str) else None
        patterns = {
            pattern: tuple(
                place
                for item in strings(places)
                if (place := relative(here if base is None else base, item)) is not None
            )
            for pattern, places in table(options, "paths").items()
        }
        others = [(name, True) for name in strings(parsed.get("extends"))]
        references = parsed.get("references")
        others += [
            (str(table(item).get("path")), False) for item in (references if isinstance(references, list) else ())[:8]
        ]
        for name, inherited in others:
            if patterns or not (inherited or name.endswith(".json")):
                continue
            place = relative(here, name) if name.startswith(".") else None
            other = next((shape for shape in (place, f"{place}.json") if place and self._context.has(str(shape))), None)
            if other:
                more = self._compiler(other, depth - 1)
                patterns = dict(more.patterns)
                base = more.base if base is None else base
        ordered = sorted(patterns.items(), key=lambda item: (-len(item[0].partition("*")[0]), item[0]))
        return _Settings(tuple(ordered), base)


def _bundler(here: str, text: str) -> _Settings:
    """`'@': path.resolve(__dirname, './src')` and the like: the last literal path of a line that starts with a short name."""
    patterns: dict[str, tuple[str, ...]] = {}
    for row in lines(text, 300):
        match = _FIND.search(row) or _ALIAS.search(row)
        if match and (places := _PLACE.findall(match.group(match.lastindex or 1))):
            name = next(group for group in match.groups() if group is not None)
            patterns.setdefault(name, (join(here, places[-1]),))
            patterns.setdefault(f"{name}/*", (join(here, f"{places[-1]}/*"),))
    return _Settings(tuple(sorted(patterns.items(), key=lambda item: (-len(item[0]), item[0]))))
