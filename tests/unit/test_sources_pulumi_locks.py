"""The provider version in lock files of Pulumi programs."""

from pathlib import Path

import pytest

from seatrial.sources.pulumi.locks import locked_provider

LOCKS = {
    "package-lock.json": '{"packages": {"node_modules/@pulumi/kubernetes": {"version": "4.24.1"}}}',
    "yarn.lock": '"@pulumi/kubernetes@^4.24.0":\n  version "4.24.1"\n  resolved "https://registry.example"\n',
    "pnpm-lock.yaml": "packages:\n\n  '@pulumi/kubernetes@4.24.1':\n    resolution: {integrity: x}\n",
    "poetry.lock": '[[package]]\nname = "pulumi-kubernetes"\nversion = "4.24.1"\n',
    "uv.lock": '[[package]]\nname = "pulumi-kubernetes"\nversion = "4.24.1"\n',
    "requirements.txt": "pulumi>=3\npulumi_kubernetes==4.24.1\n",
    "go.mod": "require (\n\tgithub.com/pulumi/pulumi-kubernetes/sdk/v4 v4.24.1\n)\n",
}


@pytest.mark.parametrize("name", LOCKS)
def test_the_provider_is_read_from_every_kind_of_lock_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(LOCKS[name])
    found = locked_provider(tmp_path, tmp_path)
    assert found is not None
    assert (found.version, found.upserts) == ("4.24.1", True)


def test_a_lock_file_of_a_workspace_counts_for_its_programs(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "requirements.txt").write_text("pulumi-kubernetes==4.29.0\n")
    found = locked_provider(tmp_path / "programs", tmp_path)
    assert found is not None
    assert (found.version, found.upserts) == ("4.29.0", False)


def test_a_range_is_not_a_version(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pulumi-kubernetes>=4.0,<5\n")
    assert locked_provider(tmp_path, tmp_path) is None
