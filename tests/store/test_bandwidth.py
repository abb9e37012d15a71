"""The disk is measured once for each device, and what cannot be written is not measured."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from carbon_mind.store import bandwidth
from carbon_mind.store.bandwidth import FILE


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "SAMPLE", 1 << 20)


def test_it_is_measured_once_and_leaves_nothing_but_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bandwidth.bandwidth(tmp_path)
    assert first is not None
    assert first > 1e5
    assert {path.name for path in tmp_path.iterdir()} <= {FILE, "home"}
    monkeypatch.setattr(bandwidth, "_timed", lambda _path: pytest.fail("measured again"))
    assert bandwidth.bandwidth(tmp_path) == first


@pytest.mark.parametrize(
    "known",
    [b"", b"{}", b'{"device": 1, "bytes_per_s": 7.0}', b'{"device": "x"}', b'{"device": %d, "bytes_per_s": -1}'],
)
def test_what_is_not_known_of_this_device_is_measured(tmp_path: Path, known: bytes) -> None:
    if b"%d" in known:
        known %= tmp_path.stat().st_dev
    (tmp_path / FILE).write_bytes(known)
    found = bandwidth.bandwidth(tmp_path)
    assert found is not None
    assert found > 1e5
    assert msgspec.json.decode((tmp_path / FILE).read_bytes())["bytes_per_s"] == found


def test_where_nothing_can_be_written_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from carbon_mind.errors import StorageProblem

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise StorageProblem("read-only")

    monkeypatch.setattr(bandwidth, "atomic_write", refuse)
    assert bandwidth.bandwidth(tmp_path) is None


def test_a_fifo_in_place_of_the_figure_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert bandwidth.bandwidth(tmp_path) is None
