"""Settings: the stronger voice wins, a stranger's file may say little, and a wrong value is named with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from carbon_mind import settings
from carbon_mind.errors import SettingsProblem


@pytest.fixture
def user_file(private_home: Path) -> Path:
    path = settings.user_file()
    path.parent.mkdir(parents=True)
    return path


def test_defaults_user_file_repository_environment_flags_in_this_order(user_file: Path, tmp_path: Path) -> None:
    user_file.write_text("budget = 300\nmodel = 'from-user'\nthreads = 1\nn_batch = 128\n")
    (tmp_path / "carbon.toml").write_text("budget = 400\nmodel = 'from-repository'\n")
    found = settings.load(
        tmp_path, {"budget": None, "n_batch": 32}, {"CARBON_THREADS": "2", "CARBON_MODEL": "from-environment"}
    )
    assert (found.budget, found.model, found.threads, found.n_batch) == (400, "from-environment", 2, 32)
    assert found.type_k == "f16"
    assert settings.load(None, {}, {}).model == "from-user"


@pytest.mark.parametrize(
    ("environ", "named"),
    [({"CARBON_BUDGET": "99"}, "budget"), ({"CARBON_TYPE_K": "q3"}, "type_k"), ({"CARBON_N_CTX": "-1"}, "n_ctx")],
)
def test_a_wrong_value_is_named_with_its_source(environ: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsProblem) as caught:
        settings.load(None, {}, environ)
    assert named in caught.value.message
    assert "CARBON_*" in caught.value.message
    assert caught.value.exit_code == 2


def test_an_unknown_key_is_an_error_not_a_silence(user_file: Path) -> None:
    user_file.write_text("bugdet = 300\n")
    with pytest.raises(SettingsProblem, match="bugdet"):
        settings.load(None, {}, {})


def test_a_link_as_repository_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("budget = 400\n")
    (tmp_path / "carbon.toml").symlink_to(tmp_path / "real.toml")
    assert settings.load(tmp_path, {}, {}).budget == 1500


def test_folders_follow_the_cache_directory(tmp_path: Path) -> None:
    found = settings.load(None, {}, {"CARBON_CACHE_DIR": str(tmp_path)})
    assert (found.cache, found.snapshots, found.models) == (tmp_path, tmp_path / "snapshots", tmp_path / "models")
