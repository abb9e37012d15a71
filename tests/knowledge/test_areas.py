"""Which directories get a note, and what makes them another directory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carbon_mind.knowledge.areas import BIG, divide, identity, nearest
from carbon_mind.values import BlobId, RepoPath


def tree(**counts: int) -> dict[RepoPath, BlobId]:
    """Files by directory: `a__b=3` are three files in a/b."""
    return {
        RepoPath(f"{name.replace('__', '/')}/f{i:03}.py"): BlobId(f"{name}{i}")
        for name, count in counts.items()
        for i in range(count)
    }


def test_every_top_directory_is_one_and_files_at_the_top_are_in_none() -> None:
    files = tree(src=3, docs=5, src__deep__er=2) | {RepoPath("README.md"): BlobId("x")}
    areas = divide(files, 40)
    assert [(area.path, len(area.files)) for area in areas] == [("docs", 5), ("src", 5)]
    assert areas[0].files == tuple(sorted(areas[0].files))


def test_a_big_one_is_divided_and_keeps_its_own_files_down_to_three_levels() -> None:
    files = tree(a=2, a__b=BIG, a__c=1, a__c__d=1, x__y__z=BIG + 1, x__y__z__w=1, x__y=3)
    found = {area.path: len(area.files) for area in divide(files, 40)}
    assert found == {"a": 2, "a/b": BIG, "a/c": 2, "x/y": 3, "x/y/z": BIG + 2}


def test_a_big_directory_without_directories_stays_whole() -> None:
    assert [area.path for area in divide(tree(a=BIG * 3), 40)] == ["a"]


def test_the_busiest_come_first_and_what_is_not_ours_last() -> None:
    files = tree(vendor=50, a=3, b=3, c=9)
    foreign = {path for path in files if path.startswith("vendor/")}
    assert [area.path for area in divide(files, 40, foreign)] == ["c", "a", "b", "vendor"]
    assert [area.path for area in divide(files, 2, foreign)] == ["c", "a"]
    assert divide(files, 0) == ()


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map("/".join), max_size=200, unique=True))
def test_no_file_is_in_two_and_none_below_the_top_is_lost(paths: list[str]) -> None:
    files = {RepoPath(path + "/f"): BlobId("1") for path in paths}
    members = [path for area in divide(files, 10_000) for path in area.files]
    assert sorted(members) == sorted(files)
    for area in divide(files, 10_000):
        assert all(path.startswith(f"{area.path}/") for path in area.files)
        assert area.path.count("/") < 3


def test_the_identity_is_of_names_and_contents_alone() -> None:
    files = tree(src=3)
    (area,) = divide(files, 40)
    assert area.identity == identity(reversed(list(files.items())))
    first = RepoPath("src/f000.py")
    for other in (
        files | {first: BlobId("changed")},
        {path: blob for path, blob in files.items() if path != first},
        files | {RepoPath("src/new.py"): BlobId("1")},
        {RepoPath(path.replace("f000", "moved")): blob for path, blob in files.items()},
    ):
        assert divide(other, 40)[0].identity != area.identity
    (same,) = (found for found in divide(files | tree(docs=2), 40) if found.path == "src")
    assert same.identity == area.identity, "another directory's files are not its own"
    assert len(identity([("a\udcff", "x")])) == 40, "names need not be text"


def test_the_nearest_is_the_deepest_above() -> None:
    noted = ("src", "src/flask", "docs")
    assert nearest("src/flask/json/tag.py", noted) == "src/flask"
    assert nearest("src/flask", noted) == "src/flask"
    assert nearest("src/flaskr/x", noted) == "src"
    assert nearest("setup.cfg", noted) is None
    assert nearest("", noted) is None
