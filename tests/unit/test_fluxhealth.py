"""Health checks in CEL: which entry is about an object, in which order its expressions count, what is no entry."""

from __future__ import annotations

import pytest

from seatrial.model.resource import Body, Ref
from seatrial.readiness.flux import HealthCheck, Verdict, read, verdict

SEALED = Ref("SealedSecret", "default", "token", "bitnami.com")
IS_FALSE = "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False')"
IS_TRUE = "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'True')"
CHECK = HealthCheck("bitnami.com", "SealedSecret", IS_TRUE, failed=IS_FALSE)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([{"type": "Synced", "status": "True"}], "Current"),
        ([{"type": "Synced", "status": "False"}], "Failed"),
        ([{"type": "Synced", "status": "Unknown"}], "InProgress"),
        ([], "Failed"),  # All of nothing is true, and `failed` is asked before `current`.
    ],
)
def test_the_first_expression_that_is_true_counts(conditions: list[Body], status: str) -> None:
    assert verdict((CHECK,), SEALED, {"status": {"conditions": conditions}}) == Verdict(status)


def test_a_status_of_another_generation_is_in_progress_whatever_it_says() -> None:
    status = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "True"}]}
    assert verdict((CHECK,), SEALED, {"metadata": {"generation": 2}, "status": status}) == Verdict("InProgress")


def test_without_a_status_there_is_no_telling() -> None:
    words = f"failed to evaluate the CEL expression '{IS_FALSE}': no such attribute(s): status.conditions"
    assert verdict((CHECK,), SEALED, {"metadata": {}}) == Verdict("Unknown", words)


def test_an_entry_for_the_kind_goes_before_one_for_its_group() -> None:
    of_group = HealthCheck("bitnami.com", "", "false")
    assert verdict((of_group, CHECK), SEALED, {"status": {"conditions": [{"type": "Synced", "status": "True"}]}}) == (
        Verdict("Current")
    )
    assert verdict((of_group,), SEALED, {"status": {"phase": "x"}}) == Verdict("InProgress")


def test_a_kind_whose_status_nobody_here_writes_is_left_to_kstatus() -> None:
    ref = Ref("CephCluster", "rook-ceph", "ceph", "ceph.rook.io")
    check = HealthCheck("ceph.rook.io", "CephCluster", "status.ceph.health == 'HEALTH_OK'")
    assert verdict((check,), ref, {"metadata": {}}) is None
    assert verdict((check,), ref, {"status": {"ceph": {"health": "HEALTH_OK"}}}) == Verdict("Current")


def test_entries_are_refused_in_the_words_of_flux() -> None:
    entry = {"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "current": "true"}
    assert read([{**entry, "current": ""}]).invalid == (
        "failed to create custom status evaluator for healthchecks[0]: expression Current not specified"
    )
    assert read([entry, {**entry, "apiVersion": "bitnami.com/v2"}]).invalid == (
        "duplicate custom health check for GroupKind SealedSecret.bitnami.com at healthchecks[1]"
    )
    assert read([{**entry, "failed": "a ="}]).invalid.startswith(
        "failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Failed: "
        "failed to parse the CEL expression 'a =': ERROR: <input>:1:3: "
    )


def test_what_is_beyond_evaluation_is_named() -> None:
    long = {"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "current": "true && " * 1000 + "true"}
    assert read([long]).beyond == ("SealedSecret.bitnami.com",)
