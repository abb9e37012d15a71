"""go.mod: the language version, the module-wide commands, programs under cmd/, golangci-lint's settings file."""

from __future__ import annotations

import re

from carbon_mind.repo.facts.context import Context, Wants, directory, join, ours
from carbon_mind.repo.facts.found import Found
from carbon_mind.repo.facts.kinds import ranked
from carbon_mind.repo.facts.text import first_line, numbered, quote, version, word
from carbon_mind.values import ProjectFacts, RepoPath

WANTS = Wants(names=("go.mod",), limit=6)

FRAMEWORKS = {
    "github.com/gin-gonic/gin": "gin",
    "github.com/labstack/echo": "echo",
    "github.com/gofiber/fiber": "fiber",
    "github.com/go-chi/chi": "chi",
    "github.com/gorilla/mux": "gorilla/mux",
    "github.com/spf13/cobra": "cobra",
    "github.com/spf13/viper": "viper",
    "github.com/stretchr/testify": "testify",
    "github.com/onsi/ginkgo": "ginkgo",
    "github.com/prometheus/client_golang": "prometheus/client_golang",
    "google.golang.org/grpc": "grpc",
    "google.golang.org/protobuf": "protobuf",
    "gorm.io/gorm": "gorm",
    "entgo.io/ent": "ent",
    "k8s.io/client-go": "client-go",
    "sigs.k8s.io/controller-runtime": "controller-runtime",
    "go.uber.org/zap": "zap",
}
_MODULE = re.compile(r"module\s+\S")
_GO = re.compile(r"(go|toolchain)\s+(\S+)")
_REQUIRE = re.compile(r"\s*(?:require\s+)?([\w.~/-]+)\s+v\d")
_MAJOR = re.compile(r"/v\d+\Z")
_MAIN = re.compile(r"^package\s+main\b")
_MAIN_FUNCTION = re.compile(r"^func\s+main\s*\(")
_MAGE = re.compile(r"func\s+([A-Z]\w{0,40})\s*\((?:ctx context\.Context)?\)")
MAX_FILES = 40
_LINTER = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def facts(path: RepoPath, text: str, context: Context) -> ProjectFacts:
    """Everything of one module."""
    found = Found(path)
    line = first_line(text, _MODULE)
    if not line:
        return found.done()
    here = found.directory
    found.command("build", "go build ./...", line)
    if any(file.endswith("_test.go") and ours(file) for file in context.below(here)):
        found.command("test", "go test ./...", line)
        found.command("test-one", "go test ./path/to/package -run '^TestName$'", line)
    linter = next((join(here, name) for name in _LINTER if context.has(join(here, name))), "")
    if linter:
        found.command("lint", "golangci-lint run", 0, linter)
    for number, row in numbered(text):
        match = _GO.match(row)
        if match and (spec := version(match.group(2).removeprefix("go"))):
            label = "Go toolchain" if match.group(1) == "toolchain" else "Go"
            found.constraint(f"{label} {spec}", number, where=True)
        elif "// indirect" not in row and (need := _REQUIRE.match(row)):
            name = FRAMEWORKS.get(_MAJOR.sub("", need.group(1)))
            if name:
                found.framework(name)
    magefile = join(here, "magefile.go")
    targets = {m.group(1).lower(): n for n, row in numbered(context.text(magefile) or "") if (m := _MAGE.match(row))}
    for kind, name in ranked(targets):
        found.command(kind, f"mage {name}", targets[name], magefile)
    _programs(found, context, line)
    return found.done()


def _module(text: str) -> str:
    rows = [row.split() for _, row in numbered(text) if _MODULE.match(row)]
    return rows[0][1].strip('"') if rows else ""


def _programs(found: Found, context: Context, line: int) -> None:
    here = found.directory
    candidates = [join(here, "main.go")]
    candidates += [
        file
        for file in context.below(join(here, "cmd"))
        if file.endswith(".go")
        and not file.endswith("_test.go")
        and file.count("/") - here.count("/") - bool(here) == 2
    ]
    module = _MAJOR.sub("", _module(context.text(found.path) or "")).rpartition("/")[2]
    candidates.sort(key=lambda file: directory(file).rpartition("/")[2] not in {module, here.rpartition("/")[2]})
    for file in candidates[:MAX_FILES]:
        text = context.text(file) or ""
        at = first_line(text, _MAIN)
        if not at or not first_line(text, _MAIN_FUNCTION):
            continue
        package = directory(file)[len(here) + 1 if here else 0 :]
        name = package.rpartition("/")[2] or here.rpartition("/")[2] or "main"
        if word(name):
            found.entry(name, file, at, file)
            found.command("run", f"go run {quote('./' + package) if package else '.'}", at, file)
