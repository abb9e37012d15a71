"""Case 8: whatever was done to a working tree, the mind that is brought up to date is the mind that is made from nothing.

A state machine does to a real git repository what people do, in any order that hypothesis finds: edits, commits, branches, stashes,
merges with conflicts, nested repositories, other times and modes. After each step the incremental mind is compared with a cold one of
a copy at another path, byte for byte, and the files that were parsed are counted against those whose content is new.

`CARBON_TEST_THOROUGH=<n>` multiplies the number of runs (`CARBON_TEST_THOROUGH=20` takes some minutes).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from carbon_mind.digest.render import from_json
from carbon_mind.pipeline import Mind, Silent, build
from carbon_mind.repo.classify import kinds_of, parse_attributes
from carbon_mind.repo.languages import language_of
from carbon_mind.repo.scan import scan
from carbon_mind.settings import Settings
from tests.conftest import SAMPLE, Repository

RUNS = 40 * max(int(os.environ.get("CARBON_TEST_THOROUGH") or 1), 1)

NAMES = [
    "sample/core.py",
    "sample/cli.py",
    "sample/extra.py",
    "lib/a.c",
    "lib/a.h",
    "web/x.ts",
    "go/main.go",
    "run.sh",
    "tool",
    "Makefile",
    "package.json",
    "tests/test_x.py",
    "vendor/v.py",
    "sub/deep/er.rs",
    "schön.py",
    ".gitignore",
    "sub/.gitignore",
    ".gitattributes",
    "AGENTS.md",
    ".env",
    "README.md",
    "carbon.txt",
    "tox.ini",
]

# Short, and so few that the same content comes back under other names: that is what a cache by content must get right.
TEXTS = (
    "",
    "def one(a: int) -> int:\n    return a\n",
    "def two(a: int) -> int:\n    # FIXME: twice\n    return one(a)\n",
    "from sample.core import one, Engine\n\n\nclass Three(Engine): ...\n\n\none(3)\n",
    "def one(a: int) -> int:\r\n    return a\r\n",
    "int four(int a);\nint five(void) { return four(1); }\n",
    "#!/bin/sh\nsix() { seven; }\n",
    "export function eight(a = 1) { return nine(a); }\n",
    "package main\n\nfunc main() { one() }\n",
    "test:\n\tpytest -q\n\nlint:\n\truff check .\n",
    '{"name": "x", "scripts": {"test": "jest", "build": "tsc"}}\n',
    "*.log\nextra.py\nlib/\n",
    "*.py linguist-generated\n",
    "*.py text eol=crlf\nlib/** linguist-vendored\n",
    "<!-- carbon-mind:begin -->\nx\n<!-- carbon-mind:end -->\n",
    "\x00\x01 no text",
)

names = st.sampled_from(NAMES)
texts = st.sampled_from(TEXTS)


class Working(RuleBasedStateMachine):
    """One repository, one cache, and what was ever in it."""

    @initialize()
    def start(self) -> None:
        """The sample project, committed, with its mind."""
        self.folder = Path(tempfile.mkdtemp(prefix="carbon-incremental-"))
        self.repository = Repository(self.folder / "repository")
        for path, text in SAMPLE.items():
            self.repository.write(path, text)
        self.repository.commit("first")
        self.seen: set[tuple[str, str]] = set()
        self.copies = 0
        self.branches = 1
        self.check()

    def teardown(self) -> None:
        """Nothing is left."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    # --- the promise ---

    def mind(self, path: Path, cache: str) -> Mind:
        return build(path, Settings(cache_dir=str(self.folder / cache), budget=2000), Silent())

    def contents(self) -> set[tuple[str, str]]:
        """(row of the language table, hash of the bytes) of every file that may be parsed."""
        found = set()
        rules = self.place(".gitattributes")
        attributes = parse_attributes(rules.read_text() if rules.is_file() and not rules.is_symlink() else "")
        files = scan(self.repository.path).files
        kinds = kinds_of([file.path for file in files], attributes)
        for file in files:
            data = self.place(file.path).read_bytes()
            language = language_of(file.path, data[:200])
            if language is not None and kinds[file.path] not in ("vendored", "generated"):
                row = f"{language.name} {language.unsettled} {kinds[file.path] == 'source'}"
                found.add((row, hashlib.sha256(data).hexdigest()))
                if b"\r\n" in data:  # git's id of a clean file may be that of other line ends
                    found.add((row, f"as committed {hashlib.sha256(data).hexdigest()}"))
        return found

    def check(self) -> None:
        """Incremental equals cold, and only what is new was parsed."""
        now = self.contents()
        mind = self.mind(self.repository.path, "cache")
        assert mind.parsed <= len(now - self.seen), f"{mind.parsed} parsed, {len(now - self.seen)} new"
        self.seen |= now
        again = self.mind(self.repository.path, "cache")
        assert not again.built
        self.copies += 1
        copy = self.folder / f"copy {self.copies}"
        shutil.copytree(self.repository.path, copy, symlinks=True, ignore=shutil.ignore_patterns(".carbon"))
        cold = self.mind(copy, f"cache {self.copies}")
        shutil.rmtree(copy)
        assert mind.markdown == again.markdown == cold.markdown
        assert mind.json == again.json == cold.json
        assert from_json(mind.json).digest.coverage.files == mind.files == cold.files

    # --- what people do ---

    def git(self, *args: str) -> bool:
        """Whether git did it; a refusal (nothing to commit, a dirty tree) leaves a state like any other."""
        done = subprocess.run(["git", *args], cwd=self.repository.path, capture_output=True, check=False)
        return done.returncode == 0

    def place(self, name: str) -> Path:
        return self.repository.path / name

    @rule(name=names, text=texts)
    def write(self, name: str, text: str) -> None:
        """A new file, or other content for one that is there."""
        if self.place(name).is_dir():
            return
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            self.repository.write(name, text)
            self.check()

    @rule(name=names, text=texts)
    def write_with_the_old_time(self, name: str, text: str) -> None:
        """The clock of a file tells nothing."""
        if self.place(name).is_file():
            status = self.place(name).stat()
            self.repository.write(name, text)
            os.utime(self.place(name), ns=(status.st_atime_ns, status.st_mtime_ns))
            self.check()

    @rule(name=names)
    def swap_one_letter(self, name: str) -> None:
        """Another content of the same size at the same time."""
        if self.place(name).is_file() and b"one" in (data := self.place(name).read_bytes()):
            status = self.place(name).stat()
            self.place(name).write_bytes(data.replace(b"one", b"eno"))
            os.utime(self.place(name), ns=(status.st_atime_ns, status.st_mtime_ns))
            self.check()

    @rule(name=names)
    def delete(self, name: str) -> None:
        """A file is gone from the working tree, whatever the index says."""
        if self.place(name).is_file():
            self.place(name).unlink()
            self.check()

    @rule(when=st.sampled_from([0, 10**9, 4 * 10**9]))
    def touch_everything(self, when: int) -> None:
        """Times change and nothing else: nothing is built."""
        for path in self.repository.path.rglob("*"):
            if path.is_file() and not path.is_symlink() and ".git" not in path.parts and ".carbon" not in path.parts:
                os.utime(path, (when, when))
        assert not self.mind(self.repository.path, "cache").built

    @rule(name=names, mode=st.sampled_from([0o755, 0o644, 0o600]))
    def chmod(self, name: str, mode: int) -> None:
        """Permission bits are not content."""
        if self.place(name).is_file():
            self.place(name).chmod(mode)
            self.check()

    @rule(old=names, new=names, tracked=st.booleans())
    def rename(self, old: str, new: str, tracked: bool) -> None:
        """Content moves to another name, with or without git's knowledge."""
        if self.place(old).is_file() and not self.place(new).exists():
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                self.place(new).parent.mkdir(parents=True, exist_ok=True)
                if not (tracked and self.git("mv", old, new)):
                    self.place(old).rename(self.place(new))
                self.check()

    @rule(name=names)
    def replace_by_a_link(self, name: str) -> None:
        """What was a file is a link now."""
        if self.place(name).is_file():
            self.place(name).unlink()
            self.place(name).symlink_to("README.md")
            self.check()
            self.place(name).unlink()

    @rule(everything=st.booleans(), name=names)
    def commit(self, everything: bool, name: str) -> None:
        """All changes, or only those of one file while others stay uncommitted."""
        self.git("add", "--all" if everything else name)
        self.git("commit", "-q", "-m", "x")
        self.check()

    @rule(name=names)
    def stage(self, name: str) -> None:
        """Added, not committed; or untracked again and left where it is."""
        if not self.git("add", name):
            self.git("rm", "-q", "--cached", name)
        self.check()

    @rule(name=names)
    def untrack(self, name: str) -> None:
        """Taken out of the index; the file stays."""
        self.git("rm", "-q", "--cached", name)
        self.check()

    @rule()
    def branch(self) -> None:
        """A new branch from here."""
        if self.git("checkout", "-q", "-b", f"b{self.branches}"):
            self.branches += 1

    @precondition(lambda self: getattr(self, "branches", 1) > 1)
    @rule(number=st.integers(0, 5), force=st.booleans())
    def switch(self, number: int, force: bool) -> None:
        """Another branch; by force, local changes are lost."""
        target = "main" if number % self.branches == 0 else f"b{number % self.branches}"
        self.git("checkout", "-q", *(["-f"] if force else []), target)
        self.check()

    @precondition(lambda self: getattr(self, "branches", 1) > 1)
    @rule(number=st.integers(0, 5))
    def merge(self, number: int) -> None:
        """Mostly with conflicts, which stay in the index and in the files."""
        target = "main" if number % self.branches == 0 else f"b{number % self.branches}"
        self.git("merge", "-q", "--no-edit", target)
        self.check()

    @rule()
    def abort(self) -> None:
        """Out of a conflict."""
        if self.git("merge", "--abort"):
            self.check()

    @rule(untracked=st.booleans())
    def stash(self, untracked: bool) -> None:
        """Away, seen without, and back."""
        if self.git("stash", "push", "-q", *(["--include-untracked"] if untracked else [])):
            self.check()
            self.git("stash", "pop", "-q")
            self.check()

    @rule()
    def reset(self) -> None:
        """The index as it was, the files as they are."""
        self.git("reset", "-q")
        self.check()

    @rule(name=names)
    def restore(self, name: str) -> None:
        """A file as it was committed: content that was seen before."""
        if self.git("checkout", "-q", "HEAD", "--", name):
            self.check()

    @rule()
    def nest(self) -> None:
        """A repository inside: named, not entered."""
        place = self.place("nested")
        if not place.exists():
            Repository(place).write("inner.py", "def inner() -> None: ...\n")
            self.check()
        else:
            shutil.rmtree(place)
            self.check()


Working.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,  # the same runs each time: a failure belongs to a change, not to luck
    database=None,
    print_blob=False,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure takes many minutes; twelve steps can be read
    suppress_health_check=list(HealthCheck),
)
TestIncremental = Working.TestCase
