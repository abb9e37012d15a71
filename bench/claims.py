"""Is the digest true? Each claim of a digest is checked again by plain text search, without the code that made it.

    python bench/claims.py REPOSITORY ... [--json FILE]

hard claims: a source that does not exist, a line that does not hold what it is said to hold, a count that `grep -w` cannot reach.
soft claims: a source line that shares no word with what it is the evidence for; a person has to look (`[build-system]` is evidence for
`uv build`). The counts in a digest are of references, so the plain count of a word, comments included, must be at least as high.

Exit code 1 when a hard claim is false.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from carbon_mind import pipeline, settings
from carbon_mind.cli import console

NEAR = 2  # lines around a source line in which its words may stand
_WORD = re.compile(r"[A-Za-z_][\w.-]{2,}")
_SKIPS = re.compile(
    r"skip|ignore|disabled|pending|xit|xdescribe|xtest|incomplete|fails|failing|expectedFailure|xfail", re.I
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and what became of it."""

    kind: str
    text: str
    holds: bool
    hard: bool
    why: str = ""


class Repository:
    """The files of a repository as text."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @functools.cache  # noqa: B019 - lives as long as the script
    def lines(self, path: str) -> tuple[str, ...] | None:
        """The file's lines; None when there is no such file."""
        file = self.root / path
        return tuple(file.read_text(encoding="utf-8", errors="replace").split("\n")) if file.is_file() else None

    def count(self, word: str) -> int:
        """Lines with the word, times in each, over the tracked and untracked files: what `grep -w` finds."""
        command = ["git", "-C", str(self.root), "grep", "--untracked", "-I", "-o", "-w", "-h", "-F", "-e", word]
        return len(subprocess.run(command, capture_output=True, check=False).stdout.splitlines())


def _place(source: str) -> tuple[str, int]:
    path, colon, line = source.rpartition(":")
    return (path, int(line)) if colon and line.isdecimal() else (source, 0)


def _evidence(repo: Repository, kind: str, text: str, source: str) -> Iterator[Claim]:
    """The source of a command, a constraint or an entry point."""
    path, line = _place(source)
    lines = repo.lines(path)
    shown = f"{text} ({source})"
    exists = lines is not None and line <= len(lines)
    yield Claim(kind, shown, exists, True, "" if exists else "no such file or line")
    if lines is not None and exists:
        near = lines[max(line - 1 - NEAR, 0) : line + NEAR] if line else lines
        found = {word.lower() for row in (*near, path) for word in _WORD.findall(row)}
        shared = any(word.lower() in part for word in _WORD.findall(text) for part in found)
        yield Claim(kind + ", words", shown, shared, False, "" if shared else (near[0] if near else "").strip()[:80])


def _entry(repo: Repository, entry: dict[str, str]) -> Iterator[Claim]:
    target = entry["target"]
    path, colon, function = target.partition(":")
    module = path.replace(".", "/")
    shapes = [target, *(f"{base}{module}{end}" for base in ("", "src/", "lib/") for end in (".py", "/__init__.py"))]
    files = [shape for shape in shapes if repo.lines(shape) is not None or (repo.root / shape).is_dir()]
    yield Claim("entry point", f"{entry['name']}: {target}", bool(files), True, "" if files else "no such target")
    if files and colon and function:
        text = "\n".join(repo.lines(files[0]) or ())
        named = re.search(rf"\b{re.escape(function.split('.')[0])}\b", text) is not None
        yield Claim("entry point, function", target, named, True, "" if named else "not in the file")


def _critical(repo: Repository, file: dict[str, Any]) -> Iterator[Claim]:
    path = file["path"]
    lines = repo.lines(path)
    yield Claim("critical file", path, lines is not None, True)
    for reason in file["reason"].split("; "):
        if found := re.fullmatch(r"(.+) x(\d+)", reason):
            count = repo.count(found[1])
            yield Claim("symbol count", f"{path}: {reason}", count >= int(found[2]), True, f"grep -w counts {count}")
    for signature in file["signatures"]:
        number, _, text = signature.partition(": ")
        row = "\n".join((lines or ())[int(number) - 1 : int(number) + 1])
        words = [word for word in re.findall(r"\w+", text) if word in row]
        yield Claim("signature", f"{path}:{signature}", len(words) >= 1, True, row[:60])


def check(root: Path, digest: dict[str, Any]) -> list[Claim]:
    """Every claim of the digest of the repository at `root`."""
    repo = Repository(root)
    claims: list[Claim] = []
    for command in digest["commands"]:
        claims += _evidence(repo, "command", command["command"], command["source"])
    for constraint in digest["constraints"]:
        claims += _evidence(repo, "constraint", constraint["text"], constraint["source"])
    for entry in digest["entry_points"]:
        claims += _evidence(repo, "entry point", f"{entry['name']} {entry['target']}", entry["source"])
        claims += _entry(repo, entry)
    for module in digest["architecture"]:
        for place in (module["path"], *module["depends_on"]):
            claims.append(Claim("component", place, (root / place).is_dir(), True))
    for file in digest["critical_files"]:
        claims += _critical(repo, file)
    for bug in digest["known_bugs"]:
        path, line = _place(bug["source"])
        row = ((repo.lines(path) or ()) + ("",) * line)[line - 1]
        named = bug["tag"] in row if bug["tag"] not in ("SKIP", "XFAIL") else _SKIPS.search(row) is not None
        claims.append(Claim("known bug", f"{bug['source']} {bug['tag']}", named, True, row.strip()[:60]))
    return claims


def main() -> int:
    """Check each repository; print the counts and every claim that does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPOSITORY")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every claim")
    arguments = parser.parse_args()
    everything: dict[str, list[dict[str, Any]]] = {}
    rows = []
    false = 0
    for where in arguments.repositories:
        mind = pipeline.build(where, settings.load(None, {}), console.Talk())
        claims = check(mind.root, json.loads(mind.json)["digest"])
        hard = [claim for claim in claims if claim.hard]
        soft = [claim for claim in claims if not claim.hard]
        broken = [claim for claim in hard if not claim.holds]
        false += len(broken)
        rows.append(
            (where.name, str(len(hard)), str(len(broken)), str(len(soft)), str(sum(not claim.holds for claim in soft)))
        )
        for claim in claims:
            if not claim.holds:
                console.step(
                    f"{where.name}: {'FALSE' if claim.hard else 'look'}: {claim.kind}: {claim.text} [{claim.why}]"
                )
        everything[where.name] = [asdict(claim) for claim in claims]
    console.data(console.table(("repository", "hard claims", "false", "soft claims", "to look at"), rows) + "\n")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
