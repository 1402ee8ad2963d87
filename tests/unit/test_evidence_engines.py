"""Evidence about Argo CD, Flux, Pulumi and the two versions of Helm, on recorded rehearsals."""

from __future__ import annotations

import pytest
from recordings import recorded

from seatrial.evidence.argocd import app_order, blocked, syncs
from seatrial.evidence.argocd import unserved as argocd_unserved
from seatrial.evidence.flux import order, reconciliations, waits
from seatrial.evidence.pulumi import dependencies, programs
from seatrial.model.resource import Ref
from seatrial.play.stored import StoredRehearsal

CAUSES: tuple[blocked.Cause, ...] = ("never", "claim", "later", "post-sync")


@pytest.mark.parametrize(
    ("name", "cause", "waited"),
    [
        ("argocd-never-healthy", "never", "ConfigMap/default/models"),
        ("argocd-pvc-wave", "claim", "PersistentVolumeClaim/default/model-storage-pvc"),
        ("argocd-presync", "later", "Job/default/noobaa-credentials-init"),
        ("argocd-postsync", "post-sync", "Deployment/default/shop"),
        ("argocd-script", "never", "Job/default/watch-builds"),
    ],
)
def test_a_blocked_sync_has_one_cause(name: str, cause: blocked.Cause, waited: str) -> None:
    one = recorded(name)
    (found,) = blocked.blocked(one.rehearsal, one.case, *CAUSES)
    assert (found.step, found.cause, [str(task.object) for task in found.waited]) == (0, cause, [waited])
    assert [*blocked.blocked(one.rehearsal, one.case, *(other for other in CAUSES if other != cause))] == []


def test_a_sync_that_ends_is_not_blocked() -> None:
    one = recorded("duplicate-object")
    assert [operation.phase for _, operation in syncs.operations(one.rehearsal)] == ["Succeeded", "Succeeded"]
    assert [*blocked.blocked(one.rehearsal, one.case, *CAUSES)] == []


def test_tasks_of_later_waves_are_pending() -> None:
    one = recorded("argocd-pvc-wave")
    _, operation = next(syncs.operations(one.rehearsal))
    assert [(str(task.object), syncs.in_words(task)) for task in syncs.pending(operation)] == [
        ("Job/default/init-model-storage", "Sync wave -5"),
        ("Deployment/default/serving", "Sync wave 0"),
    ]
    assert blocked.never_run(operation) == "Never reached: Sync wave -5, Sync wave 0 (2 objects)."


def test_a_child_application_fails_before_an_earlier_one_is_done() -> None:
    one = recorded("argocd-app-order")
    (found,) = app_order.out_of_turn(one.rehearsal, one.case)
    assert (found.step, found.failed.app) == (0, "web")
    assert app_order.apps_out_of_turn(one.rehearsal, one.case) == {"web"}


def test_argo_cd_does_not_know_a_kind_of_another_application() -> None:
    one = recorded("argocd-unserved-kind")
    (unknown,) = argocd_unserved.unknown_kinds(one.rehearsal, one.case)
    crd = argocd_unserved.definition_of(one.case, unknown)
    assert [str(resource.ref) for resource in unknown.resources] == ["Probe/default/shop"]
    assert crd is not None
    assert str(crd.ref) == "CustomResourceDefinition/probes.watch.example"
    assert argocd_unserved.generator_of(one.case, unknown) is None


# Flux


def _flux(name: str) -> StoredRehearsal:
    one = recorded(name)
    assert reconciliations.is_flux(one.rehearsal)
    return one


def test_a_failed_helmrelease_has_the_helm_action_that_failed() -> None:
    (step,) = _flux("flux-half-way").rehearsal.steps
    failed = reconciliations.failed_release(step)
    assert failed is not None
    assert (str(failed.object), reconciliations.failed_act(failed)) == ("HelmRelease/default/shop", "upgrade")
    assert reconciliations.by_hand(failed) == "flux reconcile helmrelease shop -n default --force"


def test_a_kustomization_that_succeeds_at_a_later_attempt_is_delayed() -> None:
    one = _flux("flux-without-wait")
    (late,) = reconciliations.delayed(one.rehearsal, one.case)
    assert (late.step, str(late.one.object), late.one.attempts) == (0, "Kustomization/flux-system/gates", 2)
    assert [(index, str(ref)) for index, ref in reconciliations.dependencies(late.own)] == [
        (0, "Kustomization/flux-system/operators")
    ]
    assert not reconciliations.is_checked(late.own)
    assert reconciliations.interval_of(late.own) == "1h"
    assert [*order.too_early(one.rehearsal, one.case)] == []  # It depends on the other; that is not awaited.


def test_a_kustomization_without_dependson_comes_too_early() -> None:
    one = _flux("flux-namespace-order")
    (early,) = order.too_early(one.rehearsal, one.case)
    assert (str(early.own.ref), str(early.what.ref), str(early.holder)) == (
        "Kustomization/flux-system/reports",
        "Namespace/shop",
        "Kustomization/flux-system/shop",
    )


def test_a_wait_times_out_and_blocks_its_dependents() -> None:
    one = _flux("flux-never-ready")
    (found,) = waits.timed_out_waits(one.rehearsal, one.case)
    assert (str(found.own.ref), [*map(str, found.waited)], found.statuses) == (
        "HelmRelease/default/gateway",
        ["PersistentVolumeClaim/default/cache"],
        ("InProgress",),
    )
    assert [(str(user.ref), index) for user, index in found.behind] == [("HelmRelease/default/shop", 0)]
    assert [*waits.lacked(one.rehearsal, one.case, found)] == []
    other = _flux("flux-without-wait")
    assert [*waits.timed_out_waits(other.rehearsal, other.case)] == []


def test_an_object_belongs_to_its_kustomization() -> None:
    step = _flux("flux-without-wait").rehearsal.steps[0]
    brought = next(one for one in reconciliations.kustomizations(step) if one.object.name == "gates")
    assert reconciliations.holder(step, brought.objects[0]) == brought.object
    assert reconciliations.holder(step, Ref("ConfigMap", "default", "absent")) is None


# Pulumi


def test_a_resource_is_unordered_if_it_does_not_depend_on_its_crd() -> None:
    one = recorded("pulumi-unordered")
    (found,) = programs.unordered(one.rehearsal, one.case)
    assert (str(found.ref), found.registration.name) == ("Gate/default/north", "north")


@pytest.mark.parametrize("name", ["pulumi-rename", "operator-gone"])
def test_resources_with_their_dependencies_are_ordered(name: str) -> None:
    one = recorded(name)
    assert programs.is_pulumi(one.rehearsal)
    assert [*programs.unordered(one.rehearsal, one.case)] == []


def test_dependencies_are_those_asked_for_and_those_that_pulumi_gets() -> None:
    found = {one.resource: (one.asked, one.now) for one in dependencies.dependences(recorded("operator-gone").case)}
    crd = ("CustomResourceDefinition definition",)
    rights = ("ServiceAccount account", "ClusterRoleBinding rights")
    assert found == {"Deployment operator": (rights, rights), "ScaledObject work": (crd, crd)}
    (implied,) = dependencies.dependences(recorded("pulumi-two-owners").case)
    assert (implied.resource, implied.asked, implied.now) == ("Secret pull-secret", (), ("Namespace shop-early",))


# Helm


def test_a_rehearsal_has_that_of_the_other_helm_with_its_refusals_alone() -> None:
    rehearsal = recorded("helm-3-differs").rehearsal
    assert rehearsal.otherwise is not None
    assert (rehearsal.engine.major, rehearsal.otherwise.engine.major) == ("4", "3")
    assert [step.outcome for step in rehearsal.steps] == ["failed", "failed", "failed"]
    assert [step.outcome for step in rehearsal.otherwise.steps] == ["ok", "ok", "ok"]
    assert {event.effect for event in rehearsal.otherwise.timeline} <= {"refused"}


def test_a_case_says_what_was_assumed_and_where_it_was_created() -> None:
    case = recorded("assumed-crd").case
    assert [(one.object, str(one.ref)) for one in case.assumed] == [
        (crd, crd)
        for crd in (
            "CustomResourceDefinition/clustersecretstores.external-secrets.io",
            "CustomResourceDefinition/externalsecrets.external-secrets.io",
        )
    ] + [("Deployment/external-secrets/external-secrets", "Deployment/kube-system/external-secrets")]
    assert case.is_assumed(Ref("Deployment", "kube-system", "external-secrets", "apps"))
    assert not case.is_assumed(Ref("Deployment", "external-secrets", "external-secrets", "apps"))
