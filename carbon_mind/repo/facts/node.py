"""package.json: scripts by name, the package manager, workspaces, engines, and where execution starts.

A script's body only tells what kind of check it is and whether a path may be appended; it is never printed.
"""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import normal, ranked
from carbon_mind.repo.facts.text import (
    first_line,
    json_lines,
    listing,
    parse_json,
    strings,
    table,
    version,
    word,
    words,
)
from carbon_mind.values import CommandKind, ProjectFacts, RepoPath

WANTS = Wants(names=("package.json",), limit=24)

_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_MANAGER = re.compile(r"(npm|pnpm|yarn|bun)(?:@(\d[\w.-]*))?")
_ONE_FILE = frozenset({"vitest", "jest", "ava"})
_TYPECHECKERS = ("tsc", "vue-tsc", "svelte-check", "tsgo")
_GLOB = re.compile(r"!?[\w@./*{},-]+\Z")
_YAML_ITEM = re.compile(r"""\s*-\s*["']?([^"'#\s]+)""")
FRAMEWORKS = words(
    "react react-native preact vue svelte solid-js @angular/core next nuxt @remix-run/react astro gatsby express "
    "fastify koa hono @nestjs/core electron three d3 redux zustand @tanstack/react-query graphql @apollo/server "
    "prisma drizzle-orm typeorm mongoose socket.io tailwindcss vite webpack rollup esbuild parcel turbo nx lerna "
    "typescript vitest jest mocha ava playwright @playwright/test cypress puppeteer storybook eslint "
    "@biomejs/biome"
)


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one package.json."""
    found = Found(path)
    package = parse_json(text)
    if not package:
        return found.done()
    at = json_lines(text)
    manager = _manager(found, path, package, at, context)
    _scripts(found, package, at, manager)
    engines = table(package, "engines")
    for name, label in (("node", "Node.js"), ("bun", "Bun")):
        if spec := version(engines.get(name)):
            found.constraint(f"{label} {spec}", at.get(("engines", name), 0), where=True)
    _workspaces(found, path, package, at, context)
    _entries(found, path, package, at, context)
    for group in ("dependencies", "devDependencies", "peerDependencies"):
        for name in table(package, group):
            if name in FRAMEWORKS:
                found.framework(name)
    return found.done()


def _manager(
    found: Found, path: str, package: dict[str, object], at: dict[tuple[str, ...], int], context: Context
) -> str:
    """The package manager by evidence, `npm` without; evidence at the manifest's own level becomes a constraint."""
    declared = package.get("packageManager")
    if isinstance(declared, str) and (match := _MANAGER.match(declared)):
        name, release = match.group(1), match.group(2)
        label = f"{name} {release}" if release else name
        found.constraint(f"package manager: {label}", at.get(("packageManager",), 0), where=True)
        return name
    lock = context.nearest(path, *_LOCKS)
    if lock is not None:
        name = _LOCKS[lock.rpartition("/")[2]]
        if directory(lock) == directory(path):
            found.constraint(f"package manager: {name}", 0, lock, where=True)
        return name
    above = context.nearest(directory(path), "package.json") if directory(path) else None
    while above is not None:
        declared = parse_json(context.text(above) or "").get("packageManager")
        if isinstance(declared, str) and (match := _MANAGER.match(declared)):
            return match.group(1)
        above = context.nearest(directory(above), "package.json") if directory(above) else None
    return "npm"


def _scripts(found: Found, package: dict[str, object], at: dict[tuple[str, ...], int], manager: str) -> None:
    scripts = {
        name: body
        for name, body in table(package, "scripts").items()
        if isinstance(body, str) and word(name) and "no test specified" not in body
    }
    for kind, name in ranked(scripts):
        kind = _by_body(name, scripts[name], kind)
        found.command(kind, f"{manager} run {name}", at.get(("scripts", name), 0))
    tests = [name for kind, name in ranked(scripts) if kind == "test" and _takes_path(scripts[name])]
    tests.sort(key=lambda name: "unit" not in name)  # `test` may run everything; a unit script is the quick one
    for name in tests[:1]:
        dashes = "-- " if manager == "npm" else ""
        found.command("test-one", f"{manager} run {name} {dashes}<path>", at.get(("scripts", name), 0))


def _by_body(name: str, body: str, kind: CommandKind) -> CommandKind:
    if normal(name) == "check" and _program(body) in _TYPECHECKERS:
        return "typecheck"
    return kind


def _program(segment: str) -> str:
    words = [part for part in segment.split() if "=" not in part]
    while words and words[0] in {"npx", "cross-env", "bunx", "exec", "dotenv", "--"}:
        words = words[1:]
    return words[0] if words else ""


def _takes_path(body: str) -> bool:
    """Whether a path appended to the script reaches a test runner that selects by it: it lands on the last command."""
    last = re.split(r"&&|\|\||[;|]", body)[-1].strip()
    program = _program(last)
    words = last.split()
    if program in _ONE_FILE:
        return not {"bench", "typecheck"} & set(words)
    return last.startswith(("playwright test", "npx playwright test", "bun test")) or (
        program == "node" and words[-1] == "--test"
    )


def _workspaces(
    found: Found, path: str, package: dict[str, object], at: dict[tuple[str, ...], int], context: Context
) -> None:
    value = package.get("workspaces")
    globs = strings(value) or strings(table(value).get("packages"))
    line, source = at.get(("workspaces",), 0), ""
    pnpm = join(directory(path), "pnpm-workspace.yaml")
    if not globs and (text := context.text(pnpm)) is not None:
        line, source = first_line(text, re.compile(r"packages\s*:")), pnpm
        for row in text.split("\n")[line : line + 50] if line else []:
            if not row.strip() or row.lstrip().startswith("#"):
                continue
            if not (match := _YAML_ITEM.match(row)):
                break
            globs.append(match.group(1))
    plain = [glob for glob in globs if len(glob) <= 80 and _GLOB.match(glob)]
    if plain:
        found.constraint(f"workspace packages: {listing(plain, 130)}", line, source, where=True)


def _entries(
    found: Found, path: str, package: dict[str, object], at: dict[tuple[str, ...], int], context: Context
) -> None:
    """Files that exist in the repository; what a build will make is no place to read."""
    here = directory(path)
    name = word(package.get("name")) or here.rpartition("/")[2]
    binaries = package.get("bin")
    named = {name.rpartition("/")[2]: binaries} if isinstance(binaries, str) else table(binaries)
    for program, file in named.items():
        target = resolve(here, file)
        if word(program) and context.has(target):
            found.entry(program, target, at.get(("bin", program), at.get(("bin",), 0)))
    for key in ("source", "exports", "module", "main"):
        value = package.get(key)
        target = resolve(here, _first_file(value) if key == "exports" else value)
        if name and target and context.has(target):
            found.entry(name, target, at.get((key,), 0))
            return


def _first_file(exports: object) -> object:
    """The file of `exports` for the package itself: `"."`, then the first condition that leads to a string."""
    for _ in range(6):
        if not isinstance(exports, dict):
            return exports
        if "." in exports:
            exports = exports["."]
            continue
        conditions = [value for key, value in exports.items() if not str(key).startswith(".") and key != "types"]
        if not conditions:
            return None
        exports = conditions[0]
    return None
