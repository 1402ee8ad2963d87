"""The real Pulumi in the sandbox, compared with the simulated one by `--compare-engines`. Programs are in YAML."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seatrial.check import run_both
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import SCHEDULES, Schedule

TOOLS = ("pulumi", "pulumi-language-yaml", "pulumi-resource-kubernetes")
PROJECT = "name: shop\nruntime: yaml\nresources:\n"
NAMESPACE = "  team: {type: kubernetes:core/v1:Namespace, properties: {metadata: {name: team}}}\n"
SETTINGS = """
  settings:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: settings, namespace: "${team.metadata.name}"}, data: {color: COLOR}}
"""
WEB = """
  web:
    type: kubernetes:apps/v1:Deployment
    properties:
      metadata: {name: web, namespace: "${team.metadata.name}"}
      spec:
        selector: {matchLabels: {app: web}}
        template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
    options: {dependsOn: ["${settings}"]}
"""
SERVICE = """
  service:
    type: kubernetes:core/v1:Service
    properties:
      metadata: {name: web, namespace: "${team.metadata.name}"}
      spec: {selector: {app: web}, ports: [{port: 80}]}
    options: {dependsOn: ["${web}"]}
"""
TRIALS = {
    "created, unchanged and replaced": (SETTINGS, SETTINGS, SETTINGS.replace("COLOR", "red")),
    "a Deployment that is awaited": (SETTINGS + WEB,),
    "a Service that is awaited": (SETTINGS + WEB + SERVICE,),
    "a key that is refused": (SETTINGS, SETTINGS.replace("color", "not a key")),
    "dropped": (SETTINGS + WEB, SETTINGS),
}

pytestmark = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in TOOLS), reason=f"not all on the PATH: {', '.join(TOOLS)}"
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("programs", list(TRIALS.values()), ids=list(TRIALS))
def test_a_program_deploys_the_same(programs: tuple[str, ...], schedule: Schedule, tmp_path: Path) -> None:
    steps = ""
    for number, resources in enumerate(programs):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}/Pulumi.yaml").write_text(PROJECT + NAMESPACE + resources)
        steps += f"  - up: v{number}\n"
    (tmp_path / "trial.yaml").write_text(f"engine: pulumi\nsteps:\n{steps}  - destroy\n")
    options = CheckOptions(inputs=(str(tmp_path / "trial.yaml"),), pulumi_binary="pulumi", compare_engines=True)
    one, found = run_both(options, schedule)
    assert one.rehearsal.engine.real
    assert found.differences == ()
