"""The commands as a person runs them: real processes, real repositories, exit codes, stdout for data and stderr for talk."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests import tiny_models
from tests.conftest import Repository

CARBON = [sys.executable, "-m", "carbon_mind"]


def carbon(*args: str | Path, cwd: Path | None = None, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    done = subprocess.run(  # type: ignore[call-overload]
        [*CARBON, *map(str, args)], cwd=cwd, capture_output=True, text=True, check=False, encoding="utf-8", **options
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done  # type: ignore[no-any-return]


def without_privileges() -> None:
    """In the child, before the command: root may not ignore file modes (an ordinary user cannot anyway)."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def snapshot_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- mind ------------------------------------------------------------------------------------------------------


def test_a_second_run_parses_nothing_and_says_current(sample: Repository) -> None:
    first = carbon("mind", cwd=sample.path)
    assert first.returncode == 0
    assert first.stdout.startswith("mind: built (7 files, 5 parsed")
    assert first.stdout.endswith("; the prefix is new\n")
    files = snapshot_of(sample.path / ".carbon" / "mind")
    second = carbon("mind", cwd=sample.path)
    assert second.stdout.startswith("mind: current (7 files, 0 parsed")
    assert second.stdout.endswith("; the prefix is the same\n")
    assert snapshot_of(sample.path / ".carbon" / "mind") == files
    assert sample.git("status", "--porcelain") == "", "the mind hides itself from git"


def test_touch_costs_nothing_and_an_edit_parses_one_file(sample: Repository) -> None:
    carbon("mind", cwd=sample.path)
    for path in sample.path.rglob("*.py"):
        os.utime(path, (10**9, 10**9))
    assert "current" in carbon("mind", cwd=sample.path).stdout
    sample.write("sample/core.py", "def other() -> int:\n    return 1\n")
    edited = carbon("mind", cwd=sample.path).stdout
    assert edited.startswith("mind: built (1 file changed, 1 parsed")
    assert edited.endswith("; the prefix changed\n")
    sample.git("checkout", "--", "sample/core.py")
    assert carbon("mind", cwd=sample.path).stdout.startswith("mind: built (1 file changed, 0 parsed"), (
        "content that was seen before"
    )


def test_print_and_json_are_the_same_digest(sample: Repository) -> None:
    markdown = carbon("mind", "--print", cwd=sample.path)
    assert markdown.stdout.startswith("# sample: repository digest\n")
    assert "`pytest`" in markdown.stdout
    assert "sample/core.py (imported by" in markdown.stdout
    document = json.loads(carbon("mind", "--json", cwd=sample.path).stdout)
    keys = {
        "architecture",
        "commands",
        "entry_points",
        "critical_files",
        "constraints",
        "known_bugs",
        "patterns",
        "coverage",
    }
    assert keys <= document["digest"].keys()
    assert document["digest"]["known_bugs"][0]["excerpt"] == "the name is ignored"
    folder = sample.path / ".carbon" / "mind"
    assert (folder / "mind.md").read_text() == markdown.stdout
    assert json.loads((folder / "mind.json").read_text()) == document


def test_the_same_bytes_whatever_the_seed_path_locale_time_zone_and_ranker(sample: Repository, tmp_path: Path) -> None:
    clone = tmp_path / "another name"
    sample.git("clone", "--quiet", "--depth", "1", f"file://{sample.path}", str(clone))
    outputs = set()
    for where, env in (
        (sample.path, {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"}),
        (clone, {"PYTHONHASHSEED": "77", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kolkata", "CARBON_MIND_PURE": "1"}),
    ):
        outputs.add(carbon("mind", "--json", "--full", cwd=where, env={**os.environ, **env}).stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize("budget", [100, 150, 300])
def test_the_budget_is_hard(sample: Repository, budget: int) -> None:
    from carbon_mind.digest.bound import token_bound

    printed = carbon("mind", "--print", "--budget", str(budget), cwd=sample.path).stdout
    assert token_bound(printed) <= budget
    assert json.loads(carbon("mind", "--json", "--budget", str(budget), cwd=sample.path).stdout)["tokens"] <= budget


def test_write_agents_changes_the_managed_block_only_and_stays_current(sample: Repository) -> None:
    before = "# Rules\r\nbe kind \xe9\r\n".encode("latin-1")
    sample.write("AGENTS.md", before)
    sample.commit()
    carbon("mind", cwd=sample.path)
    assert "AGENTS.md: updated" in carbon("mind", "--write-agents", cwd=sample.path).stderr
    written = (sample.path / "AGENTS.md").read_bytes()
    assert written.startswith(before)
    assert b"repository digest" in written
    again = carbon("mind", "--write-agents", cwd=sample.path)
    assert "AGENTS.md: unchanged" in again.stderr
    assert again.stdout.startswith("mind: current"), "the digest's own copy does not make it stale"


def test_a_script_without_a_suffix_is_known_by_its_first_line(sample: Repository) -> None:
    sample.write("bin/tool", "#!/usr/bin/env python3\nfrom sample.core import build_engine\n\nbuild_engine('z')\n")
    sample.write("bin/data", "plain text\n")
    assert carbon("mind", cwd=sample.path).stdout.startswith("mind: built (9 files, 6 parsed")


def test_a_plain_directory_and_a_subdirectory_work(sample: Repository, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "tool.py").write_text("def go() -> None: ...\n")
    done = carbon("mind", plain)
    assert done.returncode == 0
    assert "note: not a git repository" in done.stderr
    assert carbon("mind", cwd=sample.path / "sample").stdout.startswith("mind: built (7 files")


# --- bad input: one clear error each, the stated exit code, nothing lost -----------------------------------------


def expect(done: subprocess.CompletedProcess[str], code: int, message: str, hint: str = "") -> None:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert message in errors[0]
    hints = [line for line in done.stderr.splitlines() if line.startswith("hint: ")]
    assert len(hints) == 1, done.stderr
    assert hint in hints[0]


def test_a_missing_path_an_empty_directory_a_file_and_a_bare_repository(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "bare.git")], check=True)
    expect(carbon("mind", tmp_path / "nowhere"), 3, "does not exist", "path of a repository")
    expect(carbon("mind", tmp_path / "file"), 3, "is not a directory")
    expect(carbon("mind", tmp_path / "empty"), 3, "no files", "add files")
    expect(carbon("mind", tmp_path / "bare.git"), 3, "bare git repository", "clone or a worktree")


def test_without_git_there_is_still_a_digest_and_a_clear_note(sample: Repository, tmp_path: Path) -> None:
    done = carbon("mind", "--print", cwd=sample.path, env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0
    assert "note: git is not installed" in done.stderr
    assert done.stdout.startswith("# sample: repository digest")


def test_an_unreadable_file_is_skipped_by_name(sample: Repository) -> None:
    sample.write("sample/extra.py", "def extra() -> None: ...\n").chmod(0)
    done = carbon("mind", "--json", cwd=sample.path, preexec_fn=without_privileges)
    assert done.returncode == 0
    assert "sample/extra.py cannot be read" in done.stderr
    assert ["unreadable", 1] in json.loads(done.stdout)["digest"]["coverage"]["skipped"]


def test_a_read_only_checkout_keeps_its_mind_in_the_users_cache(sample: Repository, private_home: Path) -> None:
    sample.path.chmod(0o555)
    try:
        done = carbon("mind", cwd=sample.path, preexec_fn=without_privileges)
        assert done.returncode == 0
        assert "the checkout cannot be written" in done.stderr
        assert not (sample.path / ".carbon").exists()
        assert len(list((private_home / "cache" / "minds").glob("*/mind/mind.json"))) == 1
        assert carbon("mind", cwd=sample.path, preexec_fn=without_privileges).stdout.startswith("mind: current")
    finally:
        sample.path.chmod(0o755)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mind", "--budget", "50"], "budget"),
        (["mind", "--budget", "5000"], "budget"),
        (["mind", "--print", "--json"], "exclude each other"),
        (["ask", "  "], "question is empty"),
    ],
)
def test_wrong_values_are_usage_errors(sample: Repository, args: Sequence[str], message: str) -> None:
    expect(carbon(*args, cwd=sample.path), 2, message)


def test_settings_are_refused_by_source_and_key(sample: Repository) -> None:
    sample.write("carbon.toml", "cache_dir = '/tmp/elsewhere'\n")
    expect(carbon("mind", cwd=sample.path), 2, "carbon.toml may not set cache_dir", "budget, enabled, model")
    sample.write("carbon.toml", "model = './evil.gguf'\n")
    expect(carbon("mind", cwd=sample.path), 2, "names a model file")
    sample.write("carbon.toml", "budget = \n")
    expect(carbon("mind", cwd=sample.path), 2, "carbon.toml cannot be read")
    sample.write("carbon.toml", "budget = 200\n")
    assert json.loads(carbon("settings", "--json", cwd=sample.path).stdout)["budget"] == 200
    expect(carbon("mind", cwd=sample.path, env={**os.environ, "CARBON_BUDGET": "many"}), 2, "CARBON_")


def test_models_that_are_missing_or_damaged(sample: Repository, tmp_path: Path) -> None:
    expect(carbon("warm", cwd=sample.path), 4, "No model", "carbon models pull smollm2-135m")
    expect(
        carbon("warm", "--model", "smollm2-135m", cwd=sample.path), 4, "smollm2-135m", "carbon models pull smollm2-135m"
    )
    expect(carbon("warm", "--model", "nonsense", cwd=sample.path), 4, "nonsense", "smollm2-135m")
    expect(carbon("warm", "--model", tmp_path / "no.gguf", cwd=sample.path), 4, "no.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(60))
    expect(carbon("warm", "--model", broken, cwd=sample.path), 4, "broken.gguf")
    expect(carbon("models", "pull", "nonsense"), 4, "nonsense", "smollm2-135m")
    assert not (sample.path / ".carbon").exists(), "nothing was begun"


def test_a_truncated_model_is_named_before_the_engine_sees_it(
    sample: Repository, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    data = tiny("dense").read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(data[: len(data) // 2])
    expect(carbon("warm", "--model", cut, cwd=sample.path), 4, "cut.gguf")


def test_without_an_engine_warm_says_what_to_install(
    sample: Repository, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked" / "llama_cpp"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not installed')\n")
    env = {**os.environ, "PYTHONPATH": str(blocked.parent)}
    expect(
        carbon("warm", "--model", tiny("dense"), cwd=sample.path, env=env),
        5,
        "no engine",
        "pip install 'carbon-mind[llama]'",
    )
    assert carbon("mind", cwd=sample.path, env=env).returncode == 0


# --- warm and ask, with the real llama.cpp and a tiny model ------------------------------------------------------


def test_warm_evaluates_once_and_then_nothing(sample: Repository, tiny: Callable[[str], Path]) -> None:
    model = tiny("dense")
    first = json.loads(carbon("warm", "--json", "--model", model, cwd=sample.path).stdout)
    assert first["state"] == "prefilled"
    assert first["evaluated"] == first["tokens"] > 100
    assert [layer["name"] for layer in first["layers"]] == ["base", "digest"]
    proved = json.loads(carbon("warm", "--prove", "--json", "--model", model, cwd=sample.path).stdout)
    assert (proved["state"], proved["evaluated"], proved["bytes_written"]) == ("restored", 0, 0)
    assert proved["restored"] == first["tokens"]
    sample.write("Makefile", "test:\n\tpytest\n")
    third = carbon("warm", "--model", model, cwd=sample.path)
    assert third.stdout.startswith("warm: restored ")
    assert f"of {first['tokens']:,}" not in third.stdout, "another digest, another length"
    assert "differs from token" in third.stderr
    fourth = json.loads(carbon("warm", "--fresh", "--json", "--model", model, cwd=sample.path).stdout)
    assert fourth["state"] == "prefilled"


def test_warm_with_nothing_changed_loads_no_model_and_writes_nothing(
    sample: Repository, tiny: Callable[[str], Path], private_home: Path
) -> None:
    model = tiny("dense")
    first = json.loads(carbon("warm", "--json", "--model", model, cwd=sample.path).stdout)
    before = {path: path.stat().st_mtime_ns for path in (private_home / "cache").rglob("*.kv")}
    code = (
        "import sys; from carbon_mind.cli import main; sys.argv = ['carbon', 'warm', '--json', '--model', sys.argv[1]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'llama_cpp', 'jinja2', 'tree_sitter'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)], cwd=sample.path, capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    assert (result["state"], result["tokens"]) == ("ready", first["tokens"])
    assert (result["evaluated"], result["restored"], result["bytes_read"], result["bytes_written"]) == (0, 0, 0, 0)
    assert done.stderr.strip().splitlines()[-1] == "[]", "the engine was not even imported"
    assert {path: path.stat().st_mtime_ns for path in (private_home / "cache").rglob("*.kv")} == before
    told = carbon("warm", "--model", model, cwd=sample.path)
    assert told.stdout.startswith(f"warm: ready, {first['tokens']:,} tokens are stored in 2 layers")
    other = json.loads(carbon("warm", "--json", "--ctx", "2048", "--model", model, cwd=sample.path).stdout)
    assert other["state"] == "prefilled"
    assert (
        json.loads(carbon("warm", "--json", "--threads", "1", "--model", model, cwd=sample.path).stdout)["state"]
        == "ready"
    )


def test_a_model_swapped_at_the_same_path_size_and_time_is_found(
    sample: Repository, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(tiny("dense").read_bytes())
    info = model.stat()
    carbon("warm", "--model", model, cwd=sample.path)
    assert carbon("warm", "--model", model, cwd=sample.path).stdout.startswith("warm: ready")
    other = tiny_models.dense(tmp_path / "other.gguf", seed=9).read_bytes()
    assert len(other) == info.st_size
    with model.open("r+b") as file:  # the same inode
        file.write(other)
    os.utime(model, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert (model.stat().st_size, model.stat().st_ino) == (info.st_size, info.st_ino)
    done = carbon("warm", "--model", model, cwd=sample.path)
    assert done.stdout.startswith("warm: prefilled")
    assert "model (" in done.stderr


def test_ask_streams_the_answer_and_counts_on_stderr(sample: Repository, tiny: Callable[[str], Path]) -> None:
    model = tiny("hybrid")
    args = ("ask", "Which command runs the tests?", "--model", str(model), "--max-tokens", "12")
    cold = carbon(*args, cwd=sample.path)
    warm = carbon(*args, cwd=sample.path)
    assert cold.returncode == warm.returncode == 0
    assert cold.stdout == warm.stdout != "", "the restored state gives the same answer"
    assert "prefix: prefilled" in cold.stderr
    assert "prefix: restored" in warm.stderr
    counts = json.loads(carbon(*args, "--json", cwd=sample.path).stdout)
    assert counts["reused"] == counts["prefix"]["restored"] == counts["prefix"]["tokens"]
    assert 0 < counts["evaluated"] < 200
    assert counts["ttft_s"] > 0


def test_a_prefix_longer_than_the_context_is_one_clear_error(sample: Repository, tiny: Callable[[str], Path]) -> None:
    expect(carbon("warm", "--ctx", "128", "--model", tiny("dense"), cwd=sample.path), 5, "context of", "--ctx")


def test_a_question_longer_than_the_context_is_one_clear_error(sample: Repository, tiny: Callable[[str], Path]) -> None:
    done = carbon("ask", "why " * 5000, "--model", tiny("dense"), cwd=sample.path)
    expect(done, 5, "do not fit", "--ctx")


def test_doctor_reports_the_engine_and_never_fails_for_what_is_missing(tiny: Callable[[str], Path]) -> None:
    bare = carbon("doctor")
    assert bare.returncode == 0
    assert "carbon models pull" in bare.stdout
    report = json.loads(carbon("doctor", "--json", "--model", tiny("dense")).stdout)
    assert report["verdict"] in ("full", "without-extra-buffers")
    assert report["problems"] == []
    assert report["engine"].startswith("llama-cpp-python")
    assert report["cache_bytes"] > 0


@pytest.mark.model
def test_the_whole_way_with_the_real_model(sample: Repository, smollm2_path: Path) -> None:
    for state in ("prefilled", "restored"):
        done = carbon(
            "ask",
            "Which command runs the tests?",
            "--model",
            smollm2_path,
            "--json",
            "--max-tokens",
            "24",
            cwd=sample.path,
        )
        assert done.returncode == 0
        found = json.loads(done.stdout)
        assert found["prefix"]["state"] == state
    assert found["prefix"]["evaluated"] == 0
    assert found["evaluated"] < 64


# --- the command line itself -------------------------------------------------------------------------------------


def test_version_names_the_ranker_in_use() -> None:
    pure = carbon("--version", env={**os.environ, "CARBON_MIND_PURE": "1"})
    assert "ranker: pure" in pure.stdout
    if os.environ.get("CARBON_MIND_REQUIRE_NATIVE") == "1":
        assert "ranker: native" in carbon("--version").stdout


@pytest.mark.parametrize(
    "command",
    [
        *("mind", "mind build", "mind status", "mind show", "mind lookup", "mind list", "why"),
        *("mcp", "mcp serve", "mcp install", "mcp remove", "trust"),
        *("store list", "store verify", "store gc", "store purge"),
        *("watch", "hook install", "hook remove", "hook status", "hook run"),
        *("warm", "ask", "doctor", "settings", "models list", "models pull", "models path"),
    ],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = carbon(*command.split(), "--help")
    assert done.returncode == 0
    if not command.startswith("settings"):
        assert "Example: carbon " in done.stdout


def test_mind_starts_without_what_it_does_not_need(sample: Repository) -> None:
    code = (
        "import sys; from carbon_mind.cli import main; sys.argv = ['carbon', 'mind']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'llama_cpp', 'httpx', 'jinja2', 'multiprocessing', 'rich.progress', 'typer', 'pydantic', 'sqlite3', "
        "'tree_sitter', 'watchfiles'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    carbon("mind", cwd=sample.path)
    done = subprocess.run([sys.executable, "-c", code], cwd=sample.path, capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_interrupting_leaves_what_was_there(sample: Repository) -> None:
    carbon("mind", cwd=sample.path)
    before = snapshot_of(sample.path / ".carbon" / "mind")
    code = (
        "import carbon_mind.pipeline as p\nfrom carbon_mind.cli import main\nimport sys\n"
        "def stop(*a, **k): raise KeyboardInterrupt\np._evidence = stop\nsys.argv = ['carbon', 'mind', '--full']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=sample.path, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert snapshot_of(sample.path / ".carbon" / "mind") == before
