"""Health checks in CEL: which entry applies to an object, the order of its expressions, and invalid entries."""

from __future__ import annotations

import pytest

from seatrial.model.resource import Body, Ref
from seatrial.readiness.flux import ExpressionVerdict, HealthExpression, read, verdict

SEALED = Ref("SealedSecret", "default", "token", "bitnami.com")
IS_FALSE = "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False')"
IS_TRUE = "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'True')"
CHECK = HealthExpression("bitnami.com", "SealedSecret", IS_TRUE, failed=IS_FALSE)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([{"type": "Synced", "status": "True"}], "Current"),
        ([{"type": "Synced", "status": "False"}], "Failed"),
        ([{"type": "Synced", "status": "Unknown"}], "InProgress"),
        ([], "Failed"),  # all() of an empty list is true, and `failed` comes before `current`
    ],
)
def test_the_first_true_expression_counts(conditions: list[Body], status: str) -> None:
    assert verdict((CHECK,), SEALED, {"status": {"conditions": conditions}}) == ExpressionVerdict(status)


def test_a_status_of_another_generation_is_in_progress() -> None:
    status = {"observedGeneration": 1, "conditions": [{"type": "Synced", "status": "True"}]}
    assert verdict((CHECK,), SEALED, {"metadata": {"generation": 2}, "status": status}) == ExpressionVerdict(
        "InProgress"
    )


def test_without_a_status_the_expression_fails() -> None:
    words = f"failed to evaluate the CEL expression '{IS_FALSE}': no such attribute(s): status.conditions"
    assert verdict((CHECK,), SEALED, {"metadata": {}}) == ExpressionVerdict("Unknown", words)


def test_an_entry_for_the_kind_precedes_one_for_its_group() -> None:
    of_group = HealthExpression("bitnami.com", "", "false")
    assert verdict((of_group, CHECK), SEALED, {"status": {"conditions": [{"type": "Synced", "status": "True"}]}}) == (
        ExpressionVerdict("Current")
    )
    assert verdict((of_group,), SEALED, {"status": {"phase": "x"}}) == ExpressionVerdict("InProgress")


def test_a_kind_without_a_model_is_left_to_kstatus() -> None:
    ref = Ref("CephCluster", "rook-ceph", "ceph", "ceph.rook.io")
    check = HealthExpression("ceph.rook.io", "CephCluster", "status.ceph.health == 'HEALTH_OK'")
    assert verdict((check,), ref, {"metadata": {}}) is None
    assert verdict((check,), ref, {"status": {"ceph": {"health": "HEALTH_OK"}}}) == ExpressionVerdict("Current")


def test_invalid_entries_are_rejected_with_the_errors_of_flux() -> None:
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


def test_unsupported_expressions_are_listed() -> None:
    long = {"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "current": "true && " * 1000 + "true"}
    assert read([long]).unsupported == ("SealedSecret.bitnami.com",)
