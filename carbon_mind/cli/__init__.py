"""The command `carbon`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the one place where an error becomes words and an exit code."""
    from carbon_mind.cli import console, quick
    from carbon_mind.errors import CarbonError

    if sys.getfilesystemencoding() != "utf-8":
        _restart()
    try:
        if not quick.run(sys.argv[1:]):
            from carbon_mind.cli.app import app

            app()
    except CarbonError as problem:
        console.error(problem)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        console.step("interrupted; nothing that was there before is lost")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`carbon mind --print | head`): that is not an error of ours.
        sys.stderr.close()
        sys.exit(0)


def _restart() -> None:
    """The same command with Python's UTF-8 mode: git's names are UTF-8 whatever the locale, and so are ours."""
    import os

    os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], os.environ)  # noqa: S606 - ourselves again
