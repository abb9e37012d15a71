"""A digest's inputs with something nasty in every text that a repository can choose."""

from __future__ import annotations

from carbon_mind.digest.build import build
from carbon_mind.evidence import Evidence
from carbon_mind.values import (
    Command,
    Constraint,
    Definition,
    Digest,
    EntryPoint,
    Marker,
    ProjectFacts,
    RankedFile,
    RepoPath,
    Skipped,
    Tags,
)


def digest_of(text: str) -> Digest:
    """`text` as name, path, symbol, signature, base, marker, command, constraint, entry point, framework and suffix."""
    path = RepoPath(f"src/{text}.py")
    other = RepoPath(f"{text}/b.py")
    test = RepoPath(f"{text}/test_b.py")
    definition = Definition(text, "class", 3, f"class {text}(Base): {text}")
    error = Definition(f"{text} Error", "class", 9, text)
    tags = {
        path: Tags(
            "python",
            (definition, error),
            ((f"x {text}", 2),),
            imports=(text,),
            packages=(text,),
            bases=((text, 3),),
            markers=(Marker("FIXME", 4, text),),
        ),
        other: Tags(
            "python",
            (Definition(f"x {text}", "function", 1, text),),
            ((text, 5),),
            markers=(Marker("HACK", 1, text),),
        ),
        test: Tags("python", imports=(text,), markers=(Marker("SKIP", 1, text),)),
    }
    facts = ProjectFacts(
        commands=(Command("test", text, text), Command("build", f"make {text}", text)),
        constraints=(Constraint(text, text),),
        entry_points=(EntryPoint(text, text, text), EntryPoint("main", path, text)),
        frameworks=(text,),
        name=text,
    )
    ranked = (
        RankedFile(path, 0.6, 2, ((definition, 4), (error, 1)), imported_by=1),
        RankedFile(other, 0.4, 1),
        RankedFile(test, 0.0, 0, depends_on=(path, other)),
    )
    kinds = {path: "source", other: "source", test: "test"}
    return build(
        Evidence([path, other, test], [Skipped(path, "link")], tags, ranked, facts, kinds, {f".{text}": 2, ".md": 1})
    )
