from __future__ import annotations

import os
import subprocess
import sys

import carbon_mind.models


def test_public_names_exist() -> None:
    for name in carbon_mind.models.__all__:
        assert getattr(carbon_mind.models, name) is not None


def test_import_is_cheap() -> None:
    """The start of every command: nothing that only a download or an engine needs."""
    code = (
        "import sys, carbon_mind.models as m; m.resolve, m.check_header, m.model_sha256, m.load_registry()\n"
        "heavy = 'httpx ssl urllib.request zipfile subprocess numpy gguf llama_cpp pydantic'\n"
        "print(sorted(set(heavy.split()) & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
