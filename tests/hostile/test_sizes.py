"""Case 7: what is too large, too deep or made by a machine degrades to its name; the rest keeps its symbols."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Repository
from tests.hostile.conftest import digest_of, distil, skipped

MINIFIED = "var a=function(b,c){return b+c};" * 42_000  # 1.3 MB on one line
SMALL_MINIFIED = "var a=function(b,c){return b+c};" * 4_000


def functions(count: int) -> str:
    return "".join(f"def generated_{n}(a: int, b: int = {n}) -> int:\n    return a + b\n\n\n" for n in range(count))


def test_each_degrades_alone(sample: Repository, tmp_path: Path) -> None:
    before = digest_of(distil(sample.path, tmp_path / "cache-before"))
    sample.write("web/app.min.js", MINIFIED)
    sample.write("web/bundle.js", SMALL_MINIFIED)  # says nothing of itself in its name
    sample.write("deep/brackets.py", "x = " + "(\n" * 20_000 + ")\n" * 20_000)
    sample.write("deep/blocks.c", "void f(void) {\n" + "{\n" * 20_000 + "}\n" * 20_000 + "}\n")
    sample.write("deep/chain.js", "x = a" + "\n.b()" * 20_000 + ";\n")
    sample.write("deep/else.c", "void g(void) {\n" + "if (a) b();\nelse " * 20_000 + "b();\n}\n")
    sample.write("deep/nested.json", "[" * 20_000 + "]" * 20_000)
    sample.write("deep/package.json", '{"name": ' + "[" * 20_000 + "]" * 20_000 + "}")
    sample.write("deep/pyproject.toml", "a = " + "[" * 20_000 + "]" * 20_000 + "\n")
    sample.write("deep/ci.yml", "[" * 20_000 + "]" * 20_000)
    sample.write(".github/workflows/deep.yml", "a: " + "{b: " * 20_000 + "}" * 20_000 + "\n")
    sample.write("many/functions.py", functions(30_000))  # over 1 MiB
    sample.write("many/fewer.py", functions(9_000))
    with (sample.path / "data.txt").open("wb") as file:
        os.truncate(file.fileno(), 480 << 20)  # sparse: takes no room and, unread, no time
    with (sample.path / "huge.py").open("wb") as file:
        os.truncate(file.fileno(), 480 << 20)
    mind = distil(sample.path, tmp_path / "cache")
    digest = digest_of(mind)
    # app.min.js, functions.py, data.txt and huge.py; brackets.py, blocks.c, chain.js and else.c; bundle.js.
    assert skipped(mind) == {"over 1 MiB": 4, "too deep": 4, "minified": 1}
    assert digest.commands == before.commands
    assert digest.entry_points == before.entry_points
    for critical in before.critical_files:
        assert critical in digest.critical_files, "the rest keeps its symbols"
    assert digest.coverage.files == before.coverage.files + 15


def test_thirty_thousand_functions_in_files_of_a_bearable_size(repository: Repository, tmp_path: Path) -> None:
    """All are found, the budget holds, and one of them that is used elsewhere is what the file is known for."""
    for part in range(4):
        repository.write(f"gen/part_{part}.py", functions(7_500).replace("generated_", f"made_{part}_"))
    repository.write("use.py", "from gen.part_2 import made_2_4711\n\n\ndef use() -> int:\n    return made_2_4711(1)\n")
    mind = distil(repository.path, tmp_path / "cache", budget=500)
    assert digest_of(mind).coverage.parsed == 5
    assert "made_2_4711" in mind.markdown
    assert len(mind.markdown) < 500 * 4


@pytest.mark.parametrize("budget", [100, 300, 1500, 2000])
def test_the_budget_holds_whatever_there_is(repository: Repository, tmp_path: Path, budget: int) -> None:
    from carbon_mind.digest.bound import token_bound

    scripts = ",".join(f'"test:{n}": "jest --config {"x" * (n % 200)} {n}"' for n in range(500))
    repository.write("package.json", f'{{"name": "{"n" * 5000}", "scripts": {{"test": "jest", {scripts}}}}}')
    repository.write("Makefile", "".join(f"test-{n}:\n\tpytest {'y' * 100} {n}\n" for n in range(500)))
    for n in range(60):
        repository.write(
            f"{'d' * 100}{n}/{'f' * 100}.py", f"class {'C' * 200}{n}:\n    # FIXME: {'z' * 300}\n    pass\n"
        )
        repository.write(f"u{n}.py", f"{'C' * 200}{n}()\n")
    mind = distil(repository.path, tmp_path / "cache", budget=budget)
    assert token_bound(mind.markdown) <= budget


def test_a_sparse_file_is_not_read(repository: Repository, tmp_path: Path) -> None:
    """Four terabytes, where the file system allows it: any read of it all would not come back."""
    repository.write("a.py", "def f() -> None: ...\n")
    with (repository.path / "b.py").open("wb") as file:
        try:
            os.truncate(file.fileno(), 4 << 40)
        except OSError:
            os.truncate(file.fileno(), 480 << 20)
    mind = distil(repository.path, tmp_path / "cache")
    assert skipped(mind) == {"over 1 MiB": 1}
    (repository.path / ".git").rename(tmp_path / "git")
    assert skipped(distil(repository.path, tmp_path / "cache-plain")) == {"over 1 MiB": 1}


def test_many_small_files_and_a_deep_path(repository: Repository, tmp_path: Path) -> None:
    deep = "/".join(["d"] * 200)
    repository.write(f"{deep}/a.py", "def far() -> None: ...\n")
    for n in range(1500):
        repository.write(f"p{n % 30}/m{n}.py", f"def f{n}() -> None: ...\n")
    mind = distil(repository.path, tmp_path / "cache")
    assert digest_of(mind).coverage.parsed == 1501
