"""When the other major version of Helm need not be rehearsed: it would do the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.engines.helm import alike
from seatrial.engines.helm.v3_objects import INSTALL_ORDER
from seatrial.helm import kindorder
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import SCHEDULES, Rehearsal, Schedule
from seatrial.plan.plans import plans
from seatrial.play import other_version
from seatrial.play.rehearse import rehearse

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
HOOK = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: marks, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
"""


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
BALANCER = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
"""


def compared(folder: Path, case: str = "", schedule: Schedule = "lazy", **files: str) -> Rehearsal:
    write(folder, {"Chart.yaml": CHART, **{f"templates/{name}.yaml": text for name, text in files.items()}})
    plan = next(plan for plan in plans(CheckOptions((str(folder),))) if plan.case.name == case)
    return other_version.compared(rehearse(plan, schedule), plan)


def test_plain_objects_are_not_compared(tmp_path: Path) -> None:
    assert compared(tmp_path, config=config_map("settings")).otherwise is None


@pytest.mark.parametrize("text", [CLAIM, HOOK], ids=["claim", "hook"])
def test_what_the_versions_may_treat_differently_is_compared(tmp_path: Path, text: str) -> None:
    assert compared(tmp_path, config=config_map("settings"), other=text).otherwise is not None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_that_ends_for_both_versions_is_not_compared(tmp_path: Path, schedule: Schedule) -> None:
    found = compared(tmp_path, "--wait", schedule, config=config_map("settings"), web=DEPLOYMENT)
    assert (found.steps[0].flags, found.otherwise) == (("--wait",), None)


def test_a_wait_that_ends_for_helm_4_alone_is_compared(tmp_path: Path) -> None:
    """A Service without an address is ready for Helm 4."""
    assert compared(tmp_path, "--wait", web=DEPLOYMENT, service=BALANCER).otherwise is not None


def test_both_versions_have_the_same_order_of_these_kinds() -> None:
    new = [kind for kind in kindorder.INSTALL_ORDER if kind in alike.KINDS]
    assert new == [kind for kind in INSTALL_ORDER if kind in alike.KINDS]
    assert set(new) == alike.KINDS
