"""Pulumi on the embedded cluster: what is replaced and how, awaited, tried again, and deleted in which order."""

from __future__ import annotations

import pytest
from msgspec import structs
from pulumiworld import (
    DEFINITION,
    WEBHOOK,
    World,
    config,
    custom,
    job,
    namespace,
    pending,
    pod,
    release,
    resource,
)

from seatrial.model.program import RegisteredOptions
from seatrial.model.resource import Body
from seatrial.model.timeline import Schedule


def test_an_object_with_a_fixed_name_is_deleted_before_its_replacement_is_created() -> None:
    world = World()
    world.up(resource(config("a", v="1")))
    assert world.up(resource(config("a", v="2"))).outcome == "ok"
    assert world.writes(1) == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


def test_a_replacement_with_a_new_name_exists_before_the_old_one_is_deleted() -> None:
    world = World()
    world.up(resource(config("a-1", v="1"), name="a", auto_named=True))
    world.up(resource(config("a-2", v="2"), name="a", auto_named=True))
    assert world.writes(1) == ["create ConfigMap/default/a-2", "delete ConfigMap/default/a-1"]


def test_the_program_may_set_delete_before_replace() -> None:
    world = World()
    first = RegisteredOptions(delete_before_replace=True)
    world.up(resource(config("a-1", v="1"), name="a", auto_named=True))
    world.up(resource(config("a-2", v="2"), name="a", auto_named=True, options=first))
    assert world.writes(1) == ["delete ConfigMap/default/a-1", "create ConfigMap/default/a-2"]


def test_mutable_fields_change_in_place_and_ignored_ones_do_not() -> None:
    world = World()
    world.up(resource(config("a", labels={"v": "1"}, v="1")))
    ignored = RegisteredOptions(ignore_changes=("data", 'metadata.labels["v"]'))
    world.up(resource(config("a", labels={"v": "2", "w": "2"}, v="2"), options=ignored))
    assert "delete ConfigMap/default/a" not in world.writes(1)
    live = world.get("ConfigMap", "a")
    assert live and (live["data"], live["metadata"]["labels"]) == ({"v": "1"}, {"v": "1", "w": "2"})


def test_replace_on_changes_adds_fields_that_replace() -> None:
    world = World()
    world.up(resource(config("a", labels={"v": "1"})))
    world.up(
        resource(config("a", labels={"v": "2"}), options=RegisteredOptions(replace_on_changes=("metadata.labels",)))
    )
    assert world.writes(1) == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


def test_a_protected_resource_is_neither_deleted_nor_replaced() -> None:
    world = World()
    kept = RegisteredOptions(protect=True)
    world.up(resource(config("a", v="1"), options=kept))
    urn = "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::a"
    assert world.up(resource(config("a", v="2"), options=kept)).error == (
        f'kubernetes:core/v1:ConfigMap (a): error: unable to replace resource "{urn}"\nas it is currently marked for '
        "protection. To unprotect the resource, remove the `protect` flag from the resource in your Pulumi program and "
        "run `pulumi up`"
    )
    ended = world.destroy()
    assert ended.error.startswith(
        f'kubernetes:core/v1:ConfigMap (a): error: Preview failed: resource "{urn}" cannot be deleted\n'
    )
    assert world.get("ConfigMap", "a")


def test_a_retained_or_deleted_with_resource_is_not_deleted() -> None:
    world = World()
    first = resource(config("first"))
    with_first = resource(config("with-first"), options=RegisteredOptions(deleted_with=first.urn))
    world.up(first, with_first, resource(config("kept"), options=RegisteredOptions(retain_on_delete=True)))
    assert world.destroy().outcome == "ok"
    assert world.writes(1) == ["delete ConfigMap/default/first"]
    assert world.get("ConfigMap", "kept") and world.get("ConfigMap", "with-first")


def test_deletions_come_last_in_reverse_dependency_order() -> None:
    world = World()
    a, b = resource(config("a")), resource(config("b"))
    c = resource(config("c"), depends=[a, b])
    world.up(a, b, c)
    world.up(resource(config("d")))
    assert world.writes(1) == [
        "create ConfigMap/default/d",
        "delete ConfigMap/default/c",
        "delete ConfigMap/default/a",
        "delete ConfigMap/default/b",
    ]


def test_after_a_failure_nothing_is_deleted_and_nothing_starts() -> None:
    world = World()
    world.up(resource(config("old")))
    bad = resource({**config("bad"), "data": {"not a key": "x"}})
    ended = world.up(bad, resource(config("after"), depends=[bad]))
    assert ended.outcome == "failed"
    assert world.get("ConfigMap", "old") and not world.get("ConfigMap", "after")


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_creation_is_retried_while_its_namespace_or_kind_is_missing(schedule: Schedule) -> None:
    world = World(schedule)
    inside, gate = resource(config("a", namespace="new")), resource(custom("g"))
    all_four = [inside, gate, resource(namespace("new")), resource(DEFINITION)]
    if schedule == "lazy":  # Then what is registered last comes first.
        all_four.reverse()
    assert world.up(*all_four).outcome == "ok"
    assert world.said("a") == ['Retry #0; creation failed: namespaces "new" not found']
    assert world.said("g") == ['Retry #0; creation failed: no matches for kind "Gate" in version "example.com/v1"']


def test_a_creation_is_tried_six_times() -> None:
    world = World()
    ended = world.up(resource(custom("g")), resource(config("a", namespace="nowhere")))
    assert len(world.said("g")) == len(world.said("a")) == 6
    gate, inside = ended.error.splitlines()
    assert gate == (
        'kubernetes:example.com/v1:Gate (g): error: creation of resource "urn:pulumi:dev::app::kubernetes:'
        'example.com/v1:Gate::g" with kind example.com/v1/Gate failed because the Kubernetes API server reported that '
        "the apiVersion for this resource does not exist. Verify that any required CRDs have been created: no matches "
        'for kind "Gate" in version "example.com/v1"'
    )
    assert inside.endswith('not successfully created by the Kubernetes API server: namespaces "nowhere" not found')


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"data": {"not a key": "x"}}, "is invalid"),  # 422
        ({"metadata": {"name": "there", "namespace": "default"}}, 'configmaps "there" already exists'),  # 409
        (
            {"metadata": {"name": "x", "namespace": "default", "labels": {"gated": "yes"}}},
            "failed calling webhook",
        ),  # 500
    ],
)
def test_every_other_rejection_is_final(body: Body, words: str) -> None:
    world = World()
    world.up(resource(config("there")), resource(WEBHOOK))
    ended = world.up(resource(config("there")), resource(WEBHOOK), resource({**config("x"), **body}, name="new"))
    assert words in ended.error
    assert world.said("x") == world.said("there") == []


def test_an_update_is_never_retried() -> None:
    world = World()
    world.up(resource(config("a")))
    world.up(resource(config("a")), resource(WEBHOOK))
    ended = world.up(resource(config("a", labels={"gated": "yes"})), resource(WEBHOOK))
    assert ended.error.startswith(
        "kubernetes:core/v1:ConfigMap (a): error: 1 error occurred:\n\t* the Kubernetes API server reported that "
        '"default/a" failed to fully initialize or become live: Internal error occurred: failed calling webhook '
    )
    assert world.said("a") == []


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        ("condition=Ready", "hung"),
        ("condition=Ready=False", "ok"),
        ("jsonpath={.status.address}", "hung"),
        ("jsonpath={.spec.size}=3", "ok"),
        ("jsonpath={.spec.size}=4", "hung"),
        ('["jsonpath={.spec.size}=3", "condition=Ready"]', "hung"),
        ('["jsonpath={.spec.size}=3", "condition=Ready=False"]', "ok"),
    ],
)
def test_wait_for_applies_to_any_kind(asked: str, outcome: str) -> None:
    world = World()
    world.up(resource(DEFINITION))
    waits = custom("g", annotations={"pulumi.com/waitFor": asked})
    waits = {**waits, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert world.up(resource(DEFINITION), resource(waits)).outcome == outcome


def test_wait_for_has_two_forms_and_a_third_is_an_error() -> None:
    world = World()
    world.up(resource(DEFINITION))
    ended = world.up(resource(DEFINITION), resource(custom("g", annotations={"pulumi.com/waitFor": "Ready"})))
    assert ended.error.endswith(
        "was not successfully created by the Kubernetes API server: "
        'expected a "jsonpath=" or "condition=" prefix, got "Ready"'
    )
    ended = world.up(resource(DEFINITION), resource(custom("g")))
    assert 'gates.example.com "g" already exists' in ended.error  # It was made, and is not remembered.


def test_an_update_of_a_deleted_object_fails() -> None:
    world = World()
    world.up(resource(config("a")))
    world.remove(config("a"))
    assert world.up(resource(config("a", labels={"v": "2"}))).error == (
        'kubernetes:core/v1:ConfigMap (a): error: update of resource "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap'
        '::a" failed: configmaps "a" not found\nunable to get cluster state: configmaps "a" not found'
    )


@pytest.mark.parametrize(
    ("annotations", "options", "seconds"),
    [
        ({}, RegisteredOptions(), 600),
        ({"pulumi.com/timeoutSeconds": "30"}, RegisteredOptions(), 30),
        ({"pulumi.com/timeoutSeconds": "30"}, RegisteredOptions(create_timeout="2m"), 120),
        ({}, RegisteredOptions(update_timeout="2m"), 600),
    ],
)
def test_the_timeout_comes_from_the_option_then_from_the_annotation(
    annotations: Body, options: RegisteredOptions, seconds: int
) -> None:
    ended = World().up(resource(pending(annotations), options=options))
    assert ended.error.endswith(f"Pulumi times out after {seconds} seconds on kubernetes:core/v1:Pod (p)")


def test_a_resource_with_skip_await_is_not_awaited_by_its_dependents() -> None:
    world = World()
    skips = resource(pending({"pulumi.com/skipAwait": "true"}))
    assert world.up(skips, resource(config("after"), depends=[skips])).outcome == "ok"
    awaits = resource(pending({}))
    assert World().up(awaits, resource(config("after"), depends=[awaits])).outcome == "hung"


def test_an_object_that_never_became_ready_is_awaited_again() -> None:
    world = World()
    mounts = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "v"}}}]}
    assert world.up(resource(pod(**mounts))).outcome == "hung"
    assert world.up(resource(pod(**mounts)), resource(config("late", v="1"))).outcome == "ok"


def test_a_release_creates_crds_hooks_by_weight_and_kinds_in_order_and_waits() -> None:
    world = World()
    after = resource(config("after"))
    keeper = release(
        config("late", annotations={"helm.sh/hook": "post-install"}),
        job("second", {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "5"}),
        job("first", {"helm.sh/hook": "pre-install,post-upgrade", "helm.sh/hook-weight": "-5"}),
        pod(),
        config("plain"),
        custom("gate"),
    )
    assert world.up(keeper, structs.replace(after, dependencies=(keeper.urn,))).outcome == "ok"
    assert world.made() == [
        "CustomResourceDefinition/gates.example.com",
        "Job/default/first",
        "Job/default/second",
        "ConfigMap/default/plain",
        "Pod/default/p",
        "Gate/default/gate",
        "ConfigMap/default/late",
        "ConfigMap/default/after",
    ]
    live = world.get("ConfigMap", "plain")
    assert live and live["metadata"]["annotations"]["meta.helm.sh/release-name"] == "keeper"


def test_a_release_waits_by_default_and_for_jobs_only_with_wait_for_jobs() -> None:
    stuck = pod(envFrom=[{"configMapRef": {"name": "nowhere"}}])
    ended = World().up(release(stuck))
    assert ended.error.endswith("Pulumi times out after 300 seconds on kubernetes:helm.sh/v3:Release (keeper)")
    assert World().up(release(stuck, skipAwait=True)).outcome == "ok"
    assert "Pulumi times out after 60 seconds" in World().up(release(stuck, timeout=60)).error


def test_a_release_that_timed_out_is_recorded_as_failed_and_upgraded_next() -> None:
    world = World()
    assert world.up(release(pod(envFrom=[{"configMapRef": {"name": "nowhere"}}]))).outcome == "hung"
    assert world.status_of("keeper", 1) == "failed"
    assert world.up(release(config("a"), values={"a": "1"})).outcome == "ok"
    assert world.status_of("keeper", 2) == "deployed"


def test_a_rejected_release_has_the_errors_of_pulumi_helm_and_the_server() -> None:
    ended = World().up(release(config("a"), {**config("b"), "data": {"not a key": "1"}}))
    assert ended.error.startswith(
        'kubernetes:helm.sh/v3:Release (keeper): error: 1 error occurred:\n\t* Helm release "default/keeper" was '
        "created, but failed to initialize completely. Use Helm CLI to investigate: failed to become available within "
        'allocated timeout. Error: Helm Release default/keeper: 1 error occurred:\n\t* ConfigMap "b" is invalid: '
    )


def test_a_failed_atomic_release_is_uninstalled_and_installed_again() -> None:
    world = World()
    bad = {**config("b"), "data": {"not a key": "1"}}
    ended = world.up(release(config("a"), bad, atomic=True))
    said = "release keeper failed, and has been uninstalled due to atomic being set: 1 error occurred:"
    assert ended.error.startswith(f"kubernetes:helm.sh/v3:Release (keeper): error: {said}")
    assert not world.get("ConfigMap", "a")
    assert world.up(release(config("a"), atomic=True)).outcome == "ok"
    assert world.status_of("keeper", 1) == "deployed"


def test_a_release_without_values_keeps_those_of_the_last_revision() -> None:
    world = World()
    world.up(release(config("a"), config("only-if"), values={"more": True}))
    world.up(release(config("a")))
    assert world.get("ConfigMap", "only-if")
    world.up(release(config("a"), values={"more": False}))
    assert not world.get("ConfigMap", "only-if")


def test_only_the_inputs_of_a_release_are_compared() -> None:
    world = World()
    world.up(release(config("a"), version="1.0.0"))
    assert world.up(release(config("a"), config("b"), version="1.0.0")).outcome == "ok"
    assert world.writes(1) == []
    world.up(release(config("a"), config("b"), version="1.0.1"))
    assert world.writes(2) == ["create ConfigMap/default/b"]


def test_a_release_is_deleted_in_kind_order_and_unknown_kinds_last() -> None:
    world = World()
    world.up(release(config("a"), custom("gate"), pod()))
    world.destroy()
    assert world.writes(1)[:3] == ["delete Pod/default/p", "delete ConfigMap/default/a", "delete Gate/default/gate"]


def test_a_release_deletes_dropped_objects_except_with_keep() -> None:
    world = World()
    kept = config("kept", annotations={"helm.sh/resource-policy": "keep"})
    world.up(release(config("a"), config("b"), kept))
    assert world.up(release(config("b"), version="1.0.1")).outcome == "ok"
    assert [bool(world.get("ConfigMap", name)) for name in ("a", "b", "kept")] == [False, True, True]
    assert world.destroy().outcome == "ok"
    assert not world.get("ConfigMap", "b")


def test_a_release_adopts_no_foreign_objects() -> None:
    world = World()
    world.up(theirs := resource(config("a")))
    ended = world.up(theirs, release(config("a")))
    assert ended.error == (
        'kubernetes:helm.sh/v3:Release (keeper): error: Unable to continue with install: ConfigMap "a" in namespace '
        '"default" exists and cannot be imported into the current release: invalid ownership metadata; label '
        'validation error: missing key "app.kubernetes.io/managed-by": must be set to "Helm"; annotation validation '
        'error: missing key "meta.helm.sh/release-name": must be set to "keeper"; annotation validation error: missing '
        'key "meta.helm.sh/release-namespace": must be set to "default"'
    )
