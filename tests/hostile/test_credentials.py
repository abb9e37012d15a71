"""Case 5: no credential of the repository reaches a byte of ours: not the digest, not the tag cache, not SQLite's log.

All are made up, and put together at run time, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Repository
from tests.hostile.conftest import carbon, digest_of, distil, skipped, written

HEX, LOWER, UPPER = "0123456789abcdef", string.ascii_lowercase, string.ascii_uppercase
ALNUM = string.ascii_letters + string.digits
BASE64 = ALNUM + "+/"


def draw(seed: str, alphabet: str, length: int) -> str:
    """Random text that is the same in every run, with a digit and a letter in it as real ones have."""
    rng = random.Random(seed)
    text = "".join(rng.choices(alphabet, k=length))
    return text[:-2] + rng.choice("23456789") + rng.choice([c for c in alphabet if c.isalpha()])


FORMS: dict[str, str] = {
    "aws": "AKI" + "A" + draw("aws", UPPER + "234567", 16),
    "aws-secret": draw("aws-secret", BASE64, 40),
    "github": "gh" + "p_" + draw("github", ALNUM, 36),
    "github-fine": "github" + "_pat_" + draw("fine", ALNUM, 22) + "_" + draw("grained", ALNUM, 59),
    "gitlab": "gl" + "pat-" + draw("gitlab", ALNUM, 20),
    "slack": "xo" + "xb-" + "123456789012-" + draw("slack", ALNUM, 24),
    "google": "AI" + "za" + draw("google", ALNUM, 35),
    "npm": "np" + "m_" + draw("npm", ALNUM, 36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + draw("pypi", ALNUM, 80),
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J" + draw("body", ALNUM, 40) + "." + draw("signature", ALNUM, 43),
    "openai": "s" + "k-proj-" + draw("openai", ALNUM, 48),
    "stripe": "sk" + "_live_" + draw("stripe", ALNUM, 24),
    "sendgrid": "S" + "G." + draw("grid", ALNUM, 22) + "." + draw("send", ALNUM, 43),
    "azure": draw("azure", BASE64, 86) + "==",
    "hex32": draw("hex32", HEX, 32),
    "hex40": draw("hex40", HEX, 40),
    "hex64": draw("hex64", HEX, 64),
    "base64": draw("base64", BASE64, 44),
    "base64url": draw("base64url", ALNUM + "-_", 43),
    "alnum": draw("alnum", ALNUM, 32),
}

# Every place from which a line of the digest, or of the cache, is made. `{}` is the credential.
PLACES: dict[str, tuple[str, str]] = {
    "default argument": ("src/a.py", 'def connect(host: str, token: str = "{}") -> None: ...\n'),
    "constant": ("src/b.py", 'VALUE = "{}"\nOTHER: str = "{}"\n'),
    "marker": ("src/c.py", "# FIXME: works with {} only\n# HACK {}\ndef c() -> None: ...\n"),
    "class keyword": ("src/d.py", 'class D(Base, key="{}"): ...\nclass E(make("{}")): ...\n'),
    "decorator": ("src/e.py", 'import pytest\n@pytest.mark.skip(reason="{}")\ndef test_e() -> None: ...\n'),
    "typescript": ("src/f.ts", 'export const VALUE = "{}";\nexport function f(a = "{}"): void {{}}\n'),
    "annotation": ("src/g.ts", 'export type G = "{}" | "x";\nexport interface H {{ a: "{}" }}\n'),
    "go": ("src/h.go", 'package h\n\nconst Value = "{}"\n\n// BUG(x): {}\nfunc H() {{}}\n'),
    "rust": ("src/i.rs", 'pub const VALUE: &str = "{}";\n// XXX {}\npub fn i() {{}}\n'),
    "c macro": ("src/j.c", '#define VALUE "{}"\nint j(void) {{ return 0; }}\n'),
    "shell": ("deploy.sh", "#!/bin/sh\nVALUE={}\nrun() {{ curl -H 'X-Key: {}' https://example.org; }}\n"),
    "make variable": ("Makefile", "KEY := {}\nVALUE ?= {}\n\ntest:\n\tVALUE={} pytest\n\nlint:\n\truff --key={} .\n"),
    "package scripts": (
        "package.json",
        '{{"name": "x", "scripts": {{"test": "KEY={} jest", "build": "tsc --key {}", "lint": "eslint https://{}@example.org"}}}}',
    ),
    "tox": ("tox.ini", "[testenv]\nsetenv =\n    VALUE = {}\ncommands =\n    pytest --key={} {{posargs}}\n"),
    "workflow": (
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  t:\n    env:\n      VALUE: {}\n    steps:\n      - run: VALUE={} make test\n      - run: make deploy KEY={}\n",
    ),
    "owners": (".github/CODEOWNERS", "* @{}\n"),
    "attributes": (".gitattributes", "gen/{} linguist-generated\n"),
    "justfile": ("justfile", 'value := "{}"\n\ntest:\n    VALUE={} cargo test\n'),
    "project": (
        "pyproject.toml",
        """[project]\nname = "x"\ndependencies = ["y @ https://{}@example.org/y.zip"]\n[project.scripts]\n"{}" = "x:main"
[tool.pytest.ini_options]\naddopts = "--key={}"\n""",
    ),
    "dockerfile": ("Dockerfile", "FROM x\nENV VALUE={}\nRUN VALUE={} make\n"),
    "compose": ("docker-compose.yml", "services:\n  a:\n    environment:\n      VALUE: {}\n"),
    "contributing": ("CONTRIBUTING.md", "# Testing\n\n```sh\nVALUE={} make test\npytest --key {}\n```\n"),
    "readme": ("README.md", "Run `KEY={} make`.\n"),
    "agents": ("AGENTS.md", "Use {}.\n"),
    "import": ("src/k.ts", 'import x from "https://user:{}@example.org/mod.ts";\nexport const k = x;\n'),
    "php include": ("src/l.php", '<?php\nrequire "https://{}@example.org/x.php";\nfunction l() {{}}\n'),
    "command name": ("src/n.sh", "#!/bin/sh\nf() {{ https://user:{}@example.org/run; }}\n"),
    "module name": ("src/o.ts", 'declare module "https://user:{}@example.org/x" {{ export function o(): void; }}\n'),
    "docstring": ("src/m.py", 'def m() -> None:\n    """Call with {}."""\n'),
}  # fmt: skip


def fill(repository: Repository, credential: str, places: dict[str, tuple[str, str]]) -> None:
    for path, text in places.values():
        repository.write(path, text.replace("{}", credential).replace("{{", "{").replace("}}", "}"))
    # Users of the symbols, so that files and signatures rank.
    repository.write(
        "src/use.py", "from src.a import connect\nfrom src.b import VALUE\nfrom src.d import D\n\nconnect(VALUE, D)\n"
    )
    repository.write("src/use.ts", "import { VALUE, f } from './f';\nimport { k } from './k';\nf(VALUE); k();\n")


def assert_nowhere(credential: str, *folders: Path, shown: str = "") -> None:
    """Neither the credential nor a tell-tale half of it."""
    half = len(credential) // 2
    for piece in {credential, credential[:half], credential[half:]}:
        if len(piece) < 12:
            continue
        assert piece not in shown
        for name, data in written(*folders).items():
            at = data.find(piece.encode())
            assert at < 0, f"{name}: {data[max(at - 60, 0) : at + 20]!r}"


LEAKING_NAMES = {"import", "command name"}


@pytest.mark.parametrize("form", FORMS)
def test_no_credential_reaches_a_byte_of_ours(repository: Repository, tmp_path: Path, form: str) -> None:
    places = {name: place for name, place in PLACES.items() if name not in LEAKING_NAMES}
    fill(repository, FORMS[form], places)
    repository.commit()
    mind = distil(repository.path, tmp_path / "cache")
    assert digest_of(mind).coverage.parsed >= 10
    assert digest_of(mind).commands, "the lines around the credentials are there"
    assert_nowhere(FORMS[form], repository.path / ".carbon", tmp_path / "cache")


@pytest.mark.parametrize("place", sorted(LEAKING_NAMES))
def test_no_credential_in_place_of_a_name_reaches_a_byte_of_ours(
    repository: Repository, tmp_path: Path, place: str
) -> None:
    fill(repository, FORMS["github"], {place: PLACES[place]})
    distil(repository.path, tmp_path / "cache")
    assert_nowhere(FORMS["github"], repository.path / ".carbon", tmp_path / "cache")


def test_the_output_and_the_block_of_agents_hold_none_either(repository: Repository, tmp_path: Path) -> None:
    places = {name: place for name, place in PLACES.items() if name not in (*LEAKING_NAMES, "agents")}
    fill(repository, FORMS["github"], places)
    for flag in ("--print", "--json", "--write-agents"):
        found = carbon("mind", flag, repository.path)
        assert found.returncode == 0, found.stderr
        assert_nowhere(FORMS["github"], repository.path / ".carbon", shown=found.stdout + found.stderr)
    assert FORMS["github"] not in (repository.path / "AGENTS.md").read_text()


PEM = {
    "rsa": ("RSA PRIVATE " + "KEY", 24),
    "openssh": ("OPENSSH PRIVATE " + "KEY", 12),
    "pkcs8": ("PRIVATE " + "KEY", 3),
    "encrypted": ("ENCRYPTED PRIVATE " + "KEY", 20),
    "pgp": ("PGP PRIVATE " + "KEY BLOCK", 30),
}


@pytest.mark.parametrize("kind", PEM)
@pytest.mark.parametrize("joint", ["\n", "\\n"])
def test_key_blocks(repository: Repository, tmp_path: Path, kind: str, joint: str) -> None:
    label, rows = PEM[kind]
    body = [draw(f"{kind}{row}", BASE64, 64) for row in range(rows)]
    block = joint.join([f"-----BEGIN {label}-----", *body, f"-----END {label}-----"])
    quote = '"""' if joint == "\n" else '"'
    repository.write("a.py", f"KEY = {quote}{block}{quote}\n\n\ndef f(key: str = {quote}{block}{quote}) -> None: ...\n")
    repository.write("b.py", "from a import KEY, f\n\n# FIXME: " + " ".join(block.split("\n")) + "\nf(KEY)\n")
    repository.write(
        "Makefile", "define KEY\n" + block + "\nendef\ntest:\n\tKEY='" + block.replace("\n", "\\n") + "' pytest\n"
    )
    repository.write("package.json", json.dumps({"name": "x", "scripts": {"test": f"KEY='{block}' jest"}}))
    repository.write("c.js", f"export const KEY = `{block}`;\nexport function g(a = `{block}`) {{}}\n")
    repository.commit()
    distil(repository.path, tmp_path / "cache")
    for row in body:
        assert_nowhere(row, repository.path / ".carbon", tmp_path / "cache")


def test_a_service_account_in_code(repository: Repository, tmp_path: Path) -> None:
    key = draw("gcp", BASE64, 64)
    account = {
        "type": "service_account",
        "private_key_id": FORMS["hex40"],
        "private_key": "-----BEGIN PRIVATE " + f"KEY-----\n{key}\n-----END PRIVATE KEY-----\n",
        "client_id": "123456789012345678901",
    }
    repository.write("a.py", f"ACCOUNT = {account!r}\n\n\ndef f(account: object = {account!r}) -> None: ...\n")
    repository.write("account.json", json.dumps(account))
    repository.write("b.py", "from a import ACCOUNT, f\n\nf(ACCOUNT)\n")
    distil(repository.path, tmp_path / "cache")
    for text in (key, FORMS["hex40"]):
        assert_nowhere(text, repository.path / ".carbon", tmp_path / "cache")


PASSWORD = "hunter" + "2swordf1sh"
NAMED = {
    "url": "postgres://app:{}@db.example.org/x",
    "variable": "DB_PASSWORD={}",
    "short": "SMTP_PASS={}",
    "option": "tool --password {} run",
    "option=": "tool --api-key={} run",
    "curl": "curl -u admin:{} https://example.org",
    "mysql": "mysql -uroot -p{} app",
    "docker": "docker login -u bob -p {} example.org",
    "header": "curl -H 'Authorization: Bearer {}' https://example.org",
    "go": "go run ./x root:{}@tcp(127.0.0.1:3306)/app",
}


@pytest.mark.parametrize("shape", NAMED)
def test_a_short_password_is_known_by_its_name(repository: Repository, tmp_path: Path, shape: str) -> None:
    line = NAMED[shape].format(PASSWORD)
    repository.write("Makefile", f"test:\n\t{line}\n\nlint:\n\truff check && {line}\n")
    repository.write("package.json", json.dumps({"name": "x", "scripts": {"test": line, "build": f"tsc && {line}"}}))
    repository.write(
        ".github/workflows/ci.yml", f"on: push\njobs:\n  t:\n    steps:\n      - run: {json.dumps(line)}\n"
    )
    repository.write("a.py", f"# FIXME: {line}\ndef f(a: str = {line!r}) -> None: ...\nX = {line!r}\n")
    repository.write("b.sh", f"# HACK: {line}\nf() {{ run {line}; }}\n")
    repository.write("CONTRIBUTING.md", f"```sh\n{line}\n```\n")
    mind = distil(repository.path, tmp_path / "cache")
    assert digest_of(mind).commands
    assert_nowhere(PASSWORD, repository.path / ".carbon", tmp_path / "cache")


def test_names_of_files_and_folders(repository: Repository, tmp_path: Path) -> None:
    for form in ("aws", "github", "hex40", "alnum", "slack"):
        for path in (
            f"src/{FORMS[form]}.py",
            f"{FORMS[form]}/a.py",
            f"x_{FORMS[form]}/Makefile",
            f"tests/test_{FORMS[form]}.py",
        ):
            text = (
                "test:\n\tpytest\n"
                if path.endswith("Makefile")
                else "def f(a: int) -> int:\n    # FIXME: x\n    return a\n"
            )
            repository.write(path, text)
        repository.write(f"a.{FORMS[form]}", "x")
    repository.commit()
    distil(repository.path, tmp_path / "cache")
    for form in ("aws", "github", "hex40", "alnum", "slack"):
        assert_nowhere(FORMS[form], repository.path / ".carbon", tmp_path / "cache")


# --- whole files ---------------------------------------------------------------------------------------------------

SENSITIVE = [
    ".env",
    ".env.local",
    ".env.example",
    "a/.env.production",
    ".ENV",
    "server.pem",
    "tls/server.KEY",
    "a.p12",
    "b.pfx",
    "id_rsa",
    "id_rsa.pub",
    ".ssh/id_rsa_work",
    "app.keystore",
    "credentials.json",
    "aws-credentials.ini",
    "secret.yml",
    "app-secrets.toml",
    "src/secrets.py",
    "credentials.go",
    "Secret.java",
    ".npmrc",
    "pkg/.npmrc",
    ".netrc",
    "prod.tfvars",
]


@pytest.mark.parametrize("how", ["tracked", "untracked", "plain"])
def test_sensitive_files_are_named_in_the_coverage_and_never_read(sample: Repository, tmp_path: Path, how: str) -> None:
    before = digest_of(distil(sample.path, tmp_path / "cache-before"))
    for path in SENSITIVE:
        sample.write(
            path,
            "def quite_ordinary_word(other_word: int) -> None: ...\nquite_ordinary_word: 1\nKEY=quite_ordinary_word\n",
        )
    sample.write("large.py", "def quite_ordinary_word() -> None: ...\n" * 30_000)
    if how == "tracked":
        sample.commit()
    elif how == "plain":
        (sample.path / ".git").rename(tmp_path / "git")
    mind = distil(sample.path, tmp_path / "cache")
    after = digest_of(mind)
    assert skipped(mind) == {"may hold credentials": len(SENSITIVE), "over 1 MiB": 1}
    assert after.coverage.files == before.coverage.files + len(SENSITIVE) + 1
    assert after.coverage.parsed == before.coverage.parsed
    assert_nowhere("quite_ordinary_word", sample.path / ".carbon", tmp_path / "cache")


def test_a_renamed_secret_leaves_nothing_behind(sample: Repository, tmp_path: Path) -> None:
    """The cache holds tags by content: a file that was parsed under a harmless name keeps only what was harmless."""
    sample.write("settings.py", f'def connect(token: str = "{FORMS["github"]}") -> None: ...\n')
    distil(sample.path, tmp_path / "cache")
    sample.git("add", "--all")
    sample.git("mv", "settings.py", "secret_settings.py")
    distil(sample.path, tmp_path / "cache")
    assert_nowhere(FORMS["github"], sample.path / ".carbon", tmp_path / "cache")


Everywhere = Callable[[str], str]
SPLITS: dict[str, Everywhere] = {
    "zero width": "\u200b".join,
    "bidi": lambda text: "\u202e" + text + "\u202c",
    "soft hyphen": lambda text: text[:9] + "\u00ad" + text[9:],
    "nul": lambda text: text[:9] + "\x01" + text[9:],
}


@pytest.mark.parametrize("split", SPLITS)
def test_invisible_characters_do_not_hide_one_from_the_digest(
    repository: Repository, tmp_path: Path, split: str
) -> None:
    hidden = SPLITS[split](FORMS["github"])
    repository.write("a.py", f"# FIXME: use {hidden}\ndef f(a: str = '{hidden}') -> None: ...\n")
    repository.write("Makefile", f"test:\n\tpytest --key={hidden}\n")
    repository.write("package.json", json.dumps({"name": hidden, "scripts": {"test": f"jest {hidden}"}}))
    mind = distil(repository.path, tmp_path / "cache")
    assert FORMS["github"] not in mind.markdown
    assert FORMS["github"] not in mind.json.decode()
    assert hidden not in mind.markdown
