"""Tries a wheel as a user gets it: its name, its content, and the command in a fresh environment on a fresh repository.

Usage: python tests/wheel_smoke.py dist/carbon_mind-*.whl [--constraint constraints.txt]

Standard library only. Needs git, and whatever index pip is set up for.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

WANTED = (
    r"carbon_mind/py\.typed",
    r"carbon_mind/_native\.pyi",
    r"carbon_mind/_native\.(abi3\.so|pyd)",
    r"carbon_mind/models/registry\.toml",
    r"carbon_mind/repo/queries/python\.scm",
    r"carbon_mind/repo/queries/c\.scm",
)
UNWANTED = r".*(\.gguf|\.cpp|\.h|__pycache__.*|\.pyc)|(tests|bench|native|models)/.*"


def check(good: bool, problem: str) -> None:
    if not good:
        sys.exit(f"wheel smoke test: {problem}")


def check_content(wheel: Path) -> None:
    check(re.search(r"-cp311-abi3-[^-]+\.whl$", wheel.name) is not None, f"{wheel.name} is not a cp311-abi3 wheel")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for pattern in WANTED:
        check(any(re.fullmatch(pattern, name) for name in names), f"{pattern} is missing in {wheel.name}")
    for name in names:
        check(re.fullmatch(UNWANTED, name) is None, f"{name} does not belong in {wheel.name}")


def run(*command: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    line = " ".join(str(part) for part in command)
    check(done.returncode == 0, f"`{line}` exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """The caller's, without anything that could let this checkout or the user's own settings leak in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARBON_", "GIT_"))}
    env |= {"XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config"), "NO_COLOR": "1"}
    return env | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def make_repository(root: Path, env: dict[str, str]) -> None:
    root.mkdir()
    (root / "greeting.py").write_text("def greet(name: str) -> str:\n    return f'Hello, {name}'\n", encoding="utf-8")
    (root / "main.py").write_text("from greeting import greet\n\nprint(greet('world'))\n", encoding="utf-8")
    run("git", "init", "--quiet", cwd=root, env=env)
    run("git", "add", ".", cwd=root, env=env)
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    run("git", *author, "commit", "--quiet", "--message", "first", cwd=root, env=env)


def main() -> None:
    parser = argparse.ArgumentParser(description="Try a wheel in a fresh environment.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--constraint", type=Path)
    options = parser.parse_args()
    wheel = options.wheel.resolve()
    constraint = ("--constraint", options.constraint.resolve()) if options.constraint else ()
    check_content(wheel)

    with tempfile.TemporaryDirectory(prefix="carbon-wheel-") as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        commands = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python, carbon = commands / "python", commands / "carbon"
        # pip sees the caller's environment (it may say where the index is); the rest does not need it.
        run(python, "-m", "pip", "install", "--quiet", *constraint, wheel, cwd=home, env=dict(os.environ))
        env = environment(home)
        repository = home / "repository"
        make_repository(repository, env)

        run(python, "-c", "import carbon_mind._native", cwd=repository, env=env)
        version = run(carbon, "--version", cwd=repository, env=env)
        check("native" in version, f"`carbon --version` does not name the native ranker: {version!r}")
        mind = run(carbon, "mind", "--print", cwd=repository, env=env)
        check(mind.lstrip().startswith("#") and "greeting.py" in mind, f"`carbon mind --print` is no digest: {mind!r}")
    print(f"wheel smoke test: {wheel.name} is good")


if __name__ == "__main__":
    main()
