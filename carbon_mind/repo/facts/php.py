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
    for kind, name in ranked(filter(word, scripts)):
        found.command(kind, f"composer run {name}", at.get(("scripts", name), 0))
    here = found.directory
    for group in ("require", "require-dev"):
        for name in table(package, group):
            if name in FRAMEWORKS:
                found.framework(FRAMEWORKS[name])
    if spec := version(table(package, "require").get("php")):
        found.constraint(f"PHP {spec}", at.get(("require", "php"), 0), where=True)
    if package:
        for name in ("phpunit.xml", "phpunit.xml.dist"):
            if context.has(join(here, name)):
                found.command("test", "vendor/bin/phpunit", 0, join(here, name))
                found.command("test-one", "vendor/bin/phpunit --filter NAME", 0, join(here, name))
        for name in ("phpstan.neon", "phpstan.neon.dist"):
            if context.has(join(here, name)):
                found.command("typecheck", "vendor/bin/phpstan analyse", 0, join(here, name))
    for binary in strings(package.get("bin")):
        file = resolve(here, binary)
        if context.has(file):
            found.entry(file.rpartition("/")[2], file, at.get(("bin",), 0))
    return found.done()
