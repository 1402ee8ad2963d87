"""Kustomizations of Flux on the embedded cluster: order, stages, pruning, waiting, force."""

from __future__ import annotations

import msgspec

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.flux.fleet import delete_fleet, sync_fleet
from seatrial.engines.flux.objects import FluxMemory, FluxObjects, IgnoredDifference, Kustomization
from seatrial.engines.flux.order import in_order, stages
from seatrial.engines.script import Command, DescribedObject, play
from seatrial.model.resource import Body, Ref, ref_of
from seatrial.model.timeline import Schedule
from seatrial.play.in_process import InProcess

GROUP = "kustomize.toolkit.fluxcd.io"
CLUSTER_SCOPED = (
    "ValidatingWebhookConfiguration",
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "StorageClass",
    "PriorityClass",
)


def test_objects_are_applied_by_kind_and_webhooks_last() -> None:
    kinds = ["ValidatingWebhookConfiguration", "Gate", "Deployment", "StorageClass", "Namespace", "Secret"]
    targets = [_target({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}) for kind in kinds]
    ordered = [target.ref.kind for target in in_order(targets)]
    assert ordered == ["Namespace", "StorageClass", "Secret", "Deployment", "Gate", "ValidatingWebhookConfiguration"]
    staged = [[target.ref.kind for target in stage] for stage in stages(targets)]
    assert staged == [["Namespace"], ["StorageClass"], ordered[2:]]


def test_one_rejected_object_blocks_its_whole_stage() -> None:
    world = _World()
    ended = world.sync(_kustomization("all", _namespace("new"), _config("fine"), _config("lost", namespace="nowhere")))
    words = 'ConfigMap/nowhere/lost not found: namespaces "nowhere" not found'
    assert (ended.outcome, ended.error) == ("failed", f"Kustomization/default/all: {words}")
    assert world.has("Namespace", "", "new")
    assert not world.has("ConfigMap", "default", "fine")


def test_a_dropped_object_is_pruned_unless_pruning_is_disabled_on_it() -> None:
    world = _World()
    kept = _config("kept", annotations={f"{GROUP}/prune": "disabled"})
    world.sync(_kustomization("all", _config("a"), _config("b"), kept))
    assert world.sync(_kustomization("all", _config("a"))).outcome == "ok"
    assert [world.has("ConfigMap", "default", name) for name in ("a", "b", "kept")] == [True, False, True]


def test_an_object_taken_over_by_another_kustomization_is_not_pruned() -> None:
    world = _World()
    world.sync(_kustomization("old", _config("moved")))
    world.sync(_kustomization("old", _config("moved")), _kustomization("young", _config("moved")))
    world.sync(_kustomization("old"), _kustomization("young", _config("moved")))
    assert world.has("ConfigMap", "default", "moved")


def test_a_deletion_runs_in_reverse_kind_order() -> None:
    world = _World()
    one = _kustomization("all", _namespace("new"), _config("a"), _service_account("b"))
    world.sync(one)
    world.delete(one)
    gone = [event.object.kind for event in world.cluster.timeline() if event.actor == "flux" and event.verb == "delete"]
    assert gone == ["Kustomization", "ConfigMap", "ServiceAccount", "Namespace"]


def test_a_pruned_kustomization_prunes_its_objects() -> None:
    world = _World()
    inner = _kustomization("inner", _config("a"))
    world.sync(_kustomization("outer", _declared(inner)), inner)
    assert world.has("ConfigMap", "default", "a")
    assert world.sync(_kustomization("outer")).outcome == "ok"
    assert not world.has("ConfigMap", "default", "a")


def test_an_endless_wait_names_the_objects_that_are_not_current() -> None:
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    claim: Body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**size, "storageClassName": "none"},
    }
    ended = _World().sync(_kustomization("all", claim, wait=True, timeout="2m"))
    waits = "timeout waiting for: [PersistentVolumeClaim/default/data status: 'InProgress']"
    assert ended.error == f"Kustomization/default/all: health check failed after 2m: {waits}"


def test_a_dependent_of_an_unready_kustomization_does_not_start() -> None:
    world = _World()
    broken = _kustomization("broken", _config("lost", namespace="nowhere"))
    after = _kustomization("after", _config("a"), depends_on=(broken.ref,))
    ended = world.sync(broken, after)
    assert "Kustomization/default/after: dependency 'default/broken' is not ready" in ended.error
    assert not world.has("ConfigMap", "default", "a")


def test_an_immutable_object_is_recreated_only_with_force() -> None:
    world = _World()
    world.sync(_kustomization("all", _config("fixed", value="1")))
    refused = world.sync(_kustomization("all", _config("fixed", value="2")))
    assert refused.error.startswith("Kustomization/default/all: ConfigMap/default/fixed dry-run failed (Invalid): ")
    assert world.sync(_kustomization("all", _config("fixed", value="2"), force=True)).outcome == "ok"


def test_a_kustomization_that_came_too_early_is_retried() -> None:
    late = _kustomization("a-needs", _config("lost", namespace="late"))
    ended = _World().sync(late, _kustomization("b-brings", _namespace("late")))
    assert (ended.outcome, ended.warnings) == ("ok", ("Kustomization/default/a-needs: Ready at attempt 2",))


def test_a_suspended_kustomization_that_was_never_ready_blocks_its_dependents() -> None:
    first = msgspec.structs.replace(_kustomization("first", _config("a")), suspended=True)
    ended = _World().sync(first, _kustomization("second", _config("b"), depends_on=(first.ref,)))
    words = "Kustomization/default/second: dependency 'default/first' is not ready"
    assert (ended.outcome, ended.error) == ("failed", words)


def test_a_kustomization_suspended_later_stays_ready_and_unchanged() -> None:
    world, first = _World(), _kustomization("first", _config("a"))
    world.sync(first)
    later = msgspec.structs.replace(first, targets=(), suspended=True)
    ended = world.sync(later, _kustomization("second", _config("b"), depends_on=(first.ref,)))
    assert ended.outcome == "ok"
    assert [world.has("ConfigMap", "default", name) for name in ("a", "b")] == [True, True]


def test_an_ignored_live_object_is_neither_changed_nor_pruned() -> None:
    world = _World()
    world.sync(_kustomization("all", _config("a"), _config("b")))
    for name, switch in (("a", {f"{GROUP}/reconcile": "disabled"}), ("b", {f"{GROUP}/ssa": "ignore"})):
        world.by_hand(name, switch)
    world.sync(_kustomization("all", _config("a")))
    assert [world.value(name) for name in ("a", "b")] == ["9", "9"]


def test_kubectls_fields_are_removed_and_those_of_others_stay() -> None:
    world = _World()
    merged = _config("merged", annotations={f"{GROUP}/ssa": "Merge"})
    one = _kustomization("all", _config("a"), merged)
    world.sync(one)
    for manager in ("kubectl-edit", "autoscaler"):
        for name in ("a", "merged"):
            body: Body = {"data": {manager: "9"}}
            world.client.do(Command("merge", "v1", "ConfigMap", "default", name, body, manager))
    assert world.sync(one).outcome == "ok"
    assert [sorted(world.data(name)) for name in ("a", "merged")] == [
        ["autoscaler", "v"],
        ["autoscaler", "kubectl-edit", "v"],
    ]


def test_ignored_fields_are_left_to_others_once_they_exist() -> None:
    world = _World()
    ignored = (IgnoredDifference(("/data/v",), kind="ConfigMap", name="a.*"),)
    one = msgspec.structs.replace(_kustomization("all", _config("a"), _config("b")), ignored=ignored)
    world.sync(one)
    for name in ("a", "b"):
        world.by_hand(name)
    world.sync(one)
    assert [world.value(name) for name in ("a", "b")] == ["9", ""]


def test_a_rejected_prune_is_remembered_and_retried() -> None:
    world = _World()
    world.sync(_kustomization("all", _config("a"), _GUARD))
    refused = world.sync(_kustomization("all", _GUARD))
    assert refused.error.startswith(
        "Kustomization/default/all: delete failed, errors: ConfigMap/default/a delete failed: Internal error occurred: "
        'failed calling webhook "guard.example.org": '
    )
    assert world.sync(_kustomization("all")).outcome == "ok"
    assert not world.has("ConfigMap", "default", "a")


def test_a_deletion_may_wait_for_its_objects_and_ends_at_the_timeout() -> None:
    world = _World()
    held = _config("a")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    one = msgspec.structs.replace(_kustomization("all", held), deletion_policy="WaitForTermination")
    world.sync(one)
    assert world.delete(one).outcome == "ok"
    said = [event.message for event in world.cluster.timeline() if event.effect == "said"]
    assert said[-1] == "failed to wait for resources termination"


def test_a_ready_expression_replaces_the_ready_check() -> None:
    world = _World()
    labelled: Body = {"metadata": {"name": "first", "labels": {"app/version": "2"}}}
    first = msgspec.structs.replace(_kustomization("first", _config("lost", namespace="nowhere")), declared=labelled)
    expression = "dep.metadata.labels['app/version'] == '%s'"
    after = _kustomization("after", _config("a"), depends_on=(first.ref,))
    hopes = msgspec.structs.replace(after, ready_exprs={first.ref: expression % 3})
    words = "dependency 'default/first' is not ready according to readyExpr eval"
    assert f"Kustomization/default/after: {words}" in world.sync(first, hopes).error
    world.sync(first, msgspec.structs.replace(after, ready_exprs={first.ref: expression % 2}))
    assert world.has("ConfigMap", "default", "a")


def test_an_expression_over_a_missing_field_is_an_error() -> None:
    first = _kustomization("first", _config("b"))
    after = _kustomization("after", _config("a"), depends_on=(first.ref,))
    expression = "dep.metadata.labels['app/version'] == '2'"
    ended = _World().sync(first, msgspec.structs.replace(after, ready_exprs={first.ref: expression}))
    words = f"failed to evaluate the CEL expression '{expression}': no such key: labels"
    assert ended.error == f"Kustomization/default/after: {words}"


class _World:
    """A cluster with the definition of Kustomizations, and a Flux that remembers."""

    def __init__(self, schedule: Schedule = "eager") -> None:
        self.cluster = Cluster("1.34", schedule)
        self.memory = FluxMemory()
        self.client = InProcess(self.cluster, "flux")

    def sync(self, *kustomizations: Kustomization) -> Ended:
        roots = (_target(_DEFINITION), *(_target(_declared(one)) for one in kustomizations))
        return play(sync_fleet(FluxObjects(roots, {one.ref: one for one in kustomizations}), self.memory), self.client)

    def delete(self, one: Kustomization) -> Ended:
        return play(delete_fleet(FluxObjects((_target(_declared(one)),), {one.ref: one}), self.memory), self.client)

    def by_hand(self, name: str, annotations: Body | None = None) -> None:
        body: Body = {"metadata": {"annotations": annotations or {}}, "data": {"v": "9"}}
        self.client.do(Command("merge", "v1", "ConfigMap", "default", name, body, "kubectl-edit"))

    def value(self, name: str) -> str:
        return str(self.data(name)["v"])

    def data(self, name: str) -> Body:
        return dict((self.cluster.store.get(Ref("ConfigMap", "default", name)) or {})["data"])

    def has(self, kind: str, namespace: str, name: str) -> bool:
        return self.cluster.store.get(Ref(kind, namespace, name)) is not None


_GUARD: Body = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "guard"},
    "webhooks": [
        {
            "name": "guard.example.org",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "guard", "namespace": "default"}},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
            ],
        }
    ],
}
_DEFINITION: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"kustomizations.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Kustomization", "plural": "kustomizations"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def _declared(one: Kustomization) -> Body:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Kustomization",
        "metadata": {"name": one.name, "namespace": one.namespace},
    }


def _kustomization(
    name: str,
    *bodies: Body,
    wait: bool = False,
    force: bool = False,
    timeout: str = "",
    depends_on: tuple[Ref, ...] = (),
) -> Kustomization:
    targets = tuple(_target(body) for body in bodies)
    return Kustomization(name, "default", targets, depends_on, wait, force=force, timeout=timeout)


def _target(body: Body) -> DescribedObject:
    return DescribedObject(ref_of(body, namespaced=body["kind"] not in CLUSTER_SCOPED, namespace="default"), body)


def _config(name: str, *, namespace: str = "default", value: str = "", annotations: Body | None = None) -> Body:
    meta: Body = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"v": value}, "immutable": bool(value)}


def _namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _service_account(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
