"""Is a cluster ready for a release: over HTTP against the embedded API, with leftovers and missing permissions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from msgspec.structs import replace
from worlds import World, opened

from seatrial.cli import main
from seatrial.live import access
from seatrial.live.client import Client
from seatrial.live.preflight import Preflight, preflight
from seatrial.live.snapshot import releases_of, take
from seatrial.model.options import CheckOptions
from seatrial.model.resource import Body, Ref, with_metadata
from seatrial.plan.plans import plans

CHART = """
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - name: shop
          image: shop:1
          env:
            - {name: KEY, valueFrom: {secretKeyRef: {name: license, key: key}}}
            - {name: OLD, valueFrom: {secretKeyRef: {name: license, key: old}}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: shop}
spec: {selector: {matchLabels: {app: shop}}, endpoints: [{port: http}]}
"""


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as found:
        yield found


@pytest.fixture
def chart(tmp_path: Path) -> str:
    folder = tmp_path / "shop"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (folder / "templates" / "all.yaml").write_text(CHART)
    return str(folder)


def looked_at(world: World, chart: str, namespace: str = "default", client: Client | None = None) -> Preflight:
    options = CheckOptions((chart,), namespace=namespace)
    used = client or world.client
    snapshot = take(used, lambda found: releases_of(plans(replace(options, snapshot=found))))
    return preflight(used, snapshot, plans(replace(options, snapshot=snapshot)))


def said(found: Preflight) -> list[tuple[str, str, str]]:
    return [(point.state, point.what, point.why) for point in (*found.prerequisites, *found.leftovers)]


SERVICE_MONITORS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def test_prerequisites_are_listed_one_by_one_with_reason_and_place(world: World, chart: str) -> None:
    world.given("{apiVersion: v1, kind: Secret, metadata: {name: license}, stringData: {key: x}}")
    found = looked_at(world, chart)
    assert said(found) == [
        (
            "fails",
            "CustomResourceDefinition/servicemonitors.monitoring.coreos.com",
            "ServiceMonitor/default/shop is of this kind (monitoring.coreos.com/v1 must be served); "
            "prometheus-operator installs it; it does not exist",
        ),
        (
            "fails",
            "Secret/default/license",
            "Deployment/default/shop needs it (keys key, old); it does not have the key old",
        ),
    ]
    assert [str(point.place).rpartition("shop/")[2] for point in found.prerequisites if point.place] == [
        "templates/all.yaml:22",
        "templates/all.yaml:19",
    ]
    assert not found.is_ready


def test_a_cluster_with_everything_is_ready(world: World, chart: str) -> None:
    world.given(
        SERVICE_MONITORS + "---\n{apiVersion: v1, kind: Secret, metadata: {name: license}, data: {key: '', old: ''}}"
    )
    found = looked_at(world, chart)
    assert {point.state for point in found.prerequisites} == {"ok"}
    assert (found.leftovers, found.missing, found.is_ready) == ((), (), True)


READY = (
    SERVICE_MONITORS + "---\n{apiVersion: v1, kind: Secret, metadata: {name: license}, data: {key: '', old: ''}}\n---\n"
)
GATE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
  - name: gate.example.com
    clientConfig: {service: {name: gate, namespace: kube-system}, caBundle: ""}
    rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
    namespaceSelector: SELECTOR
    failurePolicy: POLICY
    sideEffects: None
    admissionReviewVersions: [v1]
"""


@pytest.mark.parametrize(
    ("policy", "selector", "state", "why"),
    [
        (
            "Fail",
            "{}",
            "fails",
            "Service/kube-system/gate does not exist: the API server refuses Deployment/default/shop",
        ),
        ("Ignore", "{}", "note", "Service/kube-system/gate does not exist; failurePolicy is Ignore"),
        (
            "Fail",
            "{matchLabels: {guarded: 'yes'}}",
            "note",
            "Service/kube-system/gate does not exist; it is not called for this release",
        ),
    ],
)
def test_a_webhook_without_a_backend(
    world: World, chart: str, policy: str, selector: str, state: str, why: str
) -> None:
    world.given(READY + GATE.replace("POLICY", policy).replace("SELECTOR", selector))
    points = looked_at(world, chart).leftovers
    assert [(point.state, point.why) for point in points] == [(state, why)]


def config_map(**metadata: object) -> Body:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": "default"}}
    return with_metadata(body, **metadata)


HELM = {"app.kubernetes.io/managed-by": "Helm"}
MARKS = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (config_map(), "exists and belongs to no release: helm refuses to adopt it"),
        (
            config_map(labels=HELM, annotations=dict(zip(MARKS, ("other", "default"), strict=True))),
            "exists and belongs to the Helm release default/other: helm refuses to adopt it",
        ),
        (
            config_map(annotations={"argocd.argoproj.io/tracking-id": "web:/ConfigMap:default/shop"}),
            "exists and belongs to the Argo CD Application web: helm refuses to adopt it",
        ),
        (config_map(labels=HELM, annotations=dict(zip(MARKS, ("shop", "default"), strict=True))), ""),
    ],
)
def test_objects_of_nobody_or_of_another_release(world: World, chart: str, body: Body, why: str) -> None:
    world.given(READY)
    world.put(body)
    assert [point.why for point in looked_at(world, chart).leftovers] == [why][: bool(why)]


def test_a_namespace_that_is_being_deleted(world: World, chart: str) -> None:
    world.given(READY)
    meta = {"name": "old", "uid": "u", "deletionTimestamp": "t"}
    remaining = {"status": "True", "message": "Some resources are remaining: pods. has 1"}
    conditions = [{"status": "False", "message": "no"}, remaining]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": {"conditions": conditions}}
    world.cluster.store.put(Ref("Namespace", "", "old"), namespace)
    assert [point.state for point in looked_at(world, chart).leftovers] == ["note"]
    found = looked_at(world, chart, "old")
    why = "is being deleted (Some resources are remaining: pods. has 1): ConfigMap/old/shop cannot be created in it"
    assert ("fails", "Namespace/old", why) in said(found)


def test_a_crd_with_a_stored_version_that_the_release_drops(world: World, chart: str) -> None:
    world.given(READY)
    ref = Ref("CustomResourceDefinition", "", "servicemonitors.monitoring.coreos.com", "apiextensions.k8s.io")
    crd = world.cluster.store.get(ref)
    assert crd is not None
    world.cluster.store.put(ref, {**crd, "status": {**crd["status"], "storedVersions": ["v1alpha1", "v1"]}})
    assert [point.state for point in looked_at(world, chart).leftovers] == ["note"]
    Path(chart, "crds").mkdir()
    Path(chart, "crds", "crd.yaml").write_text(SERVICE_MONITORS)
    found = looked_at(world, chart).leftovers
    why = "stores objects in v1alpha1, which the release drops: the API server refuses the CRD"
    assert [(point.state, point.why) for point in found] == [("fails", why)]


ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: looks}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: looks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: looks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ci}]
"""


def test_permissions_that_the_engine_needs(world: World, chart: str) -> None:
    world.given(READY + ROLE)
    found = looked_at(world, chart, client=world.as_user("ci"))
    assert not found.unread
    assert [access.sentence(denial) for denial in found.missing] == [
        f"{verb} {resource} in namespace default"
        for resource, verbs in (
            ("configmaps", ("create", "patch", "delete")),
            ("secrets", ("create", "update", "delete")),
            ("deployments.apps", ("create", "patch", "delete")),
            ("servicemonitors.monitoring.coreos.com", ("create", "patch", "delete")),
        )
        for verb in verbs
    ]


def test_what_cannot_be_read_is_unknown_and_the_rest_is_checked(
    world: World, chart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world.given(READY)
    world.proxy.faults.append(Fault("/secrets/license", 403, times=FOREVER))
    world.proxy.faults.append(Fault("/storageclasses", 500, times=2, retry_after="0"))
    config = tmp_path / "kubeconfig"
    config.write_text(world.kubeconfig())
    code = main(["preflight", chart, "--kubeconfig", str(config)])
    shown = capsys.readouterr().out
    assert code == 1
    assert shown.replace(chart, "shop") == SHOWN


SHOWN = """\
Prerequisites:
  unknown  Secret/default/license  shop/templates/all.yaml:18
           Deployment/default/shop needs it (keys key, old); it may not be read
  ok       CustomResourceDefinition/servicemonitors.monitoring.coreos.com  shop/templates/all.yaml:22
           ServiceMonitor/default/shop is of this kind (monitoring.coreos.com/v1 must be served); \
prometheus-operator installs it
Permissions: the engine has all that it needs
The cluster is not ready: 1 not known, 1 not allowed to be read.
Missing permissions:
  get secrets in namespace default
These Roles grant them; bind them to your user or ServiceAccount:
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: seatrial, namespace: default}
rules:
- apiGroups: ['']
  resources: [secrets]
  verbs: [get]
"""
