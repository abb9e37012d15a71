from __future__ import annotations

import pytest

from .helpers import commands, constraints


def test_a_containerfile_tells_the_image_of_its_last_stage() -> None:
    text = "FROM node:20 AS web\nRUN x\nFROM --platform=linux/amd64 ghcr.io/x/python:3.12@sha256:00 AS app\nRUN y\n"
    assert constraints({"Containerfile": text}) == [("container: ghcr.io/x/python:3.12", "Containerfile:3")]
    for last in ("scratch", "$BASE", "web", "${A}:1", "a`id`", "pyth\u202eon:3"):
        assert constraints({"Containerfile": f"{text}FROM {last}\n"}) == []


@pytest.mark.parametrize(
    ("start", "command"),
    [
        ('CMD ["python", "app.py", "--port=80"]', "python app.py --port=80"),
        ('CMD ["python", "-m", "shop"]', "python -m shop"),
        ('ENTRYPOINT ["uvicorn"]\nCMD ["shop.web:app", "--host", "0.0.0.0"]', "uvicorn shop.web:app --host 0.0.0.0"),
        ('CMD ["uv", "run", "shopd"]', "uv run shopd"),
        ('CMD ["./start.sh"]', "./start.sh"),
        ('CMD ["node", "absent.js"]', ""),
        ('CMD ["python", "/app.py"]', ""),
        ('CMD ["python", "-c", "app.py"]', ""),
        ('CMD ["python", "-m", "http.server"]', ""),
        ('CMD ["nginx", "-g", "daemon off;"]', ""),
        ('CMD ["uvicorn", "other:app"]', ""),
        ("CMD python app.py", ""),
        ('ENTRYPOINT exec x\nCMD ["python", "app.py"]', ""),
        ('CMD ["python", "app.py", "--token=abc"]', ""),
        ('CMD ["python", "app.py", "; rm -rf /"]', ""),
        ('CMD ["python", "app.py", 1]', ""),
        ('CMD ["python", "app.py"]\nFROM nginx:1', ""),
        ('RUN cat <<EOF\nCMD ["python", "app.py"]\nEOF', ""),
    ],
)
def test_a_start_counts_only_when_it_starts_something_of_the_repository(start: str, command: str) -> None:
    files = {
        "Containerfile": f"FROM scratch\n{start}\n",
        "app.py": "",
        "start.sh": "",
        "src/shop/__main__.py": "",
        "src/shop/web.py": "",
        "pyproject.toml": '[project.scripts]\nshopd = "shop:main"\n',
    }
    run = [(c, s) for kind, c, s in commands(files) if kind == "run" and s.startswith("Containerfile")]
    assert run == ([(command, "Containerfile:2")] if command else [])


def test_compose_runs_what_it_builds_here() -> None:
    built = "services:\n  db:\n    image: postgres\n  web:\n    build: {}\n"
    assert commands({"compose.yaml": built.format("."), "Dockerfile": "FROM x\n"}) == [
        ("run", "docker compose up", "compose.yaml:5")
    ]
    assert commands({"docker-compose.yml": built.format("./web"), "web/Dockerfile": "FROM x\n"}) == [
        ("run", "docker compose up", "docker-compose.yml:5")
    ]
    own = built.format("\n      context: .\n      dockerfile: ops/Web.dockerfile")
    assert commands({"compose.yml": own, "ops/Web.dockerfile": "FROM x\n"}) == [
        ("run", "docker compose up", "compose.yml:5")
    ]
    for where in ("https://github.com/a/b.git", "../other", "absent", "${WHERE}"):
        assert commands({"compose.yaml": built.format(where), "Dockerfile": "FROM x\n"}) == []
    assert commands({"ops/compose.yaml": built.format("."), "ops/Dockerfile": "FROM x\n"}) == []


def test_names_without_a_value_are_one_line_and_values_never_leave() -> None:
    files = {
        "docker-compose.yml": (
            "services:\n  a:\n    environment:\n      - API_URL\n      - TOKEN=ghp_0123456789abcdef0123456789abcdef0123\n"
            "      - DB=${DB_PASSWORD:?set it}\n      - HOST=${HOST:-x}\n      - lower\n      - 'BAD\u202eNAME'\n"
            "  b:\n    environment:\n      MAIL_HOST:\n      EMPTY: ''\n      PORT: 80\n      '```X':\n      QUEUE: # c\n"
        ),
        "app.json": (
            '{"env": {\n"SIGNING": {"required": true},\n"OPTION": {"required": false},\n'
            '"MADE": {"required": true, "generator": "secret"},\n"PLAIN": "hunter2"}}'
        ),
        "Dockerfile": (
            "ARG TAG\nARG ARCH=x\nFROM scratch\nARG TARGETARCH\nARG ARCH\nARG UNUSED\nARG FEEDS\nARG SOFT\n"
            "ENV HOME_URL= SET=hunter2\nENV OLD value\nENV FED=${FEEDS}\nRUN a $TAG $TARGETARCH $ARCH ${SOFT:-x} $FEEDS\n"
        ),
    }
    assert constraints(files) == [
        ("environment: API_URL, DB_PASSWORD, MAIL_HOST, QUEUE, SIGNING, HOME_URL, TAG", "docker-compose.yml:4")
    ]


def test_many_names_are_bounded() -> None:
    rows = "".join(f"      - SERVICE_VARIABLE_{n:03}\n" for n in range(300))
    ((line, source),) = constraints({"compose.yaml": f"services:\n  a:\n    environment:\n{rows}"})
    assert line.startswith("environment: SERVICE_VARIABLE_000, SERVICE_VARIABLE_001")
    assert line.endswith(" more")
    assert len(line) <= 160
    assert source == "compose.yaml:4"


@pytest.mark.parametrize(
    "text", ["", "FROM", "ENV", "ENV \n", "ARG", "FROM x\nENV =\nCMD [\nENTRYPOINT [\\", "\\\nCMD", "FROM x\nRUN <<A\n"]
)
def test_broken_files_give_nothing(text: str) -> None:
    files = dict.fromkeys(("Containerfile", "compose.yaml", "app.json"), text)
    assert commands(files) == []
    assert [line for line, _ in constraints(files) if line != "container: x"] == []
