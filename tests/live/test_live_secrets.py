"""Commands that read a cluster show no value of a Secret, of the release or of the cluster."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from worlds import deployed_shop

from seatrial.cli import main

PASSWORD = "correct-horse-battery"
SHOWN = re.compile("correct-horse|" + base64.b64encode(PASSWORD.encode()).decode()[:16])
CHART = """
apiVersion: v1
kind: Secret
metadata: {name: shop-login}
immutable: true
stringData: {password: PASSWORD, user: root}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:1", envFrom: [{secretRef: {name: shop-login}}]}]}
""".replace("PASSWORD", PASSWORD)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster in which Helm has deployed the chart, whose next version has another password."""
    monkeypatch.chdir(tmp_path)
    changed = CHART.replace(PASSWORD, f"{PASSWORD}-2")
    (tmp_path / "objects.yaml").write_text(changed)
    with deployed_shop(tmp_path, CHART, changed):
        yield


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "command",
    [
        ["snapshot", "shop", "-o", "written"],
        ["preflight", "shop"],
        ["verify", "shop"],
        ["compare-live", "shop", "-o", "written"],
        ["check", "shop", "--live", "-o", "full", "-o", "json=written", "-o", "html=written.html"],
        ["apply", "-f", "objects.yaml", "--yes", "--no-wait"],
        ["explain", "--live", "release/shop"],
    ],
    ids=lambda command: command[0],
)
def test_no_command_shows_a_value_of_a_secret(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--kubeconfig", "kubeconfig"]) in (0, 1)
    said = capfd.readouterr()
    texts = [said.out, said.err, *(path.read_text() for path in Path().glob("written*"))]
    assert "".join(texts)
    assert [found[0] for text in texts if (found := SHOWN.search(text))] == []
