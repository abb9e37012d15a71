"""package.json: scripts by name, the package manager, workspaces, engines, and where execution starts.

A script's body only tells what kind of check it is and whether a path may be appended; it is never printed.
"""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import normal, ranked
from carbon_mind.repo.facts.packages import members, summary
from carbon_mind.repo.facts.text import (
    json_lines,
    listing,
    parse_json,
    strings,
    table,
    version,
    word,
    words,
)
from carbon_mind.repo.facts.yaml_tree import Fields, parse_yaml, texts
from carbon_mind.repo.facts.yaml_tree import at as at_tree
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
_CALL = re.compile(r"(?:npm|pnpm|yarn|bun)(?:\s+run|\s+-s)*\s+([\w:.-]+)|run-s\s+([\w:.-]+)")
_CHAIN = re.compile(r"&&|\|\||[;|]")
_ASSIGNED = re.compile(r"\w+=")
_STARTERS = words("npx cross-env bunx exec dotenv -- c8 nyc pnpm yarn")
_NO_TEST = words("bench typecheck list show")
# Test runner -> what chooses one file and one test in it.
_RUNNERS = {
    "vitest": "<path> -t '<name>'",
    "jest": "<path> -t '<name>'",
    "ava": "<path> -m '<name>'",
    "mocha": "<path> -g '<name>'",
    "playwright test": "<path> -g '<name>'",
    "bun test": "<path> -t '<name>'",
    "node": "<path>",
}
_BY_NAME = {"mocha": "-g '<name>'", "ava": "-m '<name>'"}
_DIRECT = {"vitest": "vitest run", "jest": "jest", "playwright test": "playwright test"}
_EXEC = {"npm": "npx", "pnpm": "pnpm exec", "yarn": "yarn", "bun": "bunx"}
_SOURCES = ("src/index.ts", "src/index.tsx", "src/index.js", "src/index.mjs")
_TYPECHECKERS = ("tsc", "vue-tsc", "svelte-check", "tsgo")
_GLOB = re.compile(r"!?[\w@./*{},-]+\Z")
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
    workspace = _member_of(path, context)
    engines = {} if workspace else table(package, "engines")  # the root's holds for all
    for name, label in (("node", "Node.js"), ("bun", "Bun")):
        if spec := version(engines.get(name)):
            found.constraint(f"{label} {spec}", at.get(("engines", name), 0), where=True)
    _workspaces(found, path, package, at, context)
    _entries(found, path, package, at, context, workspace)
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
    ends = {name: _followed(scripts, name) for name in scripts}
    bodies = {name: scripts[end] for name, end in ends.items()}
    offered: set[tuple[CommandKind, str]] = set()
    for kind, name in ranked(scripts):
        kind = _by_body(name, bodies[name], kind)
        if (kind, bodies[name]) not in offered:  # else one only calls the other
            offered.add((kind, bodies[name]))
            found.command(kind, f"{manager} run {name}", at.get(("scripts", name), 0))
    tests = [name for kind, name in ranked(scripts) if kind == "test"]
    tests.sort(key=lambda name: "unit" not in name)  # `test` may run everything; a unit script is the quick one
    for name in tests:
        # Options behind a script that calls another would be read by the package manager in between.
        if call := _one_test(bodies[name], f"{manager} run {ends[name]}", manager):
            found.command("test-one", call, at.get(("scripts", ends[name]), 0))
            break


def _followed(scripts: dict[str, str], name: str) -> str:
    """The script that does the work: itself, or the one that it only calls."""
    for _ in range(5):
        match = _CALL.fullmatch(scripts[name].strip())
        called = (match.group(1) or match.group(2)) if match else ""
        if called not in scripts:
            break
        name = called
    return name


def _by_body(name: str, body: str, kind: CommandKind) -> CommandKind:
    if normal(name) == "check" and _call(body)[:1] and _call(body)[0] in _TYPECHECKERS:
        return "typecheck"
    return kind


def _call(segment: str) -> list[str]:
    """The words of a command from its program on: variables and what only starts it are gone."""
    parts = [part for part in segment.split() if not _ASSIGNED.match(part)]
    while parts and parts[0] in _STARTERS:
        parts = parts[1:]
    return parts


def _one_test(body: str, script: str, manager: str) -> str:
    """How one test is chosen: through the script where its last command is the runner, which gets what is appended;
    else the runner itself, by its own name."""
    segments = [_call(part) for part in _CHAIN.split(body)]
    for call in segments:
        runner = " ".join(call[:2]) if " ".join(call[:2]) in _RUNNERS else "".join(call[:1])
        if runner not in _RUNNERS or _NO_TEST & set(call[1:]):
            continue
        arguments = _RUNNERS[runner]
        if runner == "node" and call[-1] != "--test":
            continue  # it names its files itself, and a path behind them adds to them
        if runner == "mocha" or (runner == "ava" and any("/" in part for part in call)):
            arguments = _BY_NAME[runner]  # likewise
        if call is segments[-1] and not body.rstrip().endswith(("&", "|")):
            return f"{script} {'-- ' if manager == 'npm' else ''}{arguments}"
        if runner in _DIRECT:
            return f"{_EXEC[manager]} {_DIRECT[runner]} {arguments}"
    return ""


def _workspaces(
    found: Found, path: str, package: dict[str, object], at: dict[tuple[str, ...], int], context: Context
) -> None:
    globs, source, line = _globs(path, package, context)
    if not globs:
        return
    public: list[tuple[str, str]] = []
    private: list[tuple[str, str]] = []
    for member in members(globs, directory(path), "package.json", context):
        manifest = parse_json(context.text(member) or "")
        name = word(manifest.get("name"))
        place = directory(member)[len(directory(path)) + 1 if directory(path) else 0 :]
        if name:
            (private if manifest.get("private") is True else public).append((name, place))
    text = summary(public or private, 138)
    plain = [glob for glob in globs if len(glob) <= 80 and _GLOB.match(glob)]
    if text or plain:
        found.constraint(
            f"workspace packages: {text or listing(plain, 130)}",
            line or at.get(("workspaces",), 0),
            source,
            where=True,
        )


def _globs(path: str, package: dict[str, object], context: Context) -> tuple[list[str], str, int]:
    """(globs, file, line) of a workspace's packages; no file stands for the manifest itself."""
    value = package.get("workspaces")
    globs = strings(value) or strings(table(value).get("packages"))
    pnpm = join(directory(path), "pnpm-workspace.yaml")
    if globs or (text := context.text(pnpm)) is None:
        return globs, "", 0
    tree = parse_yaml(text)
    line = tree.lines.get("packages", 0) if isinstance(tree, Fields) else 0
    return [glob.value for glob in texts(at_tree(tree, "packages"))], pnpm, line


def _member_of(path: str, context: Context) -> str:
    """The manifest of the workspace that a nested package belongs to, or ""."""
    above = context.nearest(directory(directory(path)), "package.json") if directory(path) else None
    while above is not None:
        globs, _, _ = _globs(above, parse_json(context.text(above) or ""), context)
        if globs and path in list(members(globs, directory(above), "package.json", context)):
            return above
        above = context.nearest(directory(directory(above)), "package.json") if directory(above) else None
    return ""


def _entries(
    found: Found,
    path: str,
    package: dict[str, object],
    at: dict[tuple[str, ...], int],
    context: Context,
    workspace: str,
) -> None:
    """Files that exist in the repository; what a build will make is no place to read. Of a workspace's libraries only
    the one without a scope counts: it is what users import, and the others stand in the workspace's own line."""
    here = directory(path)
    name = word(package.get("name"))
    binaries = package.get("bin")
    named = {name.rpartition("/")[2]: binaries} if isinstance(binaries, str) else table(binaries)
    for program, file in named.items():
        target = resolve(here, file)
        if word(program) and context.has(target):
            found.entry(program, target, at.get(("bin", program), at.get(("bin",), 0)))
    if workspace and (package.get("private") is True or "/" in name):
        return
    for key in ("source", "exports", "module", "main"):
        value = package.get(key)
        target = resolve(here, _first_file(value) if key == "exports" else value)
        if name and target and (context.has(target) or _built(target)):
            source = next((file for file in _SOURCES if context.has(join(here, file))), "")
            if source or context.has(target):
                stub = _built(target) or directory(target) == here
                found.entry(name, join(here, source) if source and stub else target, at.get((key,), 0))
                return


def _built(target: str) -> bool:
    return bool({"dist", "build", "lib", "out"} & set(target.split("/")))


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
