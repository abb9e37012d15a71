"""Does a digest name what will be worked on? Asked of a repository's own history, without a model.

For each of the last commits, a digest is made of the state *before* it, as if for a session that is about to make that commit. Counted is
which share of the files that the commit then changed it names, and which share lies in a component that it names. Only files of the
project's own code that were there before count: no tests, no vendored or generated files, nothing that the commit adds.

Beside it, with the same number of tokens by the same bound: the files that changed most often before, as many as fit; files drawn at
random; and whatever a command prints (another tool's map). A list of bare paths names many more files for its tokens than a digest, which
also says how to build and test: so the number of named files is shown, too.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from carbon_mind import pipeline
from carbon_mind.digest.bound import token_bound
from carbon_mind.digest.render import from_json
from carbon_mind.errors import RepositoryProblem, UsageProblem
from carbon_mind.repo import git
from carbon_mind.repo.classify import Attributes, kinds_of, parse_attributes
from carbon_mind.repo.scan import locate
from carbon_mind.settings import Settings
from carbon_mind.values import Digest, RepoPath

DIGEST, FREQUENT, RANDOM = "digest", "changed most", "random"
LOOK_BACK = 1000
"""Commits before one that tell what changes most."""
MANY = 30
"""A commit that changes more files than this is a sweep (a rename, a format) and tells nothing about a session."""
_WORD = re.compile(r"[^\s`'\"(),;<>|\[\]{}]+")
_RESAMPLED = 2000
PEER_S = 300.0
"""Seconds that a command may take for one commit."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What one text named of one commit."""

    tokens: int  # by our bound
    names: int  # files that it names
    covered: int  # of the changed files, named
    component: int  # of the changed files, named or in a component that is


@dataclass(frozen=True, slots=True)
class Sample:
    """One commit."""

    commit: str
    changed: tuple[str, ...]
    hits: Mapping[str, Hit]  # by name of the text


@dataclass(frozen=True, slots=True)
class Share:
    """A mean over commits, with the bounds that hold 95 % of its bootstrap."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """What came of one text."""

    name: str
    tokens: float
    names: float
    covered: Share
    component: Share
    ahead: Share | None  # of the digest's coverage before this one's, paired by commit; None for the digest itself


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was measured."""

    repository: str
    head: str
    commits: int
    budget: int
    seed: int
    lines: tuple[Line, ...]
    samples: tuple[Sample, ...]


def measure(
    where: Path,
    settings: Settings,
    *,
    commits: int,
    seed: int = 0,
    peers: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Report:
    """Look at the last `commits` commits that change the project's own code. `peers` are command lines by name.

    A command is run in a checkout, with the number of tokens in CARBON_TOKENS; what it prints is cut to as many.
    Raises RepositoryProblem, StorageProblem, UsageProblem.
    """
    root = locate(where).root
    try:
        history = _history(root)
    except git.GitFailed as refused:
        raise RepositoryProblem(
            f"its history cannot be read: {refused.reason}", hint="give a git repository"
        ) from refused
    with tempfile.TemporaryDirectory(prefix="carbon-bench-") as folder:
        there = Path(folder) / root.name
        try:
            git.run(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(there))
        except git.GitFailed as refused:
            raise RepositoryProblem(f"it cannot be cloned: {refused.reason}") from refused
        own = msgspec.structs.replace(settings, cache_dir=str(Path(folder) / "cache"), enabled=True)
        samples: list[Sample] = []
        for index, _ in enumerate(history):
            sample = _sample(there, own, history[index:], seed, peers or {})
            if sample is not None:
                samples.append(sample)
                progress(len(samples), commits)
            if len(samples) == commits:
                break
    if not samples:
        raise RepositoryProblem(
            "no commit changes files of the project's own code", hint="a full clone is needed, not a shallow one"
        )
    names = (DIGEST, FREQUENT, RANDOM, *(peers or ()))
    lines = tuple(_line(name, samples, seed) for name in names)
    return Report(root.name, history[0].sha, len(samples), settings.budget, seed, lines, tuple(samples))


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str
    parent: str
    paths: tuple[str, ...]


def _history(root: Path) -> list[_Commit]:
    """Commits without merges, the newest first, with the paths that each changed and that were there before."""
    told = git.run(
        root,
        *(
            "log",
            "--no-merges",
            "--no-renames",
            "--diff-filter=MD",
            "--name-only",
            "-z",
            "--format=%x01%H %P",
            "-n",
            "6000",
        ),
    )
    found = []
    for record in told.split(b"\x01")[1:]:
        heading, _, rest = record.partition(b"\0")
        sha, _, parents = heading.decode().strip().partition(" ")
        if parents:
            paths = (os.fsdecode(path.strip(b"\n")) for path in rest.split(b"\0"))
            found.append(_Commit(sha, parents.split(" ")[0], tuple(path for path in paths if path)))
    return found


def _sample(
    there: Path, settings: Settings, history: Sequence[_Commit], seed: int, peers: Mapping[str, str]
) -> Sample | None:
    commit = history[0]
    if not commit.paths or len(commit.paths) > MANY:
        return None
    try:
        git.run(there, "checkout", "--quiet", "--force", "--detach", commit.parent)
        listed = [os.fsdecode(path) for path in git.run(there, "ls-files", "-z").split(b"\0") if path]
    except git.GitFailed as refused:
        raise RepositoryProblem(f"commit {commit.parent[:12]} cannot be checked out: {refused.reason}") from refused
    code = _own_code(there, listed)
    changed = tuple(path for path in commit.paths if path in code)
    if not changed:
        return None
    mind = pipeline.build(there, settings, pipeline.Silent())
    digest = from_json(mind.json).digest
    budget = token_bound(mind.markdown)
    order = sorted(code)
    often = Counter(path for other in history[1 : LOOK_BACK + 1] for path in other.paths if path in code)
    texts = {
        DIGEST: mind.markdown,
        FREQUENT: _fitting((path for path, _ in sorted(often.items(), key=lambda item: (-item[1], item[0]))), budget),
        RANDOM: _fitting(random.Random(f"{seed}:{commit.sha}").sample(order, len(order)), budget),  # noqa: S311 - no secret
    }
    for name, command in peers.items():
        texts[name] = _fitting(_printed(command, there, budget), budget)
    hits = {name: _hit(text, code, changed, digest if name == DIGEST else None) for name, text in texts.items()}
    return Sample(commit.sha, changed, hits)


def _own_code(there: Path, listed: Iterable[str]) -> frozenset[str]:
    """Files that a session would work on: the project's own code."""
    from carbon_mind.repo.languages import language_of

    paths = [RepoPath(path) for path in listed]
    try:
        attributes = parse_attributes((there / ".gitattributes").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        attributes = Attributes()
    kinds = kinds_of(paths, attributes)
    return frozenset(path for path in paths if kinds[path] == "source" and language_of(path) is not None)


def _fitting(lines: Iterable[str], budget: int) -> str:
    """As many of the first lines as the tokens allow."""
    kept: list[str] = []
    used = 0
    for line in lines:
        used += token_bound(line + "\n")
        if used > budget:
            break
        kept.append(line)
    return "\n".join(kept)


def _printed(command: str, there: Path, budget: int) -> list[str]:
    try:
        done = subprocess.run(
            shlex.split(command),
            cwd=there,
            env={**os.environ, "CARBON_TOKENS": str(budget)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PEER_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as impossible:
        raise UsageProblem(
            f"the command {command!r} cannot be run: {impossible}", hint="give its full path"
        ) from impossible
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageProblem(f"the command {command!r} failed: {told[-1] if told else done.returncode}")
    return done.stdout.decode("utf-8", "replace").splitlines()


def named(text: str, paths: frozenset[str]) -> set[str]:
    """The paths that a text names, as whole words; a line number behind one does not matter."""
    words = {re.sub(r"(?::\d+)+:?$|[:.]$", "", word) for word in _WORD.findall(text)}
    return {path for path in paths if path in words}


def _hit(text: str, code: frozenset[str], changed: Sequence[str], digest: Digest | None) -> Hit:
    names = named(text, code)
    if digest is not None:  # it may write a path below a heading, without its folder
        names |= {file.path for file in digest.critical_files if file.path in code}
    components = [module.path.rstrip("/") for module in digest.architecture] if digest is not None else []
    if digest is None:  # a text without a map of components names the folders of its files
        components = sorted({path.rpartition("/")[0] for path in names})
    within = sum(path in names or _inside(path, components) for path in changed)
    return Hit(token_bound(text), len(names), sum(path in names for path in changed), within)


def _inside(path: str, components: Iterable[str]) -> bool:
    folder = path.rpartition("/")[0]
    return any(not folder if part in ("", ".") else path.startswith(part + "/") for part in components)


# --- figures -----------------------------------------------------------------------------------------------------


def _line(name: str, samples: Sequence[Sample], seed: int) -> Line:
    covered = [sample.hits[name].covered / len(sample.changed) for sample in samples]
    component = [sample.hits[name].component / len(sample.changed) for sample in samples]
    ours = [sample.hits[DIGEST].covered / len(sample.changed) for sample in samples]
    ahead = [mine - theirs for mine, theirs in zip(ours, covered, strict=True)]
    return Line(
        name,
        statistics.mean(sample.hits[name].tokens for sample in samples),
        statistics.mean(sample.hits[name].names for sample in samples),
        bootstrapped(covered, seed),
        bootstrapped(component, seed),
        None if name == DIGEST else bootstrapped(ahead, seed),
    )


def bootstrapped(values: Sequence[float], seed: int) -> Share:
    """The mean, and the 2.5 and 97.5 percentiles of the means of resamples (Efron 1979), the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    means = sorted(statistics.fmean(generator.choices(values, k=len(values))) for _ in range(_RESAMPLED))
    return Share(statistics.fmean(values), means[int(0.025 * _RESAMPLED)], means[int(0.975 * _RESAMPLED) - 1])
