"""The names of everything that came with a repository, for `safety/trust`: more than the files that a digest is made from."""

from __future__ import annotations

import os

from carbon_mind.repo import git
from carbon_mind.repo.scan import Scan
from carbon_mind.safety.block import AGENTS
from carbon_mind.values import MIND_FOLDER


def shipped(seen: Scan) -> tuple[str, ...]:
    """Paths of files, links and submodules, tracked or untracked and not ignored, sorted.

    A scan leaves out two things that git may track: a `.carbon` folder, and an AGENTS.md that holds nothing but a block of ours. Not
    tracked, both are this user's own and count as nothing.
    """
    paths = {file.path for file in seen.files} | {item.path for item in seen.skipped}
    found = {str(path) for path in paths}
    if seen.kind == "git":
        ours = (f":(top,icase){MIND_FOLDER}", f":(top,icase){AGENTS}")
        try:
            found |= {
                os.fsdecode(name) for name in git.run(seen.root, "ls-files", "-z", "--", *ours).split(b"\0") if name
            }
        except git.GitFailed:  # between the scan and now; what the scan says of it is enough to distrust
            found |= set() if seen.owned else {MIND_FOLDER}
    return tuple(sorted(found, key=os.fsencode))
