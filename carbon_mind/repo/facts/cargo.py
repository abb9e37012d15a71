"""Cargo.toml, and the settings files that show that rustfmt and clippy are in use."""

from __future__ import annotations

from carbon_mind.repo.facts.context import Context, Wants, directory, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.packages import members, summary
from carbon_mind.repo.facts.text import listing, strings, table, toml_line, version, word, words
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("Cargo.toml",), limit=12)

FRAMEWORKS = words(
    "tokio async-std axum actix-web rocket warp hyper tonic reqwest serde clap diesel sqlx sea-orm bevy tauri yew "
    "leptos rayon tracing anyhow thiserror wasm-bindgen pyo3 napi criterion proptest"
)


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one Cargo.toml; a workspace member only adds its programs."""
    found = Found(path)
    manifest = context.toml(path)
    package, workspace = table(manifest, "package"), table(manifest, "workspace")
    if not package and "workspace" not in manifest:
        return found.done()
    here = found.directory
    line = toml_line(text, "package") or toml_line(text, "workspace")
    whole = toml_line(text, "workspace") if "workspace" in manifest else 0
    found.command("build", "cargo build --workspace" if whole else "cargo build", whole or line)
    found.command("test", "cargo test --workspace" if whole else "cargo test", whole or line)
    inside = _inside(path, context)
    globs = [name for name in strings(workspace.get("members")) if word(name.replace("*", "x"))]
    found.command("test-one", "cargo test -p PACKAGE NAME" if globs else "cargo test NAME", whole or line)
    if globs and globs != ["."]:
        _members(found, text, globs, context)
    _checks(found, manifest, text, context, " --workspace" if whole else "")
    if not inside:
        _versions(found, package, workspace, text)
    if not found.directory:
        _aliases(found, context)
    for name, file, at in _programs(manifest, text, here, context):
        if found.entry(name, file, at):
            package_name = word(package.get("name"))
            alone = (
                f"cargo run -p {package_name} --bin {name}" if inside and package_name else f"cargo run --bin {name}"
            )
            found.command("run", alone, at, here=not (inside and package_name))
    for group in ("dependencies", "dev-dependencies"):
        for owner in (manifest, workspace):
            for name in table(owner, group):
                if name in FRAMEWORKS:
                    found.framework(name)
    return found.done()


def _inside(path: str, context: Context) -> bool:
    """Whether a workspace above speaks for this package."""
    above = context.nearest(directory(directory(path)), "Cargo.toml") if directory(path) else None
    return above is not None and "workspace" in context.toml(above)


def _aliases(found: Found, context: Context) -> None:
    for path in (".cargo/config.toml", ".cargo/config"):
        text = context.text(path)
        for kind, name in ranked(filter(word, table(context.toml(path), "alias"))) if text else ():
            found.command(kind, f"cargo {name}", toml_line(text or "", "alias", name), path)


def _members(found: Found, text: str, globs: list[str], context: Context) -> None:
    """Names, because `-p` takes a name, with the directories that differ."""
    packages = [
        (str(table(context.toml(path), "package").get("name", "")), directory(path)[len(found.directory) :].lstrip("/"))
        for path in members(globs, found.directory, "Cargo.toml", context)
    ]
    packages = [(name, place) for name, place in packages if word(name)]
    shown = summary(packages, 138) or listing(globs, 130)
    found.constraint(f"workspace members: {shown}", toml_line(text, "workspace", "members"), where=True)


def _checks(found: Found, manifest: dict[str, object], text: str, context: Context, whole: str) -> None:
    clippy = next((name for name in ("clippy.toml", ".clippy.toml") if context.has(join(found.directory, name))), "")
    tables = (("lints", "clippy"), ("workspace", "lints", "clippy"))
    shown = next((keys for keys in tables if table(manifest, *keys)), None)
    if clippy:
        found.command("lint", f"cargo clippy{whole}", 0, join(found.directory, clippy))
    elif shown:
        found.command("lint", f"cargo clippy{whole}", toml_line(text, *shown))
    for name in ("rustfmt.toml", ".rustfmt.toml"):
        if context.has(join(found.directory, name)):
            found.command("format", "cargo fmt --all" if whole else "cargo fmt", 0, join(found.directory, name))


def _versions(found: Found, package: dict[str, object], workspace: dict[str, object], text: str) -> None:
    shared = table(workspace, "package")
    for key, label in (("rust-version", "Rust >="), ("edition", "Rust edition ")):
        for keys, value in ((("package", key), package.get(key)), (("workspace", "package", key), shared.get(key))):
            if spec := version(value):
                found.constraint(f"{label}{spec}", toml_line(text, *keys), where=True)
                break


def _programs(manifest: dict[str, object], text: str, here: str, context: Context) -> list[tuple[str, str, int]]:
    """(name, file, line) of each binary: declared ones, src/main.rs, src/bin/*.rs."""
    package = word(table(manifest, "package").get("name"))
    programs: dict[str, tuple[str, int]] = {}
    declared = manifest.get("bin")
    for entry in declared[:16] if isinstance(declared, list) else []:
        name = word(table(entry).get("name"))
        given = table(entry).get("path")
        places = [resolve(here, given)] if given else [join(here, f"src/bin/{name}.rs"), join(here, "src/main.rs")]
        file = next((place for place in places if context.has(place)), "")
        if name and file:
            programs[name] = (file, toml_line(text, "bin"))
    taken = {file for file, _ in programs.values()}
    main = join(here, "src/main.rs")
    if package and context.has(main) and main not in taken:
        programs.setdefault(package, (main, toml_line(text, "package", "name")))
    for file in context.below(join(here, "src/bin")) if package else ():
        stem = word(file.rpartition("/")[2].removesuffix(".rs"))
        if file == join(here, f"src/bin/{stem}.rs") and file not in taken:
            programs.setdefault(stem, (file, toml_line(text, "package", "name")))
    return [(name, file, line) for name, (file, line) in programs.items()][:6]
