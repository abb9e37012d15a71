""".NET: solutions, projects, the SDK version. Project files are searched, not parsed, for the reason given in `jvm`."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, join
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.text import first_line, json_lines, numbered, parse_json, quote, table, version
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("global.json",), suffixes=(".sln", ".slnx", ".csproj", ".fsproj"), limit=16, in_tests=True)

_FRAMEWORK = re.compile(r"<TargetFrameworks?>((?:;?net[a-z]{0,9}\d[\d.]{0,8}(?:-[a-z0-9.]{1,16})?){1,6});?<")
_ASIDE = re.compile(r"(?:^|[/.])(?:eng|build|tests?|testapps?|benchmarks?|samples?)(?:/|\.\w+proj\Z)", re.IGNORECASE)
_EXE = re.compile(r"<OutputType>\s*(?:Exe|WinExe)\s*<|Sdk=\"Microsoft\.NET\.Sdk\.Web\"")
_TESTS = re.compile(r"Microsoft\.NET\.Test\.Sdk|Include=\"(?:xunit|NUnit|MSTest)[\w.]*\"")
_PACKAGES = {
    "Microsoft.NET.Sdk.Web": "asp.net-core",
    "Microsoft.EntityFrameworkCore": "entity-framework-core",
    "xunit": "xunit",
    "NUnit": "nunit",
    "MSTest": "mstest",
    "Avalonia": "avalonia",
}


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one such file; the solution stands for its projects."""
    found = Found(path)
    name = path.rpartition("/")[2]
    if name == "global.json":
        sdk = table(parse_json(text), "sdk").get("version")
        if spec := version(sdk):
            found.constraint(f".NET SDK {spec}", json_lines(text).get(("sdk", "version"), 0), where=True)
    elif name.endswith((".sln", ".slnx")):
        found.command("build", f"dotnet build {quote(name)}")
        if _any_tests(context):
            found.command("test", f"dotnet test {quote(name)}")
            found.command("test-one", f"dotnet test {quote(name)} --filter FullyQualifiedName~NAME")
    else:
        _project(found, text, context, name)
    return found.done()


def _any_tests(context: Context) -> bool:
    projects = [path for path in context.choose(WANTS) if path.endswith("proj")]
    return any(_TESTS.search(row) for path in projects for _, row in numbered(context.text(path) or ""))


def _project(found: Found, text: str, context: Context, name: str) -> None:
    solution = any(path.endswith((".sln", ".slnx")) for path in context.choose(WANTS))
    tests = first_line(text, _TESTS)
    if not solution:
        found.command("build", f"dotnet build {quote(name)}", first_line(text, _FRAMEWORK))
        if tests:
            found.command("test", f"dotnet test {quote(name)}", tests)
            found.command("test-one", f"dotnet test {quote(name)} --filter FullyQualifiedName~NAME", tests)
    match = next((m for _, row in numbered(text) if (m := _FRAMEWORK.search(row))), None)
    if match and not tests and not _ASIDE.search(found.path):
        found.constraint(f"target framework {match.group(1)}", first_line(text, _FRAMEWORK))
    runs = first_line(text, _EXE)
    program = join(found.directory, "Program.cs")
    if runs and not tests and context.has(program) and not _ASIDE.search(found.path):
        found.entry(name.rpartition(".")[0], program, runs)
        found.command("run", f"dotnet run --project {quote(found.path)}", runs, here=False)
    for key, framework in _PACKAGES.items():
        if f'"{key}' in text:
            found.framework(framework)
