"""Charts that files of a repository install before an engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sources.bootstrap import set_up_before
from seatrial.sources.repos import Repos


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("bootstrap/helmfile.yaml", "releases: [{name: cm, chart: jetstack/cert-manager}]\n"),
        ("clusters/east/bootstrap/helmfile.yaml", "releases: [{name: cm, chart: jetstack/cert-manager}]\n"),
        ("scripts/setup.sh", "helm install cm jetstack/cert-manager\n"),
        ("terraform/addons.tf", 'resource "helm_release" "cm" {\n  chart = "cert-manager"\n}\n'),
    ],
)
def test_a_file_that_names_the_chart_installs_it(file: str, text: str, tmp_path: Path) -> None:
    assert list(_found(tmp_path, file, text)) == ["cert-manager"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("bootstrap/apps.yaml", "kind: Application\nspec: {source: {chart: cert-manager}}\n"),
        ("bootstrap/release.yaml", "kind: HelmRelease\nspec: {chart: {spec: {chart: cert-manager}}}\n"),
        ("scripts/setup.sh", "# cert-manager comes with Flux\nflux install\n"),
        ("scripts/setup.sh", "helm install cm jetstack/cert-manager-csi-driver\n"),
        ("terraform/roles.tf", 'resource "aws_iam_role" "dns" {\n  name = "cert-manager"\n}\n'),
        ("apps/cert-manager.yaml", "chart: cert-manager\n"),
    ],
)
def test_what_an_engine_installs_or_a_comment_names_does_not_count(file: str, text: str, tmp_path: Path) -> None:
    assert not _found(tmp_path, file, text)


def _found(folder: Path, file: str, text: str) -> dict[str, str]:
    (folder / ".git").mkdir()
    path = folder / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return set_up_before(str(folder), Repos(), ["cert-manager"])
