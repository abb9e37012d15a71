"""`carbon doctor`: what carbon runs on, and whether the engine survives here."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path

from carbon_mind import __version__, opening
from carbon_mind.errors import CarbonError
from carbon_mind.machine import cpu
from carbon_mind.models import check_header
from carbon_mind.repo import git
from carbon_mind.repo.pagerank import ranker_name
from carbon_mind.settings import Settings


@dataclass(frozen=True, slots=True)
class Health:
    """Everything the doctor reports; `problems` are what keeps `carbon warm` from working."""

    carbon: str
    python: str
    platform: str
    ranker: str
    git: str
    engine: str
    cpu: str
    cpu_features: tuple[str, ...]
    verdict: str
    model: str
    cache: str
    cache_bytes: int
    problems: tuple[str, ...]


def examine(settings: Settings, *, probe: bool) -> Health:
    """Look at everything once. Never raises for what is missing: that is the report."""
    problems: list[str] = []
    here = cpu()
    try:
        git_version = git.run(Path(), "--version").decode().strip()
    except git.GitFailed as missing:
        git_version = "missing"
        problems.append(missing.reason)
    model = header = None
    try:
        model = opening.model_path(settings)
        header = check_header(model)
    except CarbonError as problem:
        problems.append(f"{problem.message} ({problem.hint})")
    engine, verdict = "missing", "not probed: needs the engine and a model"
    try:
        if opening.engine_kind(settings) == "server":
            engine, verdict = _server(settings.llama_server), "a process of its own: tried when it starts"
        else:
            engine = _in_process()
            if model is not None and header is not None:
                found = opening.probe_engine(settings, model, header, again=probe)
                verdict = found.outcome + (f" ({found.detail})" if found.detail else "")
                if found.outcome == "crashes":
                    problems.append("the engine dies in its first decode on this machine")
    except CarbonError as problem:
        problems.append(f"{problem.message} ({problem.hint})")
    return Health(
        carbon=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.machine()}",
        ranker=ranker_name(),
        git=git_version.removeprefix("git version "),
        engine=engine,
        cpu=here.model,
        cpu_features=here.features,
        verdict=verdict,
        model=str(model) if model else "none",
        cache=str(settings.cache),
        cache_bytes=_size(settings.cache),
        problems=tuple(problems),
    )


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            total += path.stat().st_size
    return total


def versions() -> tuple[str, ...]:
    """Versions of the packages that decide results."""
    names = ("tree-sitter", "msgspec", "jinja2", "xxhash", "typer")
    return tuple(f"{name} {importlib.metadata.version(name)}" for name in names)


def _server(binary: str | None) -> str:
    from carbon_mind.engine.serving import find

    source = find(binary)
    return f"{source.engine} (llama-server), build {source.build[:12]}"


def _in_process() -> str:
    from carbon_mind.engine.llama import build_hash, runtime

    loaded = runtime()
    return f"llama-cpp-python {loaded.version}, build {build_hash(loaded.libraries)[:12]}"


def render(report: Health) -> str:
    """The report for a person."""
    rows = [
        ("carbon", f"{report.carbon} (ranker: {report.ranker})"),
        ("python", f"{report.python}, {report.platform}"),
        ("packages", ", ".join(versions())),
        ("git", report.git),
        ("cpu", report.cpu),
        ("cpu features", " ".join(report.cpu_features) or "unknown"),
        ("engine", report.engine),
        ("engine probe", report.verdict),
        ("model", report.model),
        ("cache", f"{report.cache} ({report.cache_bytes / 1e6:,.1f} MB)"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    lines += [f"{'problem'.ljust(width)}  {problem}" for problem in report.problems]
    return "\n".join(lines) + "\n"
