"""The digest beside its peers: what does each cost on the same repositories, on the same machine, in one run?

    python bench/peers.py REPOSITORY ... --cache DIR [--repeat 3] [--sizes 1,2,4] [--tree 5000] [--json FILE] [--plot FILE]

`carbon mind`, aider's repo map, codemap-agents and repomap-cli, and an uncached `git status` as the floor: nothing that looks at every
file can be faster. For each tool and repository, all tools in turn within each round:

    cold       nothing that the tool ever wrote is left: its clone is cleaned, its home folder is empty
    unchanged  the same again
    touch      every tracked file has a new time and the same content
    edit       one source file got a comment line that it never had before

Cold means the tool's caches; the system keeps the files in memory in all four. CPU is user and system time of all processes that a run
started, those included that outlive it (a fork server); wall time ends with the command itself. Memory is the peak of the largest single
process, and, sampled, the sum over all. Sizes are bytes and carbon-mind's own bound on tokens, the same for every tool.

Each tool gets a clone of its own below --cache, so no tool sees the cache of another and no checkout is touched; peers are installed there
at exact versions, each in its own virtual environment. Aider's map is made by its class, without its chat and model libraries, which cost
seconds to import: that flatters aider. Needs Linux. Medians are printed; every run, and the targets, go to --json.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime as dt
import difflib
import hashlib
import itertools
import json
import os
import platform
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from carbon_mind.cli import console
from carbon_mind.digest.bound import token_bound
from carbon_mind.machine import cpu, usable_cores

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ("cold", "unchanged", "touch", "edit")
MEASURED = ("cpu_s", "wall_s", "peak_mb", "tree_mb")
MB = 1_000_000
SECOND = 1_000_000_000  # nanoseconds

# --- the tools ------------------------------------------------------------------------------------------------

AIDER_MAP = r"""
import contextlib, importlib.util, os, pathlib, subprocess, sys
root = sys.argv[1]
# The vocabulary comes with litellm, so counting tokens as aider does needs no network.
litellm = pathlib.Path(importlib.util.find_spec("litellm").origin).parent
os.environ["TIKTOKEN_CACHE_DIR"] = str(litellm / "litellm_core_utils" / "tokenizers")
import tiktoken
from aider.repomap import RepoMap

class Model:
    encoding = tiktoken.get_encoding("cl100k_base")
    def token_count(self, text):
        return len(self.encoding.encode(text, disallowed_special=()))

class Talk:
    def read_text(self, name, silent=False):
        try:
            return pathlib.Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            return None
    def tool_output(self, *args, **kwargs):
        pass
    tool_warning = tool_error = tool_output

names = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
files = {os.path.join(root, os.fsdecode(name)) for name in names.split(b"\0") if name}
with contextlib.redirect_stdout(sys.stderr):
    found = RepoMap(map_tokens=1024, root=root, main_model=Model(), io=Talk()).get_repo_map(set(), files)
sys.stdout.buffer.write((found or "").encode("utf-8", "replace"))
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command with `{repo}` in it that prints what an agent would be given."""

    name: str
    version: str
    command: tuple[str, ...]
    cwd: Path | None = None  # None: its empty home folder


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool that is installed for the benchmark; `{bin}` in its command is where."""

    name: str
    package: str
    version: str
    command: tuple[str, ...]


AIDER_COMMAND = "aider --show-repo-map"
AIDER_OPTIONS = (
    *(
        "--show-repo-map",
        "--map-tokens",
        "1024",
        "--model",
        "gpt-4o",
        "--api-key",
        "openai=none",
        "--yes-always",
        "--no-pretty",
    ),
    *("--no-check-update", "--no-show-model-warnings", "--analytics-disable", "--no-gitignore", "--no-detect-urls"),
)
PEERS = (
    # -I: nothing in the repository or in the environment can stand in for a module.
    Peer("aider", "aider-chat", "0.86.2", ("{bin}/python", "-I", "-c", AIDER_MAP, "{repo}")),
    Peer(AIDER_COMMAND, "aider-chat", "0.86.2", ("{bin}/aider", *AIDER_OPTIONS, "{repo}")),
    Peer("codemap-agents", "codemap-agents", "0.5.1", ("{bin}/codemap", "print", "--root", "{repo}")),
    Peer("repomap-cli", "repomap-cli", "1.0.0", ("{bin}/repomap", "overview", "--project", "{repo}")),
)
PLOTTER = ("matplotlib", "3.11.2")

CARBON = "carbon mind"
FLOOR = "git status"
# No cache of git's own, and no refreshed index left behind: after `touch` git reads every file, each time.
UNCACHED = (
    "git",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-C",
    "{repo}",
)
STATUS = (*UNCACHED, "status", "--porcelain=v2", "-z", "--untracked-files=all")


def _output(command: Sequence[str], where: Path | None = None) -> str:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def carbon(python: Path) -> Tool:
    """What a user runs: the installed entry point; this source tree through `python` where there is none."""
    entry = python.parent / "carbon"
    start = (str(entry),) if entry.exists() else (str(python), "-m", "carbon_mind")
    version = _output((*start, "--version"), ROOT).removeprefix("carbon ")
    return Tool(CARBON, version, (*start, "mind", "--print", "{repo}"), None if entry.exists() else ROOT)


def environment(package: str, version: str, python: Path, cache: Path) -> Path:
    """The `bin` folder of a virtual environment with exactly that package; made once. Raises CalledProcessError."""
    folder = cache / "environments" / f"{package}-{version}"
    whole = folder / "whole"  # written last, so what was interrupted is made anew
    if not whole.exists():
        console.step(f"installing {package}=={version} from the package index into {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        _output([str(python), "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        _output([*pip, "install", "--quiet", f"{package}=={version}"])
        whole.write_text(_output([*pip, "freeze"]) + "\n", encoding="utf-8")
    return folder / "bin"


def install(peer: Peer, python: Path, cache: Path) -> tuple[Tool, list[str]]:
    """The peer, ready to run, and all that was installed with it."""
    folder = environment(peer.package, peer.version, python, cache)
    command = tuple(part.replace("{bin}", str(folder)) for part in peer.command)
    return Tool(peer.name, peer.version, command), (folder.parent / "whole").read_text(encoding="utf-8").splitlines()


# --- the repositories -----------------------------------------------------------------------------------------

COMMENTS = dict.fromkeys((".py", ".rb", ".sh", ".ex"), "# ") | dict.fromkeys(
    (".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".go", ".ts", ".tsx", ".js", ".jsx", ".java", ".cs", ".php", ".swift"),
    "// ",
)
ASIDE = re.compile(r"(^|/)(deps|vendor|third_party|node_modules|tests?|__tests__|testdata|examples?|docs?)/")


@dataclass(frozen=True, slots=True)
class Subject:
    """A repository to measure on."""

    name: str
    source: Path  # a bare copy below the cache folder
    commit: str
    files: int
    bytes: int
    source_bytes: int  # of the files in one of the languages above
    edited: str  # the file that the edit is made to
    scenarios: tuple[str, ...] = SCENARIOS
    once: tuple[str, ...] = ()  # scenarios of the first round only


def _git(where: Path, *arguments: str) -> str:
    return _output(["git", "-c", "core.fsmonitor=false", "-C", str(where), *arguments])


def _sizes(bare: Path, commit: str) -> dict[str, int]:
    """Regular files of a commit and their sizes."""
    rows = [row.partition("\t") for row in _git(bare, "ls-tree", "-rlz", commit).split("\0")]
    parts = [(meta.split(), path) for meta, _, path in rows if path]
    return {path: int(meta[3]) for meta, path in parts if meta[0] in ("100644", "100755")}


def edited_file(sizes: dict[str, int]) -> str:
    """The file of middle size among those in the language with most files, vendored and test code left aside."""
    sources = [path for path in sizes if Path(path).suffix in COMMENTS]
    central = [path for path in sources if not ASIDE.search(path)] or sources
    if not central:
        return ""
    count = Counter(Path(path).suffix for path in central)
    suffix = min(count, key=lambda found: (-count[found], found))
    ordered = sorted((path for path in central if Path(path).suffix == suffix), key=lambda path: (sizes[path], path))
    return ordered[len(ordered) // 2]


def subject(where: Path, cache: Path, name: str = "") -> Subject:
    """A private copy of what is committed at `where`. Raises CalledProcessError where that is no repository."""
    top = Path(_git(where, "rev-parse", "--show-toplevel"))
    commit = _git(top, "rev-parse", "HEAD")
    name = name or top.name
    bare = cache / "sources" / f"{name.replace(' ', '-')}-{commit[:12]}.git"
    if not (bare / "HEAD").exists():
        partial = bare.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.parent.mkdir(parents=True, exist_ok=True)
        _output(["git", "clone", "--quiet", "--bare", "--no-hardlinks", str(top), str(partial)])
        partial.rename(bare)
    sizes = _sizes(bare, commit)
    source_bytes = sum(size for path, size in sizes.items() if Path(path).suffix in COMMENTS)
    return Subject(name, bare, commit, len(sizes), sum(sizes.values()), source_bytes, edited_file(sizes))


def _commit(folder: Path, files: dict[str, bytes]) -> Path:
    """A repository with these files and always the same commit."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    who = {f"GIT_{role}_{fact}": value for role in ("AUTHOR", "COMMITTER") for fact, value in _WHO.items()}
    for step in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "made", "--no-gpg-sign"]):
        subprocess.run(["git", "-C", str(folder), *step], env={**os.environ, **who}, check=True, capture_output=True)
    return folder


_WHO = {"NAME": "bench", "EMAIL": "bench@localhost", "DATE": "2020-01-01T00:00:00Z"}


def made_files(count: int, more: int = 0) -> dict[str, bytes]:
    """`count` Python modules, a hundred to a package, each with `more` further functions; each uses the one before it."""
    files = {"pyproject.toml": b'[project]\nname = "made"\nversion = "0"\n'}
    for i in range(count - 1):
        before = max(i - 1, 0)
        use = f"from made.part_{before // 100:03}.module_{before:05} import step_{before:05}\n\n\n" if i else ""
        call = f"step_{before:05}(value)" if i else "value"
        files[f"made/part_{i // 100:03}/module_{i:05}.py"] = (
            f'"""Part {i} of the work."""\n\n{use}'
            f"class Worker{i:05}:\n    def __init__(self, size: int) -> None:\n        self.size = size\n\n"
            f"    def work(self, value: int) -> int:\n        return step_{i:05}(value) + self.size\n\n\n"
            f"def step_{i:05}(value: int) -> int:\n    total = {i}\n    for item in range(value % 7):\n"
            f"        total += item\n    return total + {call}\n"
            + "".join(
                f"\n\ndef extra_{i:05}_{j}(value: int, other: str) -> int:\n"
                f'    """Step {j}, for {{other}}."""\n    kept = [part for part in other.split() if part != "{j}"]\n'
                f"    return step_{i:05}(value) * len(kept)\n"
                for j in range(more)
            )
        ).encode()
    return files


# Words that cannot be keywords: with an underscore or a capital within. The few keywords of that kind are left as they are.
_OWN_WORD = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]|(?<=[a-z0-9])[A-Z])\w*", re.ASCII)
_KEYWORDS = re.compile(
    r"(static|const|dynamic|reinterpret)_cast|static_assert|thread_local|macro_rules|co_(await|return|yield)"
)


def copied_files(files: dict[str, bytes], times: int) -> dict[str, bytes]:
    """The files `times` times, each copy in its own folder and with its own names, in paths and in code alike.

    Were the names the same, the tools that link names would have `times` squared links: twice the code, four times the work.
    """
    found: dict[str, bytes] = {}
    for number in range(1, times + 1):

        def own(text: str, number: int = number) -> str:
            return _OWN_WORD.sub(lambda m: m[0] if _KEYWORDS.fullmatch(m[0]) else f"{m[0]}_{number}", text)

        for path, data in files.items():
            found[f"copy{number}/{own(path)}"] = own(data.decode("latin-1")).encode("latin-1")
    return found


def copies(base: Subject | None, times: Sequence[int], cache: Path) -> list[Subject]:
    """The source files of `base` (or made ones) in several sizes."""
    if base is None:
        # 2 MB: from about there on, work is shared out to processes, and the cost of starting those is no growth.
        files, name = made_files(500, 20), "made"
    else:
        names = [path for path in _sizes(base.source, base.commit) if Path(path).suffix in COMMENTS]
        files, name = {path: _blob(base, path) for path in names}, base.name
    made = [_commit(cache / "made" / f"{name}-x{k}", copied_files(files, k)) for k in times]
    found = [subject(where, cache, f"{name} x{k}") for where, k in zip(made, times, strict=True)]
    return [replace(item, scenarios=("cold",)) for item in found]


def _blob(base: Subject, path: str) -> bytes:
    command = ["git", "-C", str(base.source), "cat-file", "blob", f"{base.commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout


# --- one run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """What one command cost."""

    exit: int
    wall_s: float
    cpu_s: float
    peak_mb: float  # of the largest single process
    tree_mb: float  # sampled sum of the resident sets; pages that processes share count once for each
    failure: str = ""


def adopt_orphans() -> None:
    """Processes that a run leaves behind become children of this one, so that their CPU time can be counted."""
    set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="ascii").split():
                found += [int(child), *_descendants(int(child))]
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _kill_all() -> None:
    """End what this process started: it has no other children while a run is measured."""
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class _Watch(threading.Thread):
    """Samples memory, and ends a run that takes too long."""

    def __init__(self, limit: float) -> None:
        super().__init__(daemon=True)
        self._deadline = time.monotonic() + limit
        self._over = threading.Event()
        self.peak = 0
        self.too_long = False

    def run(self) -> None:
        """Until `stop`."""
        while not self._over.wait(0.05):
            self.peak = max(self.peak, sum(map(_resident, _descendants(os.getpid()))))
            if time.monotonic() > self._deadline:
                self.too_long = True
                _kill_all()

    def stop(self) -> None:
        """After this nothing is killed any more."""
        self._over.set()
        self.join()


def measure(command: Sequence[str], cwd: Path, env: dict[str, str], limit: float, output: Path) -> Run:
    """Run it to its end and count everything that it started. Its output is left in `output`, its talk beside it."""
    talk = output.with_suffix(".err")
    usages: list[resource.struct_rusage] = []
    with output.open("wb") as out, talk.open("wb") as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        watch = _Watch(limit)
        watch.start()
        try:
            # It stays a zombie until it is reaped below, so its id cannot be another process's while the watch may kill.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            wall = time.perf_counter() - started
            grace = time.monotonic() + 10
            with contextlib.suppress(ChildProcessError):  # no child is left
                while True:
                    pid, status, usage = os.wait4(-1, os.WNOHANG)
                    if pid == process.pid:
                        process.returncode = os.waitstatus_to_exitcode(status)
                    if pid:
                        usages.append(usage)
                        continue
                    if time.monotonic() > grace:
                        _kill_all()
                    time.sleep(0.002)
        except BaseException:
            _kill_all()
            raise
        finally:
            watch.stop()
    code = process.returncode
    failure = f"more than {limit:g} s" if watch.too_long else f"exit code {code}: {_last_line(talk)}" if code else ""
    peak = max(usage.ru_maxrss for usage in usages) * 1024
    return Run(
        exit=code,
        wall_s=round(wall, 4),
        cpu_s=round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 4),
        peak_mb=round(peak / MB, 1),
        tree_mb=round(max(watch.peak, peak) / MB, 1),
        failure=failure,
    )


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:160] if lines else "no message"


# --- the scenarios --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bench:
    """One tool on its own clone of one repository."""

    tool: Tool
    subject: Subject
    clone: Path
    home: Path

    def prepare(self) -> None:
        """The clone as it was committed, with file times that lie back so that git need not doubt them."""
        if (self.clone / ".git").exists() and _git(self.clone, "rev-parse", "HEAD") == self.subject.commit:
            _git(self.clone, "reset", "--quiet", "--hard")
        else:
            shutil.rmtree(self.clone, ignore_errors=True)
            self.clone.parent.mkdir(parents=True, exist_ok=True)
            _output(["git", "clone", "--quiet", "--local", str(self.subject.source), str(self.clone)])
        self.forget()
        self.touch(time.time_ns() - 60 * SECOND)
        self.settle()

    def forget(self) -> None:
        """Remove all that the tool ever wrote, wherever it keeps it."""
        _git(self.clone, "clean", "-ffdxq")
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / "tmp").mkdir(parents=True)

    def touch(self, when: int) -> None:
        """Give every tracked file this time, in nanoseconds."""
        for name in _git(self.clone, "ls-files", "-z").split("\0"):
            file = self.clone / name
            if name and file.is_file() and not file.is_symlink():
                os.utime(file, ns=(when, when))

    def settle(self) -> None:
        """What the user's next `git status` does: the index learns the new times."""
        _git(self.clone, "update-index", "-q", "--refresh")

    @contextlib.contextmanager
    def edited(self, number: int) -> Iterator[None]:
        """One more comment line, another one each time, so that no cache has seen this content; then as before."""
        file = self.clone / self.subject.edited
        before, times = file.read_bytes(), file.stat()
        file.write_bytes(before + f"\n{COMMENTS[file.suffix]}edited in round {number}\n".encode())
        try:
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    @contextlib.contextmanager
    def state(self, scenario: str, number: int) -> Iterator[None]:
        """The clone as the scenario wants it; each scenario follows on the one before it."""
        if scenario == "cold":
            self.forget()
        if scenario == "touch":
            # Two seconds back: git doubts the times of files that changed in the second in which it wrote its index.
            self.touch(time.time_ns() - 2 * SECOND)
        with self.edited(number) if scenario == "edit" else contextlib.nullcontext():
            yield
        if scenario == "touch":
            self.settle()

    def run(self, limit: float, output: Path) -> Run:
        """The tool, with nothing of the user's settings and a home folder of its own."""
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        home = {"HOME": str(self.home), "TMPDIR": str(self.home / "tmp"), "LANG": "C.UTF-8"}
        command = [part.replace("{repo}", str(self.clone)) for part in self.tool.command]
        return measure(command, self.tool.cwd or self.home, {**kept, **home}, limit, output)

    def caches(self) -> list[str]:
        """Where the tool left something: in the repository, and below its home folder."""
        rows = _git(self.clone, "status", "--porcelain", "--ignored").splitlines()
        inside = [row[3:] for row in rows if row[:2] in ("??", "!!")]
        homely = {"/".join(p.relative_to(self.home).parts[:3]) for p in self.home.rglob("*") if p.is_file()}
        return sorted(inside) + [f"~/{name}" for name in sorted(homely)]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one tool, and what it printed."""

    tool: str
    repository: str
    scenario: str
    round: int
    run: Run
    bytes: int
    tokens: int  # carbon-mind's bound
    sha256: str
    differs: int  # lines unlike those of the first output of this scenario
    differs_from_cold: int  # lines unlike those of the cold output of this round


@dataclass(slots=True)
class Session:
    """All samples so far, and the first outputs to compare with."""

    limit: float
    outputs: Path
    samples: list[Sample] = field(default_factory=list)
    texts: dict[tuple[str, str, str, int], str] = field(default_factory=dict)
    given_up: set[tuple[str, str]] = field(default_factory=set)

    def take(self, bench: Bench, scenario: str, number: int) -> None:
        """One sample; a tool that failed on a repository is not run there again."""
        key = (bench.tool.name, bench.subject.name)
        if key in self.given_up:
            return
        output = self.outputs / f"{'-'.join(key).replace(' ', '-')}-{scenario}-{number}.txt"
        with bench.state(scenario, number):
            run = bench.run(self.limit, output)
        data = output.read_bytes()
        text = data.decode("utf-8", "replace")
        self.texts[*key, scenario, number] = text
        sample = Sample(
            *key,
            scenario,
            number,
            run,
            bytes=len(data),
            tokens=token_bound(text),
            sha256=hashlib.sha256(data).hexdigest(),
            differs=unlike(self.texts.get((*key, scenario, 1), text), text),
            differs_from_cold=unlike(self.texts.get((*key, "cold", number), text), text),
        )
        self.samples.append(sample)
        what = f"{run.cpu_s:.2f} CPU s, {run.wall_s:.2f} s, {run.peak_mb:.0f} MB"
        console.step(f"{number} {bench.subject.name}, {scenario}, {bench.tool.name}: {run.failure or what}")
        if run.failure:
            self.given_up.add(key)


def unlike(left: str, right: str) -> int:
    """Lines of `right` that are not in `left` at their place, or the other way round, whichever are more."""
    if left == right:
        return 0
    rows = list(difflib.unified_diff(left.split("\n"), right.split("\n"), n=0, lineterm=""))[2:]
    return max(sum(row.startswith(sign) for row in rows) for sign in "+-")


# --- what came out --------------------------------------------------------------------------------------------


class Results:
    """Medians over the samples."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def of(self, repository: str, scenario: str, tool: str) -> list[Sample]:
        """The samples that worked."""
        return [
            s
            for s in self._samples
            if (s.repository, s.scenario, s.tool) == (repository, scenario, tool) and not s.run.failure
        ]

    def median(self, repository: str, scenario: str, tool: str, what: str) -> float | None:
        """Of one number of the runs; None where there is no run."""
        found = [getattr(sample.run, what) for sample in self.of(repository, scenario, tool)]
        return statistics.median(found) if found else None

    def peak(self, repository: str, tool: str, what: str) -> float | None:
        """The highest median of all scenarios."""
        found = [self.median(repository, scenario, tool, what) for scenario in SCENARIOS]
        return max((value for value in found if value is not None), default=None)

    def failure(self, repository: str, tool: str) -> str:
        """Why a tool was given up on a repository."""
        found = [s for s in self._samples if (s.repository, s.tool) == (repository, tool) and s.run.failure]
        return f"{found[0].scenario}: {found[0].run.failure}" if found else ""


@dataclass(frozen=True, slots=True)
class Target:
    """What carbon-mind has set itself, and whether it holds; None where it was not measured."""

    text: str
    measured: str
    holds: bool | None


NAMED = ("redis", "core", "vue-core")  # what the limits in seconds were set for
COLD_SHARE = 1 / 8
COLD_WALL_SLACK = 0.5
STILL_WALL = 0.25
EDIT_EXTRA = 0.1
PEAK_MB = 150.0
LINEAR = 1.25  # how much more the last MB may cost than the first ones


def targets(
    results: Results, subjects: Sequence[Subject], sizes: Sequence[Subject], tree: Subject | None
) -> list[Target]:
    """Every target, with the numbers it was decided by."""

    def wall(name: str, scenario: str, tool: str = CARBON) -> float | None:
        return results.median(name, scenario, tool, "wall_s")

    def each(text: str, rows: Sequence[tuple[str, float | None, float | None]]) -> Target:
        """Holds when each value is at most its limit; rows without both are left out."""
        known = [(name, value, limit) for name, value, limit in rows if value is not None and limit is not None]
        shown = ", ".join(f"{name} {value:.3f} (limit {limit:.3f})" for name, value, limit in known)
        return Target(text, shown or "not measured", all(v <= limit for _, v, limit in known) if known else None)

    every = [item.name for item in subjects]
    named = [name for name in every if name in NAMED]
    codemap = [wall(name, "cold", "codemap-agents") for name in every]
    unchanged = [wall(name, "unchanged") for name in every]

    def share(whose: str, tool: str) -> Target:
        theirs = [results.median(name, "cold", tool, "cpu_s") for name in named]
        return each(
            f"cold: at most 1/8 of the CPU seconds of {whose} on redis and vue-core",
            [
                (name, results.median(name, "cold", CARBON, "cpu_s"), None if cpu_s is None else cpu_s * COLD_SHARE)
                for name, cpu_s in zip(named, theirs, strict=True)
            ],
        )

    found = [
        share("aider's map alone", "aider"),
        share("`aider --show-repo-map`, as a user runs it,", AIDER_COMMAND),
        each(
            f"cold: at most codemap-agents' wall time and {COLD_WALL_SLACK} s",
            [
                (name, wall(name, "cold"), None if c is None else c + COLD_WALL_SLACK)
                for name, c in zip(every, codemap, strict=True)
            ],
        ),
        each(
            f"unchanged and after touch: at most {STILL_WALL} s of wall time on redis and vue-core",
            [(f"{name} {s}", wall(name, s), STILL_WALL) for name in named for s in ("unchanged", "touch")],
        ),
        each(
            f"one edit: at most {EDIT_EXTRA} s of wall time more than unchanged",
            [
                (name, wall(name, "edit"), None if u is None else u + EDIT_EXTRA)
                for name, u in zip(every, unchanged, strict=True)
            ],
        ),
        each(
            f"memory: at most {PEAK_MB:g} MB in any single process",
            [(name, results.peak(name, CARBON, "peak_mb"), PEAK_MB) for name in every],
        ),
    ]
    if tree is not None:
        peers = [(peer.name, wall(tree.name, "unchanged", peer.name)) for peer in PEERS]
        fastest = min((value for _, value in peers if value is not None), default=None)
        text = f"unchanged: faster than every peer on {tree.name}"
        found.append(each(text, [("wall s", wall(tree.name, "unchanged"), fastest)]))
    if len(sizes) > 2:
        found.append(
            each("growth: the last MB costs as much as the first", [("ratio", growth(results, sizes, CARBON), LINEAR)])
        )
    return found


def growth(results: Results, sizes: Sequence[Subject], tool: str) -> float | None:
    """CPU seconds for a further MB at the largest sizes, by those at the smallest: 1 is linear; the cost of starting plays no part."""
    points = [(s.source_bytes / MB, results.median(s.name, "cold", tool, "cpu_s")) for s in sizes]
    known = [(size, seconds) for size, seconds in points if seconds is not None]
    if len(known) < len(points) or len(known) < 3:
        return None
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(known)]
    return slopes[-1] / slopes[0] if slopes[0] > 0 else None


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column to the left, numbers to the right."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (headings, rule, *rows))


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _same(samples: Sequence[Sample]) -> str:
    if len(samples) < 2:
        return "-"
    most = max(sample.differs for sample in samples)
    return "yes" if len({s.sha256 for s in samples}) == 1 else f"no ({most} line{'s' if most != 1 else ''})"


def _warm_as_cold(samples: Sequence[Sample]) -> str:
    most = max((sample.differs_from_cold for sample in samples), default=None)
    return "-" if most is None else "yes" if most == 0 else f"no ({most} line{'s' if most != 1 else ''})"


def repository_table(results: Results, item: Subject, tools: Sequence[Tool], floor: float) -> str:
    """All scenarios of one repository. `floor`: what the system may count to any process, see `_own_peak`."""
    headings = ["tool", *item.scenarios, "MB", "bytes", "tokens", "same bytes: cold", "unchanged", "unchanged as cold"]
    rows = []
    for tool in tools:

        def cost(scenario: str, tool: Tool = tool) -> str:
            found = [results.median(item.name, scenario, tool.name, what) for what in ("cpu_s", "wall_s")]
            return " / ".join(map(_number, found))

        peak, tree = (results.peak(item.name, tool.name, what) for what in ("peak_mb", "tree_mb"))
        small = "" if peak is None or peak > floor else "under "
        row = [tool.name, *map(cost, item.scenarios), f"{small}{_number(peak, 0)} / {_number(tree, 0)}"]
        cold, warm = results.of(item.name, "cold", tool.name), results.of(item.name, "unchanged", tool.name)
        if tool.name == FLOOR or not cold:
            row += ["-"] * 5
        else:
            row += [f"{cold[0].bytes:,}", f"{cold[0].tokens:,}", _same(cold), _same(warm), _warm_as_cold(warm)]
        rows.append(row)
    failures = [(tool.name, results.failure(item.name, tool.name)) for tool in tools]
    notes = "".join(f"\n{name} failed, {why}\n" for name, why in failures if why)
    title = f"\n### {item.name}: {item.files:,} files, {item.source_bytes / MB:.1f} MB of source, commit {item.commit[:12]}\n\n"
    return title + markdown(headings, rows) + notes


def growth_table(results: Results, sizes: Sequence[Subject], tools: Sequence[Tool]) -> str:
    """CPU seconds by size."""
    headings = ["tool", *(f"{s.name}, {s.source_bytes / MB:.1f} MB: CPU s" for s in sizes)]
    headings += [*(f"x{s.name.rpartition(' x')[2]}: CPU s/MB" for s in sizes), "last MB / first MB"]
    rows = []
    for tool in tools:
        seconds = [results.median(s.name, "cold", tool.name, "cpu_s") for s in sizes]
        shares = [None if c is None else c * MB / s.source_bytes for c, s in zip(seconds, sizes, strict=True)]
        row = [tool.name, *map(_number, seconds), *map(_number, shares)]
        rows.append([*row, "-" if tool.name == FLOOR else _number(growth(results, sizes, tool.name))])
    return "\n### Growth, cold\n\n" + markdown(headings, rows)


PLOT = r"""
import json, sys
import matplotlib
matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "peers"
import matplotlib.pyplot as plt
facts = json.load(open(sys.argv[1], encoding="utf-8"))
rows = [row for row in facts["medians"] if row["wall_s"] is not None]
names = [item["name"] for item in facts["repositories"] if len(item["scenarios"]) > 1]
tools = list(facts["tools"])
figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names) + 1, 4), sharey=True, squeeze=False)
for axis, name in zip(axes[0], names):
    scenarios = next(item["scenarios"] for item in facts["repositories"] if item["name"] == name)
    for i, tool in enumerate(tools):
        found = {r["scenario"]: r["wall_s"] for r in rows if r["repository"] == name and r["tool"] == tool}
        places = [j + (i - (len(tools) - 1) / 2) * 0.8 / len(tools) for j, s in enumerate(scenarios) if s in found]
        axis.bar(places, [found[s] for s in scenarios if s in found], 0.8 / len(tools), label=tool, color=f"C{i}")
    axis.set_yscale("log")
    axis.set_title(name)
    axis.set_xticks(range(len(scenarios)), scenarios, rotation=30)
    axis.grid(axis="y", alpha=0.3)
axes[0][0].set_ylabel("wall time, seconds (log)")
figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(tools), frameon=False)
figure.tight_layout(rect=(0, 0.08, 1, 1))
figure.savefig(sys.argv[2] + ".svg", metadata={"Date": None})
figure.savefig(sys.argv[2] + ".png", dpi=150)
"""


# --- everything in order --------------------------------------------------------------------------------------


def _arguments() -> argparse.Namespace:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(sorted(int(part) for part in text.split(",")))

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "repositories", nargs="*", type=Path, metavar="REPOSITORY", help="git checkouts; HEAD is measured"
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder for peers and clones; kept for the next run")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument(
        "--sizes", type=numbers, default=(), metavar="1,2,4", help="growth: source files copied so often"
    )
    parser.add_argument(
        "--sizes-of", metavar="NAME", help="whose files (default: the middle repository's, or made ones)"
    )
    parser.add_argument("--tree", type=int, default=0, metavar="5000", help="also a made tree of so many small files")
    parser.add_argument("--peers", default=",".join(peer.name for peer in PEERS), help="which (default: %(default)s)")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="runs carbon (default: this one)")
    parser.add_argument("--peer-python", type=Path, default=Path(sys.executable), help="makes the peers' environments")
    parser.add_argument("--cores", type=int, default=2, help="cores that all runs may use (default: 2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run (default: 300)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run and the targets")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw FILE.svg and FILE.png (installs matplotlib); needs --json"
    )
    chosen = parser.parse_args()
    if not (chosen.repositories or chosen.sizes or chosen.tree):
        parser.error("nothing to measure: name repositories, or give --sizes or --tree")
    if unknown := set(chosen.peers.split(",")) - {peer.name for peer in PEERS} - {""}:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    if chosen.repeat < 1 or chosen.cores < 1 or any(k < 1 for k in chosen.sizes):
        parser.error("--repeat, --cores and --sizes count from 1")
    if chosen.plot and not chosen.json:
        parser.error("--plot draws what --json wrote")
    return chosen


def _tools(chosen: argparse.Namespace, cache: Path) -> tuple[list[Tool], dict[str, list[str]]]:
    """carbon, the peers that could be installed, the floor; and what was installed with each."""
    tools = [carbon(chosen.python)]
    installed: dict[str, list[str]] = {}
    for peer in PEERS:
        if peer.name in chosen.peers.split(","):
            try:
                tool, installed[peer.name] = install(peer, chosen.peer_python, cache)
                tools.append(tool)
            except subprocess.CalledProcessError as problem:
                why = (problem.stderr or "").strip().splitlines()[-1:]
                console.notice(f"{peer.package} cannot be installed and is left out: {' '.join(why)}")
    return [*tools, Tool(FLOOR, _output(["git", "--version"]).removeprefix("git version "), STATUS)], installed


def _subjects(chosen: argparse.Namespace, cache: Path) -> tuple[list[Subject], list[Subject], Subject | None]:
    """The repositories, the growing copies, the large tree."""
    try:
        found = [subject(where, cache) for where in chosen.repositories]
    except subprocess.CalledProcessError as problem:
        raise SystemExit(f"error: not a git checkout with a commit: {(problem.stderr or '').strip()}") from problem
    if len({item.name for item in found}) < len(found):
        raise SystemExit("error: two repositories have the same folder name; the tables could not tell them apart")
    sizes: list[Subject] = []
    if chosen.sizes:
        named = [item for item in found if item.name == (chosen.sizes_of or item.name)]
        if chosen.sizes_of and not named:
            raise SystemExit(f"error: --sizes-of: no repository {chosen.sizes_of} was given")
        # Neither so small that starting is all that counts, nor so large that the copies take an hour.
        ordered = sorted(named, key=lambda item: item.source_bytes)
        sizes = copies(ordered[(len(ordered) - 1) // 2] if ordered else None, chosen.sizes, cache)
    tree = None
    if chosen.tree:
        made = _commit(cache / "made" / f"tree-{chosen.tree}", made_files(chosen.tree))
        tree = subject(made, cache, f"{chosen.tree:,} small files")
        tree = replace(tree, scenarios=("cold", "unchanged"), once=("cold",))
    return found, sizes, tree


def _bench(tool: Tool, item: Subject, cache: Path) -> Bench:
    place = f"{item.source.stem}/{tool.name.replace(' ', '-')}"
    return Bench(tool, item, cache / "clones" / place / item.name.replace(" ", "-"), cache / "homes" / place)


def _try_out(tools: Sequence[Tool], session: Session, cache: Path) -> dict[str, list[str]]:
    """Each tool once, unmeasured, so that its modules are compiled; and where each keeps its caches."""
    small = subject(_commit(cache / "made" / "try-out", made_files(20)), cache, "try-out")
    found = {}
    for tool in tools:
        bench = _bench(tool, small, cache)
        bench.prepare()
        run = bench.run(session.limit, session.outputs / "try-out.txt")
        found[tool.name] = bench.caches()
        if run.failure:
            console.notice(f"{tool.name} fails on a repository of 20 small files: {run.failure}")
    return found


def _own_peak() -> float:
    """Our own peak in MB. The system hands it on to what we start, so no process can be seen to have needed less."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB, 1)


def _facts(chosen: argparse.Namespace, tools: Sequence[Tool]) -> dict[str, Any]:
    """What the numbers depend on."""
    here = cpu()
    version = ("-c", "import platform; print(platform.python_version())")
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "machine": f"{here.model}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        "python": _output([str(chosen.python), *version]),
        "peer_python": _output([str(chosen.peer_python), *version]),
        "tools": {tool.name: tool.version for tool in tools},
        "source": _output(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])
        if (ROOT / ".git").exists()
        else "",
        "command": _command(chosen),
        "repeat": chosen.repeat,
        "load_before": round(os.getloadavg()[0], 2),
    }


def _draw(chosen: argparse.Namespace, cache: Path) -> None:
    try:
        python = environment(*PLOTTER, chosen.peer_python, cache) / "python"
        _output([str(python), "-I", "-c", PLOT, str(chosen.json), str(chosen.plot)])
        console.step(f"plot: {chosen.plot}.svg, {chosen.plot}.png")
    except subprocess.CalledProcessError as problem:
        console.notice(f"no plot: {(problem.stderr or '').strip()[-300:]}")


def main() -> int:
    """Prepare, measure, tell. Exit code 1 when carbon-mind itself failed; a missed target is a result, not a failure."""
    if sys.platform != "linux":
        raise SystemExit("error: CPU time and memory of a whole process tree are measured by means that only Linux has")
    chosen = _arguments()
    cache = chosen.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    tools, installed = _tools(chosen, cache)
    subjects, sizes, tree = _subjects(chosen, cache)
    everything = [*subjects, *([tree] if tree else []), *sizes]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cores])
    facts = _facts(chosen, tools)
    adopt_orphans()
    session = Session(chosen.timeout, cache / "outputs")
    shutil.rmtree(session.outputs, ignore_errors=True)
    session.outputs.mkdir()
    caches = _try_out(tools, session, cache)
    benches = {(item.name, tool.name): _bench(tool, item, cache) for item in everything for tool in tools}
    for bench in benches.values():
        bench.prepare()
    for number in range(1, chosen.repeat + 1):
        # Another tool begins in each round, so that none always runs on what the same other one left in memory.
        turn = (number - 1) % len(tools)
        for item in everything:
            for scenario in item.scenarios:
                if number == 1 or scenario not in item.once:
                    for tool in [*tools[turn:], *tools[:turn]]:
                        session.take(benches[item.name, tool.name], scenario, number)
    results = Results(session.samples)
    reached = targets(results, subjects, sizes, tree)
    floor = _own_peak()
    heading = (
        f"{', '.join(f'{tool.name} {tool.version}' for tool in tools)}\n\n"
        f"{facts['machine']}, Python {facts['python']}, {facts['date']}; medians of {chosen.repeat}. Scenarios: CPU seconds of "
        "all processes / wall seconds. MB: peak of the largest process / of all together. Tokens: carbon-mind's bound.\n"
    )
    told = [
        heading,
        *[repository_table(results, item, tools, floor) for item in [*subjects, *([tree] if tree else [])]],
        *([growth_table(results, sizes, tools)] if sizes else []),
        "\n### Targets\n\n",
        *[f"- {_VERDICTS[target.holds]}: {target.text}: {target.measured}\n" for target in reached],
    ]
    console.data("".join(told))
    if chosen.json is not None:
        facts |= {
            "memory_floor_mb": floor,
            "repositories": [{k: v for k, v in asdict(item).items() if k != "source"} for item in everything],
            "caches": caches,
            "installed": installed,
            "targets": [asdict(target) for target in reached],
            "medians": [
                {"repository": item.name, "scenario": scenario, "tool": tool.name}
                | {what: results.median(item.name, scenario, tool.name, what) for what in MEASURED}
                for item in everything
                for scenario in item.scenarios
                for tool in tools
            ],
            "samples": [asdict(sample) for sample in session.samples],
        }
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        console.step(f"raw numbers: {chosen.json}")
    if chosen.plot is not None:
        _draw(chosen, cache)
    return 1 if any(name == CARBON for name, _ in session.given_up) else 0


_VERDICTS = {True: "PASS", False: "FAIL", None: "not measured"}


def _command(chosen: argparse.Namespace) -> str:
    """The command line as another person would type it: repositories by name, no place on this machine."""
    parts = ["python", "bench/peers.py", *[where.resolve().name for where in chosen.repositories], "--cache", "DIR"]
    parts += ["--repeat", str(chosen.repeat), "--cores", str(chosen.cores), "--timeout", f"{chosen.timeout:g}"]
    parts += ["--sizes", ",".join(map(str, chosen.sizes))] if chosen.sizes else []
    parts += ["--sizes-of", chosen.sizes_of] if chosen.sizes_of else []
    parts += ["--tree", str(chosen.tree)] if chosen.tree else []
    return shlex.join([*parts, "--peers", chosen.peers])


if __name__ == "__main__":
    started = time.perf_counter()
    code = main()
    console.step(f"took {time.perf_counter() - started:.0f} s")
    sys.exit(code)
