"""The kubeconfig that `serve` writes and takes away."""

from pathlib import Path

import pytest

from seatrial.cli.kubeconfigfile import written
from seatrial.model.errors import CannotContinue

OURS = "apiVersion: v1\nkind: Config\nclusters:\n- name: seatrial\n  cluster:\n    server: http://127.0.0.1:1\n"
THEIRS = OURS + "- name: production\n  cluster:\n    server: https://prod\n"


def test_it_is_there_for_its_owner_alone_and_gone_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        assert file.read_text() == OURS
        assert file.stat().st_mode & 0o777 == 0o600
    assert not file.exists()


@pytest.mark.parametrize("before", ["", "\n", OURS.replace(":1", ":2")])
def test_an_empty_file_and_one_that_was_left_behind_are_used(tmp_path: Path, before: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(before)
    file.chmod(0o644)
    with written(str(file), OURS):
        assert file.read_text() == OURS
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [THEIRS, "clusters: []", "just words", "a: [", "clusters: 3"])
def test_a_file_of_someone_else_is_left_alone(tmp_path: Path, before: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(before)
    with (
        pytest.raises(CannotContinue, match="it is there already, and seatrial did not write it"),
        written(str(file), OURS),
    ):
        pass
    assert file.read_text() == before


def test_what_became_someone_elses_meanwhile_is_not_taken_away(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        file.write_text(THEIRS)
    assert file.read_text() == THEIRS


def test_a_file_that_is_gone_already_is_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    with written(str(file), OURS):
        file.unlink()
    assert not file.exists()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = f"{tmp_path}/no/kubeconfig"
    with pytest.raises(CannotContinue) as refused, written(path, OURS):
        pass
    assert str(refused.value) == f"write the kubeconfig {path}: No such file or directory"


def test_without_a_path_nothing_is_written() -> None:
    with written("", OURS):
        pass
