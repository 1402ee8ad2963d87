"""What a real Flux says about its objects, in the words of the simulated one."""

from __future__ import annotations

from seatrial.engines.flux.controlled import reconciled
from seatrial.engines.flux.objects import FluxObjects, Kustomization
from seatrial.model.resource import Body

OWN = Kustomization("shop", "flux-system", (), timeout="2m")


def test_the_time_of_a_health_check_is_its_timeout_unless_it_failed_early() -> None:
    assert _message("health check failed after 31.5s: timeout waiting for: [Job/a/b status: 'InProgress']") == (
        "health check failed after 2m: timeout waiting for: [Job/a/b status: 'InProgress']"
    )
    early = "failed early due to stalled resources: [Job/a/b status: 'Failed']"
    assert _message(f"health check failed after 12ms: {early}") == early


def test_the_reason_of_a_stall_is_told_once() -> None:
    assert _message("bad expression", stalled="bad expression") == "bad expression"
    assert _message("upgrade failed", stalled="after 2 attempts") == "Why: after 2 attempts. upgrade failed"


def _message(ready: str, stalled: str = "") -> str:
    conditions = [{"type": "Ready", "status": "False", "message": ready}]
    if stalled:
        conditions.append({"type": "Stalled", "status": "True", "reason": "Why", "message": stalled})
    body: Body = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": OWN.name, "namespace": OWN.namespace},
        "status": {"conditions": conditions},
    }
    (found,) = reconciled([body], FluxObjects((), {OWN.ref: OWN}))
    return found.message
