"""A repository written in a test: a dict of path -> text, parsed and resolved for real."""

from __future__ import annotations

from collections.abc import Mapping

from carbon_mind.repo.extract import extract
from carbon_mind.repo.facts.context import Context
from carbon_mind.repo.imports import Resolved, resolve
from carbon_mind.repo.languages import language_of
from carbon_mind.values import RepoPath, Tags


def tags_of(files: Mapping[str, str]) -> dict[RepoPath, Tags]:
    """Tags of all files that some language reads."""
    return {
        RepoPath(path): extract(text.encode(), language)
        for path, text in files.items()
        if (language := language_of(RepoPath(path))) is not None
    }


def resolved(files: Mapping[str, str]) -> dict[RepoPath, Resolved]:
    """What every file's imports mean."""
    return resolve(tags_of(files), Context([RepoPath(path) for path in files], files.get))


def named(files: Mapping[str, str], path: str) -> list[str]:
    """The files that the imports of `path` name."""
    return [str(target) for target in resolved(files)[RepoPath(path)].files]


def visible(files: Mapping[str, str], path: str) -> list[str]:
    """The files that are visible in `path` and not named by it, by path."""
    found = resolved(files)
    own = found[RepoPath(path)]
    return sorted(
        str(other)
        for other, result in found.items()
        if other != path and other not in own.files and set(own.sees) & set(result.shown_by)
    )
