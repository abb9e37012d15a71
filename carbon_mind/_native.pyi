# The compiled ranker; carbon_mind.repo.pagerank is the door to it.

from typing_extensions import Buffer  # collections.abc.Buffer needs Python 3.12

def rank(
    n: int,
    src: Buffer,
    dst: Buffer,
    weight: Buffer,
    personalization: Buffer,
    damping: float,
    tol: float,
    max_iter: int,
    /,
) -> bytes: ...
