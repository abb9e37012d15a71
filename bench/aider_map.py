"""Print aider's repo map of the current directory, for `carbon bench mind --peer "aider=PYTHON bench/aider_map.py"`.

PYTHON is one with aider-chat installed (`python -m venv aider && aider/bin/pip install aider-chat`). The map gets as many tokens as
CARBON_TOKENS says, counted by the vocabulary that comes with it, so no network is needed.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Make the map by aider's own class, without its chat."""
    litellm = importlib.util.find_spec("litellm")
    if litellm is None or litellm.origin is None:
        sys.exit("aider-chat is not installed for this Python")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers")
    tiktoken: Any = importlib.import_module("tiktoken")
    repomap: Any = importlib.import_module("aider.repomap")

    class Model:
        encoding = tiktoken.get_encoding("cl100k_base")

        def token_count(self, text: str) -> int:
            return len(self.encoding.encode(text, disallowed_special=()))

    class Talk:
        def read_text(self, name: str, silent: bool = False) -> str | None:
            try:
                return Path(name).read_text(encoding="utf-8")
            except (OSError, UnicodeError):
                return None

        def tool_output(self, *_args: object, **_kwargs: object) -> None:
            """Quiet."""

        tool_warning = tool_error = tool_output

    root = str(Path.cwd())
    names = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
    files = {os.path.join(root, os.fsdecode(name)) for name in names.split(b"\0") if name}  # noqa: PTH118 - as aider has them
    tokens = int(os.environ.get("CARBON_TOKENS", "1500"))
    with contextlib.redirect_stdout(sys.stderr):
        made = repomap.RepoMap(map_tokens=tokens, root=root, main_model=Model(), io=Talk()).get_repo_map(set(), files)
    # A heading of the map ends with a colon; the last line is its own.
    sys.stdout.buffer.write((made or "").encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
