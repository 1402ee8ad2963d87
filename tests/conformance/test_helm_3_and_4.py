"""Where Helm 3 and Helm 4 end differently: the model of Helm 3, compared with the real binary if there is one.

`docs/helm-3-and-4.md` documents the same. `SEATRIAL_HELM3` and `SEATRIAL_HELM4` are the paths of the binaries.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.helm.other_version import with_client
from seatrial.helm.binary import find
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import Rehearsal, Schedule
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans
from seatrial.play.rehearse import rehearse

CHART = "apiVersion: v2\nname: demo\nversion: 0.1.0\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {color: '{{ .Values.color }}'}\n"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, env: [{name: COLOR, value: '{{ .Values.color }}'}]}]}
"""
SCALED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec: {replicas: 5}
"""
LOCKS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: locks.canal.example}
spec:
  group: canal.example
  scope: Namespaced
  names: {kind: Lock, plural: locks, singular: lock}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
"""
LOCK = "apiVersion: canal.example/v1\nkind: Lock\nmetadata: {name: north}\nspec: {}\n"
GATE = """
apiVersion: v1
kind: Service
metadata: {name: gate}
spec: {selector: {app: gate}, ports: [{port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate}
spec:
  selector: {matchLabels: {app: gate}}
  template:
    metadata: {labels: {app: gate}}
    spec: {containers: [{name: gate, image: gate, ports: [{containerPort: 443}]}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
  - name: locks.canal.example
    admissionReviewVersions: [v1]
    sideEffects: None
    clientConfig:
      service: {name: gate, namespace: default}
      caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=
    rules: [{apiGroups: [canal.example], apiVersions: [v1], resources: [locks], operations: [DELETE]}]
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: runner}\n"
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
KEEPER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: keeper}
spec:
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      containers: [{name: keeper, image: keeper, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
TWICE = "steps: [{install: chart}, {upgrade: chart, set: [color=blue]}, {uninstall: {}}]\n"


def hook(text: str, policy: str = "") -> str:
    """An object as a hook of every install and upgrade."""
    annotations = 'helm.sh/hook: "pre-install,pre-upgrade"' + (
        f", helm.sh/hook-delete-policy: {policy}" if policy else ""
    )
    return text.replace("metadata: {", f"metadata: {{annotations: {{{annotations}}}, ", 1)


class Difference(Struct, frozen=True):
    """A trial, and how its steps end with each version."""

    files: dict[str, str]
    helm_3: str
    helm_4: str
    trial: str = TWICE
    schedule: Schedule = "eager"
    helm_4_3: str = ""
    """If that differs from Helm 4.2."""
    helm_4_0: str = ""


DIFFERENCES = {
    "a hook that no policy deletes is run again": Difference(
        {"chart/templates/hook.yaml": hook(CONFIG, "never")}, "ok failed ok", "ok ok ok"
    ),
    "a definition is a hook": Difference(
        {"chart/templates/locks.yaml": hook(LOCKS), "chart/templates/config.yaml": CONFIG}, "ok failed ok", "ok ok ok"
    ),
    "an object is a hook and plain": Difference(
        {"chart/templates/a.yaml": hook(ACCOUNT), "chart/templates/b.yaml": ACCOUNT}, "failed ok ok", "ok ok ok"
    ),
    "an object is written twice": Difference(
        {"chart/templates/a.yaml": CONFIG, "chart/templates/b.yaml": CONFIG}, "failed ok ok", "ok ok ok"
    ),
    "a user scales what the chart scales": Difference(
        {"chart/templates/web.yaml": WEB, "scaled.yaml": SCALED},
        "ok ok ok ok",
        "ok ok failed ok",
        "steps: [{install: chart}, {apply: scaled.yaml}, {upgrade: chart, set: [color=blue]}, {uninstall: {}}]\n",
    ),
    "a field is unknown": Difference(
        {"chart/templates/web.yaml": WEB.replace("replicas:", "replica:")},
        "ok ok ok",
        "failed failed ok",
        helm_4_0="failed ok ok",
    ),
    "the kind of crds is used at once": Difference(
        {"chart/crds/locks.yaml": LOCKS, "chart/templates/lock.yaml": LOCK},
        "ok ok ok",
        "failed ok ok",
        schedule="lazy",
        helm_4_3="ok ok ok",
    ),
    "a claim in use is a hook": Difference(
        {"chart/templates/claim.yaml": hook(CLAIM), "chart/templates/keeper.yaml": KEEPER}, "ok hung ok", "ok ok ok"
    ),
    "a webhook judges the deletion of what goes after it": Difference(
        {"chart/templates/gate.yaml": GATE, "chart/templates/lock.yaml": LOCK, "locks.yaml": LOCKS},
        "ok ok failed",
        "ok ok ok",
        f"assume: {{crds: [locks.yaml]}}\n{TWICE}",
    ),
}


def planned(folder: Path, difference: Difference) -> Plan:
    files = {"chart/Chart.yaml": CHART, "chart/values.yaml": "color: red\n", "trial.yaml": difference.trial}
    for name, text in {**files, **difference.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return next(iter(plans(CheckOptions(inputs=(str(folder / "trial.yaml"),)))))


def ends(rehearsal: Rehearsal) -> str:
    return " ".join(step.outcome for step in rehearsal.steps)


def simulated(plan: Plan) -> Plan:
    return replace(plan, steps=with_client(plan.steps, simulated=True))


def left(rehearsal: Rehearsal) -> list[tuple[object, ...]]:
    """What each step did, and how it ended."""
    return [(s.outcome, s.created, s.deleted, s.recreated, s.missing, s.orphans) for s in rehearsal.steps]


@pytest.fixture(params=list(DIFFERENCES.values()), ids=list(DIFFERENCES))
def difference(request: pytest.FixtureRequest) -> Difference:
    assert isinstance(request.param, Difference)
    return request.param


def test_the_two_versions_end_differently(difference: Difference, tmp_path: Path) -> None:
    plan = planned(tmp_path, difference)
    assert ends(rehearse(plan, difference.schedule)) == difference.helm_4
    assert ends(rehearse(simulated(plan), difference.schedule)) == difference.helm_3


@pytest.mark.parametrize(("name", "expected"), [("SEATRIAL_HELM3", "helm_3"), ("SEATRIAL_HELM4", "helm_4")])
def test_the_real_binaries_end_the_same_way(difference: Difference, tmp_path: Path, name: str, expected: str) -> None:
    if name not in os.environ:
        pytest.skip(f"no helm binary: {name} names none")
    plan = planned(tmp_path, difference)
    binary = find(os.environ[name])
    newer = difference.helm_4_3 if binary.major == 4 and not binary.version.startswith(("4.0", "4.1", "4.2")) else ""
    newer = difference.helm_4_0 if binary.version.startswith("4.0") else newer
    played = rehearse(replace(plan, steps=with_client(plan.steps, binary)), difference.schedule)
    assert ends(played) == (newer or getattr(difference, expected))
    if expected == "helm_3":
        assert left(rehearse(simulated(plan), difference.schedule)) == left(played)
