"""Evidence about objects, releases, hooks and webhooks, on recorded rehearsals."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from recordings import recorded, steps_of

from seatrial.evidence import (
    copies,
    crds,
    finalizers,
    history,
    ownership,
    producers,
    records,
    rotated,
    volumes,
    writers,
)
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.hooks import refused_commands, runs, script_faults, services, waiters
from seatrial.evidence.moment import Moment
from seatrial.evidence.secret_data import is_password, secret_data
from seatrial.evidence.unserved import defined_by, definition_in_cluster, is_served_at_last, unserved
from seatrial.evidence.webhooks import calls, gates
from seatrial.model.release import Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import ORDINARY, Event
from seatrial.sources.places import place_of

JOB = Ref("Job", "default", "shop-migration", "batch")


def resource(moment: Moment, ref: Ref) -> Resource:
    found = moment.release.find(ref) if moment.release else None
    assert found is not None
    return found


def test_a_moment_has_its_release_and_the_one_before() -> None:
    assert [
        (moment.act, moment.before.source if moment.before else "", moment.release.source if moment.release else "")
        for moment in steps_of("regular-becomes-hook")
    ] == [
        ("helm install", "", "v1"),
        ("helm upgrade", "v1", "v2"),
        ("helm upgrade", "v2", "v2"),
        ("helm rollback", "v2", "v1"),
        ("helm uninstall", "v1", ""),
        ("helm install", "", "v2"),
    ]


def test_live_and_was_are_the_object_after_and_before_a_step() -> None:
    _, grown = steps_of("pvc-grows")
    claim = Ref("PersistentVolumeClaim", "default", "uploads")
    assert grown.was(claim) is not None
    assert grown.live(claim) == grown.was(claim)  # The upgrade is refused.
    assert steps_of("pvc-grows")[0].was(claim) is None


# history


def test_the_newest_release_is_that_of_the_last_install_or_upgrade() -> None:
    one = recorded("regular-becomes-hook")
    newest = history.newest(one.rehearsal, one.case)
    assert newest is not None
    assert (newest[0].index, newest[1].source) == (5, "v2")


def test_objects_that_a_new_release_drops_are_pruned() -> None:
    assert [
        (moment.index, str(event.object), dropped.file)
        for moment in steps_of("statefulset-renamed")
        for event, dropped in history.pruned(moment)
    ] == [
        (1, "StatefulSet/default/shop-postgres", "v1/templates/database.yaml"),
        (2, "StatefulSet/default/shop-postgresql", "v2/templates/database.yaml"),
    ]


def test_deleting_a_crd_deletes_its_custom_resources() -> None:
    rehearsal = recorded("crd-cascade").rehearsal
    deletion = next(e for e in rehearsal.timeline if e.object.kind == "CustomResourceDefinition" and e.step == 2)
    assert [str(event.object) for event in history.cascade(rehearsal, deletion)] == ["Lock/default/north"]


def test_a_pod_of_a_job_is_owned_by_the_job() -> None:
    moment = steps_of("no-limit")[0]
    pod = next(event for event in moment.events() if event.object.kind == "Pod" and event.effect == "created")
    assert history.owner_of(moment, pod.object, pod.after) == JOB


# records of Helm


def test_the_last_record_is_the_newest_revision_when_a_step_begins() -> None:
    rehearsal = recorded("pending-upgrade").rehearsal
    found = [records.last_record(rehearsal, "shop", "default", before_step=step) for step in range(5)]
    assert [(record.revision, record.status) if record else None for record in found] == [
        (2, "pending-upgrade"),
        (2, "pending-upgrade"),
        (2, "pending-upgrade"),
        (3, "deployed"),
        None,
    ]


def test_a_failed_upgrade_records_no_revision() -> None:
    assert [records.recorded_by(moment) for moment in steps_of("pending-upgrade")] == [None, None, None, 2, 2]


# kinds that are not served, and CRDs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crd-beside-its-object", [(0, "Lock", "canal.example/v1", ["Lock/default/north"])]),
        ("crd-not-established", [(1, "Gate", "canal.example/v1", ["Gate/default/north"])]),
        ("release-order", [(0, "Gate", "canal.example/v1", ["Gate/default/north"])]),
        ("pvc-grows", []),
        ("argocd-unserved-kind", []),  # Argo CD has its own module.
    ],
)
def test_unserved_kinds_are_those_that_stopped_a_step(name: str, expected: list[object]) -> None:
    one = recorded(name)
    found = unserved(one.rehearsal, one.case)
    assert [(step, k.kind, k.api_version, [*map(str, k.users)]) for step, _, kinds in found for k in kinds] == expected


def test_the_crd_of_an_unserved_kind_is_in_the_release_or_in_the_cluster() -> None:
    own, late = recorded("crd-beside-its-object"), recorded("crd-not-established")
    (_, release, (missing,)) = next(unserved(own.rehearsal, own.case))
    crd = defined_by(release.resources, missing)
    assert crd is not None
    assert crd.file == "canal/templates/crd.yaml"
    failed = Moment(own.rehearsal, own.case, 0)
    assert definition_in_cluster(failed, missing) is None
    (step, _, (early,)) = next(unserved(late.rehearsal, late.case))
    moment = Moment(late.rehearsal, late.case, step)
    assert definition_in_cluster(moment, early) is not None
    assert is_served_at_last(moment, early, Ref("CustomResourceDefinition", "", "gates.canal.example", crd.ref.group))


def test_a_crd_loses_the_versions_that_another_writer_leaves_out() -> None:
    rehearsal = recorded("crd-downgrade").rehearsal
    crd = next(event.object for event in rehearsal.timeline if event.object.kind == "CustomResourceDefinition")
    moment = steps_of("crd-downgrade")[1]
    was, now = moment.was(crd), moment.live(crd)
    assert was is not None
    assert now is not None
    assert crds.losses(was, now) == ["Route in version v1"]
    assert [*crds.gains(was, now)] == ["Route in version v1"]
    assert [*crds.gains(was, None)] == ["the kind Route"]


# who wrote and who owns an object


def test_the_writer_before_an_event_is_a_client_and_not_a_controller() -> None:
    rehearsal = recorded("crd-downgrade").rehearsal
    about = [e for e in rehearsal.timeline if e.object.kind == "CustomResourceDefinition"]
    written = [event for event in about if writers.is_written(rehearsal, event)]
    assert [writers.writer_of(rehearsal, event)[2] for event in written] == ["mesh", "gateway"]
    first, second = written
    assert (writers.wrote_before(rehearsal, first), writers.wrote_before(rehearsal, second)) == (None, first)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("foreign-secret", [(1, "Secret/default/shop-key", False)]),
        ("leftover-in-the-way", [(2, "PersistentVolumeClaim/default/wiki-data", True)]),
        ("crd-beside-its-object", []),
    ],
)
def test_a_conflict_is_with_a_foreign_object_or_with_a_leftover(name: str, expected: list[object]) -> None:
    assert [
        (moment.index, str(met.resource.ref), ownership.is_left_over(moment, met))
        for moment in steps_of(name)
        if (met := ownership.conflict(moment))
    ] == expected


def test_copies_that_differ_are_listed_in_the_order_of_the_manifest() -> None:
    (found,) = copies.differing_copies(steps_of("duplicate-object")[0].release).items()
    assert (str(found[0]), [copy.file for copy in found[1]]) == (
        "ConfigMap/default/settings",
        ["shop/templates/app.yaml", "shop/templates/worker.yaml"],
    )
    assert copies.differing_copies(steps_of("pvc-grows")[0].release) == {}


# Secrets, volumes, finalizers and producers


def test_a_secret_is_rotated_if_its_template_generates_the_value() -> None:
    one = recorded("rotated-password")
    (found,) = rotated.rotated_secrets(one.rehearsal, one.case)
    assert (found.step, str(found.secret.ref), found.keys) == (1, "Secret/default/shop-db", ("password",))


@pytest.mark.parametrize(
    ("name", "expected"), [("rotated-password", [(0, 1)]), ("regular-becomes-hook", [(1, 2)]), ("foreign-secret", [])]
)
def test_the_same_again_is_an_upgrade_to_what_is_deployed(name: str, expected: list[tuple[int, int]]) -> None:
    one = recorded(name)
    assert [*rotated.same_again(one.rehearsal, one.case)] == expected


def test_a_password_is_named_like_one_and_is_no_hash() -> None:
    texts = {"password": "secret", "passwd-hash": "$2a$10$x", "tls.pass": "-----BEGIN KEY", "token": "secret"}
    data = secret_data({"kind": "Secret", "stringData": texts})
    assert [key for key, value in data.items() if is_password(key, value)] == ["password"]
    assert secret_data(None) == {}


def test_a_pvc_has_its_volume_once_it_is_bound() -> None:
    first, second = steps_of("pvc-grows")
    claim = Ref("PersistentVolumeClaim", "default", "uploads")
    volume = volumes.volume_of(second, claim)
    assert volumes.volume_of(first, claim) is None
    assert volume is not None
    assert volume.kind == "PersistentVolume"


def test_a_statefulset_keeps_data_in_the_pvcs_of_its_templates() -> None:
    first, upgrade = steps_of("statefulset-renamed")[:2]
    database = resource(first, Ref("StatefulSet", "default", "shop-postgres", "apps"))
    assert [*map(str, volumes.claims_of(upgrade, database))] == ["PersistentVolumeClaim/default/data-shop-postgres-0"]
    assert [*volumes.claims_of(first, database)] == []
    assert volumes.keeps_data(database)


def test_a_finalizer_of_a_deleted_operator_holds_its_object() -> None:
    (held,) = (held for moment in steps_of("operator-gone") for held in finalizers.held_by_gone_operators(moment))
    assert (str(held.deletion.object), str(held.operator.object)) == (
        "ScaledObject/default/work",
        "Deployment/default/keda-operator",
    )
    assert finalizers.rights_gone(recorded("operator-gone").rehearsal, held) == []


def test_a_missing_secret_leads_to_the_object_that_it_is_produced_from() -> None:
    (link,) = producers.chain(steps_of("secret-from-an-operator")[0], Ref("Secret", "default", "shop-db"))
    assert (str(link.missing), str(link.producer)) == ("Secret/default/shop-db", "ExternalSecret/default/shop-db")


# hooks


def test_a_hook_lacks_what_a_step_before_deleted() -> None:
    one = recorded("pre-delete-hook")
    (lack,) = runs.lacks(one.rehearsal, one.case)
    assert (lack.step, lack.event, str(lack.hook.ref)) == (2, "pre-delete", "Job/default/quorum-leave")
    assert str(lack.need.object) == str(lack.brought and lack.brought.ref) == "ServiceAccount/default/quorum"
    assert lack.hung
    other = recorded("hook-left-behind")
    assert [*runs.lacks(other.rehearsal, other.case)] == []


def test_a_hook_runs_only_at_its_event() -> None:
    one = recorded("pre-delete-hook")
    release = runs.acted_on(one.case, 2)
    assert release is not None
    hook = release.find(Ref("Job", "default", "quorum-leave", "batch"))
    assert hook is not None
    assert [(runs.runs_in(moment, hook), runs.event_of(moment, hook)) for moment in steps_of("pre-delete-hook")] == [
        (False, ""),
        (False, ""),
        (True, "pre-delete"),
    ]


def test_a_kept_hook_job_is_in_the_way_of_the_next_run() -> None:
    install, upgrade = steps_of("hook-job-kept")[:2]
    hook = resource(install, JOB)
    assert runs.left_over(install, hook) is None
    assert runs.pod_of(install, hook) is not None
    met = runs.left_over(upgrade, hook)
    assert met is not None
    assert (met.object, met.effect) == (JOB, "unchanged")
    assert runs.pod_of(upgrade, hook) is None


def test_a_hook_calls_a_service_of_its_own_release() -> None:
    moment = steps_of("hook-needs-database")[0]
    assert moment.release is not None
    (asked,) = services.asked_by(resource(moment, JOB), moment.release)
    assert (str(asked.service.ref), asked.field[-3:]) == ("Service/default/shop-db", ("env", 0, "value"))
    assert [str(one.ref) for one in services.backends(asked.service, moment.release)] == ["StatefulSet/default/shop-db"]


def test_a_script_that_never_ends_is_a_fault_of_its_job() -> None:
    one = recorded("argocd-script")
    (fault,) = script_faults.script_faults(one.rehearsal, one.case)
    assert (fault.step, str(fault.owner.ref), fault.field[-2:]) == (0, "Job/default/watch-builds", ("containers", 0))


def test_a_command_that_rbac_denies_is_refused() -> None:
    one = recorded("refused-command")
    (refused,) = refused_commands.refused_commands(one.rehearsal, one.case)
    assert (str(refused.owner.ref), str(refused.account)) == ("Job/default/copy", "ServiceAccount/default/copier")
    assert (refused.verbs, refused.resource, refused.cause) == (("create",), "secrets", "role")


def test_init_containers_wait_for_jobs_that_their_commands_name() -> None:
    wait = {"name": "wait", "image": "kubectl", "command": ["kubectl", "wait", "--for=condition=complete", "job/setup"]}
    image = {"name": "image", "image": "groundnuty/k8s-wait-for", "args": ["job", "migrate"]}
    at = ("spec", "template", "spec", "initContainers")
    found = set(waiters.awaited_jobs({"initContainers": [wait, image], "containers": []}, "default"))
    assert found == {("setup", (*at, 0)), ("migrate", (*at, 1))}
    assert [*waiters.awaited_jobs({"containers": [wait]}, "default")] == []


# webhooks


@pytest.mark.parametrize(
    ("name", "cause", "rejected"),
    [
        ("webhook-not-ready", "unready", "Ingress/edge/home"),
        ("stale-webhook", "stale", "ConfigMap/default/shop"),
        ("webhook-guards-itself", "itself", "ReplicaSet/default/guard-5f5d9cf7bd"),
    ],
)
def test_a_failed_webhook_call_has_one_cause(name: str, cause: calls.Cause, rejected: str) -> None:
    one = recorded(name)
    causes: tuple[calls.Cause, ...] = ("unready", "stale", "itself")
    found = {known: calls.refused_by_cause(one.rehearsal, one.case, known) for known in causes}
    assert [known for known in causes if found[known]] == [cause]
    ((call, *_),) = found[cause].values()
    assert str(call.event.object) == rejected


def test_a_gate_shows_what_the_webhook_lacked_at_the_first_call() -> None:
    one = recorded("webhook-not-ready")
    (gate,) = gates.gates([ComparedRehearsal(replace(one.rehearsal, schedule=ORDINARY), one.case)], place_of)
    assert (gate.webhook, gate.owner, gate.policies) == (
        "ingresses.edge.example",
        "ValidatingWebhookConfiguration/edge",
        ("Fail",),
    )
    assert [(call.act, call.then, call.endpoint) for call in gate.moments] == [("made", "refused", "none")]
    assert str(gate.place) == "edge/1-controller.yaml:22"


def test_what_was_terminating_before_is_not_deleted_with_an_object() -> None:
    going = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    store, secret, other = (Ref("Widget", "", name, "example.com") for name in ("store", "secret", "other"))
    events = (
        Event(0, 0, "helm", "delete", store, "deleted"),
        Event(1, 0, "operator", "delete", secret, "deleted", cause=0, before=going),
        Event(2, 0, "operator", "delete", other, "deleting", cause=0, before={}),
        Event(3, 0, "operator", "delete", other, "deleted", cause=2, before=going),
    )
    rehearsal = replace(steps_of("pvc-grows")[0].rehearsal, timeline=events)
    assert [event.object for event in history.cascade(rehearsal, events[0])] == [other]
