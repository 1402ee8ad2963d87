"""The kubeconfig that `serve` writes and removes."""

from pathlib import Path

import pytest

from seatrial.cli.kubeconfigfile import written
from seatrial.model.errors import CannotContinue

OURS = "apiVersion: v1\nkind: Config\nclusters:\n- name: seatrial\n  cluster:\n    server: http://127.0.0.1:1\n"
THEIRS = OURS + "- name: production\n  cluster:\n    server: https://prod\n"


def test_the_kubeconfig_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        assert file.read_text() == OURS
        assert file.stat().st_mode & 0o777 == 0o600
    assert not file.exists()


@pytest.mark.parametrize("before", ["", "\n", OURS.replace(":1", ":2")])
def test_an_empty_or_left_over_file_is_overwritten(tmp_path: Path, before: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(before)
    file.chmod(0o644)
    with written(str(file), OURS):
        assert file.read_text() == OURS
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [THEIRS, "clusters: []", "just words", "a: [", "clusters: 3"])
def test_a_foreign_kubeconfig_is_not_touched(tmp_path: Path, before: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(before)
    with (
        pytest.raises(CannotContinue, match="the file exists and was not written by seatrial"),
        written(str(file), OURS),
    ):
        pass
    assert file.read_text() == before


def test_a_kubeconfig_that_the_user_extended_is_not_removed(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        file.write_text(THEIRS)
    assert file.read_text() == THEIRS


def test_an_already_removed_file_is_not_an_error(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        file.unlink()
    assert not file.exists()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    path = f"{tmp_path}/no/kubeconfig"
    with pytest.raises(CannotContinue) as refused, written(path, OURS):
        pass
    assert str(refused.value) == f"write the kubeconfig {path}: No such file or directory"


def test_without_a_path_nothing_is_written() -> None:
    with written("", OURS):
        pass
