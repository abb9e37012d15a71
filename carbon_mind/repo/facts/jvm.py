"""Maven and Gradle. A pom is searched with small expressions, not parsed: an XML parser can be made to explode."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, join
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import first_line, listing, numbered, version, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(
    names=("pom.xml", "settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"),
    limit=6,
)

_PROJECT = re.compile(r"<project\b")
_JAVA = re.compile(r"<(?:maven\.compiler\.release|java\.version|maven\.compiler\.source|release)>([\d.]{1,9})<")
_MODULE = re.compile(r"<module>([\w./-]{1,80})</module>")
_SPOTLESS = re.compile(r"\bspotless\b|com\.diffplug\.spotless")
_CHECKSTYLE = re.compile(r"maven-checkstyle-plugin")
_TOOLCHAIN = re.compile(r"JavaLanguageVersion\.of\((\d{1,3})\)")
_COMPATIBLE = re.compile(r"sourceCompatibility\s*=\s*(?:JavaVersion\.VERSION_)?['\"]?([\d._]{1,6})")
_APPLICATION = re.compile(
    r"""(?:\bid\s*\(?\s*["']application["']|apply plugin: *["']application["']|^\s*application\s*$)"""
)
_MAIN = re.compile(r"""mainClass(?:Name)?\b[^"']{0,20}["']([\w.$]{1,120})["']""")
_INCLUDE = re.compile(r"""\binclude\b""")
_QUOTED = re.compile(r"""["'](:?[\w:./-]{1,80})["']""")
FRAMEWORKS = {
    "spring-boot": "spring-boot",
    "quarkus": "quarkus",
    "micronaut": "micronaut",
    "junit-jupiter": "junit-jupiter",
    "hibernate": "hibernate",
    "ktor": "ktor",
    "com.android.application": "android",
    "org.jetbrains.kotlin": "kotlin",
}


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one build file; a module below another build only names its main class."""
    found = Found(path)
    maven = path.endswith("pom.xml")
    names = ("pom.xml",) if maven else WANTS.names[1:]
    above = context.nearest(directory(path), *names) if found.directory else None
    settings = [join(found.directory, name) for name in WANTS.names[1:3] if not maven]
    beside = next((p for p in settings if context.has(p) and p != path), "")
    if above is None and maven:
        _maven(found, text, context)
    elif above is None:
        _gradle(found, text, context, commands=not beside)
    if not maven and (match := next((m for _, row in numbered(text) if (m := _MAIN.search(row))), None)):
        found.entry(match.group(1).rpartition(".")[2], match.group(1), first_line(text, _MAIN))
    for key, name in FRAMEWORKS.items():
        if key in text:
            found.framework(name)
    return found.done()


def _has_tests(found: Found, context: Context) -> bool:
    return any("src/test/" in path for path in context.below(found.directory))


def _maven(found: Found, text: str, context: Context) -> None:
    line = first_line(text, _PROJECT)
    if not line:
        return
    maven = "./mvnw" if context.has(join(found.directory, "mvnw")) else "mvn"
    found.command("build", f"{maven} compile", line)
    if _has_tests(found, context):
        found.command("test", f"{maven} test", line)
        # In a build of modules the others would fail, because none of their tests is chosen.
        several = "-pl MODULE -am -Dsurefire.failIfNoSpecifiedTests=false " if first_line(text, _MODULE) else ""
        found.command("test-one", f"{maven} test {several}-Dtest=Class#method", line)
    if at := first_line(text, _SPOTLESS):
        found.command("format", f"{maven} spotless:apply", at)
    if at := first_line(text, _CHECKSTYLE):
        found.command("lint", f"{maven} checkstyle:check", at)
    java = next(((number, m.group(1)) for number, row in numbered(text) if (m := _JAVA.search(row))), None)
    if java:
        found.constraint(f"Java {java[1]}", java[0], where=True)
    modules = [m.group(1) for _, row in numbered(text) if (m := _MODULE.search(row))]
    if modules:
        found.constraint(f"modules: {listing(modules, 140)}", first_line(text, _MODULE), where=True)


def _gradle(found: Found, text: str, context: Context, *, commands: bool) -> None:
    """`commands` is False for a build file beside a settings file, which stands for the whole build."""
    gradle = "./gradlew" if context.has(join(found.directory, "gradlew")) else "gradle"
    if commands:
        found.command("build", f"{gradle} build", 1)
        if _has_tests(found, context):
            found.command("test", f"{gradle} test", 1)
            one = ":MODULE:test" if "settings.gradle" in found.path and first_line(text, _INCLUDE) else "test"
            found.command("test-one", f"{gradle} {one} --tests Class.method", 1)
    if at := first_line(text, _SPOTLESS):
        found.command("format", f"{gradle} spotlessApply", at)
    if at := first_line(text, _APPLICATION):
        found.command("run", f"{gradle} run", at)
    for number, row in numbered(text):
        match = _TOOLCHAIN.search(row) or _COMPATIBLE.search(row)
        if match and (spec := version(match.group(1).replace("_", "."))):
            found.constraint(f"Java {spec}", number, where=True)
    if "settings.gradle" in found.path:
        rows = [(number, row) for number, row in numbered(text) if _INCLUDE.search(row)]
        modules = [m.group(1) for _, row in rows for m in _QUOTED.finditer(row) if word(m.group(1).lstrip(":"))]
        if modules:
            found.constraint(f"modules: {listing(modules, 140)}", rows[0][0], where=True)
