"""PHP: composer.json scripts, PHPUnit and PHPStan by their settings files."""

from __future__ import annotations

from carbon_mind.repo.facts.context import Context, Wants, join, resolve
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.text import json_lines, parse_json, strings, table, version, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("composer.json",), limit=4)

FRAMEWORKS = {
    "laravel/framework": "laravel",
    "symfony/framework-bundle": "symfony",
    "symfony/console": "symfony/console",
    "slim/slim": "slim",
    "doctrine/orm": "doctrine",
    "phpunit/phpunit": "phpunit",
    "pestphp/pest": "pest",
    "phpstan/phpstan": "phpstan",
}


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one composer.json."""
    found = Found(path)
    package = parse_json(text)
    at = json_lines(text) if package else {}
    scripts = table(package, "scripts")
    kinds: set[str] = set()
    for kind, name in ranked(filter(word, scripts)):
        kinds.add(kind)
        found.command(kind, f"composer run {name}", at.get(("scripts", name), 0))
    for group in ("require", "require-dev"):
        for name in table(package, group):
            if name in FRAMEWORKS:
                found.framework(FRAMEWORKS[name])
    if spec := version(table(package, "require").get("php")):
        found.constraint(f"PHP {spec}", at.get(("require", "php"), 0), where=True)
    if package:
        _tools(found, at, kinds, context)
    for binary in strings(package.get("bin")):
        file = resolve(found.directory, binary)
        if context.has(file):
            found.entry(file.rpartition("/")[2], file, at.get(("bin",), 0))
    return found.done()


def _tools(found: Found, at: dict[tuple[str, ...], int], kinds: set[str], context: Context) -> None:
    """Tools by their settings. One that a script of the same kind stands for is only named where a test is chosen."""
    here = found.directory
    pest = at.get(("require-dev", "pestphp/pest"), 0)
    settings = next((join(here, n) for n in ("phpunit.xml", "phpunit.xml.dist") if context.has(join(here, n))), "")
    if pest or settings:
        call, source = ("vendor/bin/pest", "") if pest else ("vendor/bin/phpunit", settings)
        if "test" not in kinds:
            found.command("test", call, pest, source)
        found.command("test-one", f"{call} --filter NAME", pest, source)
    stan = next((join(here, n) for n in ("phpstan.neon", "phpstan.neon.dist") if context.has(join(here, n))), "")
    if stan and "typecheck" not in kinds:
        found.command("typecheck", "vendor/bin/phpstan analyse", 0, stan)
