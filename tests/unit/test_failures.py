"""Why an engine fails, as data: the refused requests that its error is about, and what else it complains of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import argocdworld
import pulumiworld
import pytest
from chartfolder import CHART, write

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.act import HelmAct, Manifest
from seatrial.engines.engine import PlannedStep, SeenByCluster
from seatrial.engines.flux.fleet import sync_fleet
from seatrial.engines.flux.objects import FluxMemory, FluxObjects, Kustomization
from seatrial.engines.helm.errors import failure_of
from seatrial.engines.helm.v3 import Helm3Act, play_act
from seatrial.engines.kubectl.commands import apply
from seatrial.engines.script import DescribedObject, play
from seatrial.helm import sdk as helmsdk
from seatrial.model.engine import EngineId
from seatrial.model.refusal import Failure, Fault, GroupVersionKind
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Origin, Ref, ref_of
from seatrial.model.timeline import Rehearsal
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.in_process import InProcess
from seatrial.play.rehearse import rehearse

FINE: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fine", "namespace": "default"}}
LOST: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost", "namespace": "nowhere"}}
GATE: Body = {"apiVersion": "canal.example/v1", "kind": "Gate", "metadata": {"name": "north", "namespace": "default"}}
GATES = GroupVersionKind("canal.example", "v1", "Gate")
NORTH = Ref("Gate", "default", "north", "canal.example")
FLUX = "kustomize.toolkit.fluxcd.io"
CRD: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"kustomizations.{FLUX}"},
    "spec": {
        "group": FLUX,
        "scope": "Namespaced",
        "names": {"kind": "Kustomization", "plural": "kustomizations"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}
NOWHERE = Ref("Namespace", "", "nowhere")


def by_kubectl(cluster: Cluster, *bodies: Body) -> Ended:
    return play(apply([Manifest(body) for body in bodies], "default"), InProcess(cluster, "kubectl"))


def by_helm_3(cluster: Cluster, *bodies: Body) -> Ended:
    resources = tuple(Resource(ref_of(body), body, Origin("web.yaml")) for body in bodies)
    act = Helm3Act(Step("install"), "web", "default", {}, Release("web", "default", "./web", resources))
    return play(play_act(act), InProcess(cluster, "helm"))


def by_argocd(cluster: Cluster, *bodies: Body) -> Ended:
    world = argocdworld.World()
    world.cluster = cluster
    return world.sync(*bodies)


def by_flux(cluster: Cluster, *bodies: Body, wait: bool = False) -> Ended:
    targets = tuple(DescribedObject(ref_of(body), body) for body in bodies)
    kustomization = Kustomization("all", "default", targets, wait=wait)
    declared = {"apiVersion": f"{FLUX}/v1", "kind": "Kustomization"}
    roots = (
        DescribedObject(Ref("CustomResourceDefinition", "", str(CRD["metadata"]["name"]), "apiextensions.k8s.io"), CRD),
        DescribedObject(kustomization.ref, {**declared, "metadata": {"name": "all", "namespace": "default"}}),
    )
    return play(
        sync_fleet(FluxObjects(roots, {kustomization.ref: kustomization}), FluxMemory()), InProcess(cluster, "flux")
    )


def by_pulumi(cluster: Cluster, *bodies: Body) -> Ended:
    world = pulumiworld.World()
    world.cluster, world._client = cluster, InProcess(cluster, "pulumi")
    return world.up(*(pulumiworld.resource(body) for body in bodies))


ENGINES = (by_kubectl, by_helm_3, by_argocd, by_flux, by_pulumi)
Engine = Callable[..., Ended]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_names_the_request_that_was_refused(engine: Engine) -> None:
    cluster = Cluster()
    ended = engine(cluster, FINE, LOST)
    assert ended.outcome == "failed"
    refused = [cluster.timeline()[cluster.recorder.places()[index]] for index in ended.failure.events]
    assert [(event.object.name, event.effect, event.missing) for event in refused] == [("lost", "refused", (NOWHERE,))]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_names_the_kind_that_is_not_served(engine: Engine) -> None:
    ended = engine(Cluster(), GATE)
    assert ended.outcome == "failed"
    unserved = [fault for fault in ended.failure.faults if fault.of == "unserved"]
    assert unserved == [Fault("unserved", NORTH, GATES)]
    assert ended.failure.events == ()


def test_a_sync_names_the_failure_of_each_task() -> None:
    ended = by_argocd(Cluster(), FINE, LOST)
    failed = {task.object.name: task.failure for task in ended.operations[0].tasks if task.failure}
    assert failed == {"lost": ended.failure}


def test_a_role_in_a_missing_namespace_names_it_although_nothing_was_written() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    ended = by_argocd(Cluster(), {**role, "metadata": {"name": "reader", "namespace": "nowhere"}})
    assert ended.failure == Failure(faults=(Fault("not-found", NOWHERE),))


def test_flux_names_why_each_attempt_failed() -> None:
    cluster = Cluster()
    ended = by_flux(cluster, FINE, LOST)
    (one,) = ended.reconciled
    assert one.failure == ended.failure
    said = [event for event in cluster.timeline() if event.object == one.object and event.effect == "said"]
    assert [event.failure for event in said] == [ended.failure]


def test_flux_names_what_it_waits_for_and_its_status() -> None:
    claim: Body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim["metadata"]["namespace"] = "default"
    ended = by_flux(Cluster(), claim, wait=True)
    assert ended.failure.faults == (Fault("not-ready", ref_of(claim), status="InProgress"),)


def test_pulumi_names_the_resource_that_failed() -> None:
    one = pulumiworld.resource(LOST)
    ended = pulumiworld.World().up(one)
    assert [(fault.of, fault.urn) for fault in ended.failure.faults] == [("not-deployed", one.urn)]


def test_helm_3_names_what_it_does_not_own() -> None:
    cluster = Cluster()
    by_kubectl(cluster, FINE)
    assert by_helm_3(cluster, FINE).failure.faults == (Fault("not-owned", Ref("ConfigMap", "default", "fine")),)


def test_helm_3_names_the_refusal_that_it_keeps_to_itself() -> None:
    cluster = Cluster()
    by_helm_3(cluster, FINE)
    hook = {"name": "no.harbour.example", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    client = {"service": {"name": "absent", "namespace": "default"}}
    webhooks = [{**hook, "rules": [rule], "clientConfig": client}]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    assert by_kubectl(cluster, {**kind, "metadata": {"name": "no"}, "webhooks": webhooks}).outcome == "ok"
    release = Release("web", "default", "./web", (Resource(ref_of(FINE), FINE, Origin("web.yaml")),))
    act = Helm3Act(Step("uninstall"), "web", "default", {("default", "web", 1): release})
    ended = play(play_act(act), InProcess(cluster, "helm"))
    assert ended.error == "failed to delete release: web"
    (index,) = ended.failure.events
    refusal = cluster.timeline()[cluster.recorder.places()[index]].refusal
    assert refusal is not None and refusal.call is not None and refusal.call.webhook == "no.harbour.example"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ("UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress", Fault("operation-in-progress")),
        ("INSTALLATION FAILED: cannot reuse a name that is still in use", Fault("name-in-use")),
        ('UPGRADE FAILED: "web" has no deployed releases', Fault("no-deployed-release")),
        (
            'unable to continue with install: ConfigMap "fine" in namespace "default" exists and cannot be imported '
            "into the current release: invalid ownership metadata; ...",
            Fault("not-owned", Ref("ConfigMap", "default", "fine")),
        ),
        (
            'cannot patch: no ConfigMap with the name "fine" found',
            Fault("not-in-revision", Ref("ConfigMap", "", "fine")),
        ),
        (
            "warning: Hook pre-rollback shop/templates/check.yaml failed: no",
            Fault("hook-failed", file="shop/templates/check.yaml"),
        ),
        (
            "failed post-install: resource Job/default/fill not ready. status: Failed, message: Job Failed",
            Fault("not-ready", Ref("Job", "default", "fill", "batch"), status="Failed"),
        ),
        (
            'resource mapping not found for name: "north" namespace: "default" from "": no matches for kind "Gate" in '
            'version "canal.example/v1"\nensure CRDs are installed first',
            Fault("unserved", NORTH, GATES),
        ),
        (
            "unable to build kubernetes objects from current release manifest: resource mapping not found for name: "
            '"north" namespace: "default" from "": no matches for kind "Gate" in version "canal.example/v1"',
            Fault("unserved", NORTH, GATES, during="current-manifest"),
        ),
    ],
)
def test_an_error_of_helm_is_read_once(error: str, fault: Fault) -> None:
    live = (Ref("Job", "default", "fill", "batch"), Ref("ConfigMap", "default", "fine"))
    assert failure_of(error, SeenByCluster(live=live)) == Failure(faults=(fault,))


def test_the_real_helm_names_the_request_that_was_refused(tmp_path: Path) -> None:
    lost = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: nowhere}\n"
    write(tmp_path, {"Chart.yaml": CHART, "templates/lost.yaml": lost})
    rehearsal = _installed(tmp_path)
    (index,) = rehearsal.steps[0].failure.events
    event = rehearsal.timeline[index]
    assert (event.object.name, event.effect, event.missing) == ("lost", "refused", (NOWHERE,))


def test_the_real_helm_names_the_kind_that_is_not_served(tmp_path: Path) -> None:
    gate = "apiVersion: canal.example/v1\nkind: Gate\nmetadata: {name: north}\n"
    write(tmp_path, {"Chart.yaml": CHART, "templates/gate.yaml": gate})
    faults = _installed(tmp_path).steps[0].failure.faults
    assert faults == (Fault("unserved", Ref("Gate", "", "north", "canal.example"), GATES),)


def _installed(folder: Path) -> Rehearsal:
    act = HelmAct("install", "demo", "default", lambda: helmsdk.Chart.load(folder))
    step = PlannedStep(Step("install"), "helm", "demo", "default", act)
    return rehearse(Plan(EngineId("helm"), (step,), Case("", (None,))), "eager")
