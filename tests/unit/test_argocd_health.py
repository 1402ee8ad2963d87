"""Argo CD's health of an object, and the results of the users' Lua scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seatrial.model.resource import Body
from seatrial.readiness.argocd import health, lua
from seatrial.readiness.argocd.lua import ANY_OBJECT, INVALID, NO_TEXT, TOO_LARGE, TOO_LONG, TOO_SLOW
from seatrial.readiness.argocd.verdict import Health, HealthScript

ADR_SCRIPT = """
hs = {}
if obj.status.phase == "Pending" then
  hs.status = "Healthy"
elseif obj.status.phase == "Bound" then
  hs.status = "Healthy"
else
  hs.status = "Progressing"
end
return hs
"""
"""A common script for PVCs that wait for their first consumer."""
CLAIM: Body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "verdict"),
    [
        ("v1 PersistentVolumeClaim", {}, {"phase": "Pending"}, "Progressing"),
        ("v1 PersistentVolumeClaim", {}, {"phase": "Lost"}, "Degraded"),
        ("v1 Service", {"type": "LoadBalancer"}, {"loadBalancer": {}}, "Progressing"),
        ("v1 Service", {"type": "ClusterIP"}, {}, "Healthy"),
        ("networking.k8s.io/v1 Ingress", {}, {"loadBalancer": {}}, "Progressing"),
        ("apps/v1 Deployment", {"paused": True}, {}, "Suspended"),
        ("apps/v1 Deployment", {"replicas": 0}, {}, "Healthy"),
        ("apps/v1 StatefulSet", {"replicas": 1}, {}, "Progressing"),
        ("batch/v1 Job", {}, {}, "Progressing"),
        ("batch/v1 Job", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, "Healthy"),
        ("batch/v1 Job", {}, {"conditions": [{"type": "Failed"}, {"type": "Complete"}]}, "Degraded"),
        ("batch/v1 Job", {}, {"conditions": [{"type": "Suspended", "status": "False"}]}, "Healthy"),
        ("v1 Pod", {"restartPolicy": "Never"}, {"phase": "Running"}, "Progressing"),
        ("v1 Pod", {"restartPolicy": "Never"}, {"phase": "Failed"}, "Degraded"),
        ("autoscaling/v2 HorizontalPodAutoscaler", {}, {}, "Progressing"),
        (
            "external-secrets.io/v1 ExternalSecret",
            {},
            {"conditions": [{"type": "Ready", "status": "False"}]},
            "Degraded",
        ),
        ("external-secrets.io/v1 ExternalSecret", {}, {}, "Progressing"),
        ("kafka.strimzi.io/v1beta2 KafkaTopic", {}, {}, "Healthy"),
        ("ec2.aws.upbound.io/v1beta1 VPC", {}, {}, "Healthy"),
        ("v1 ConfigMap", {}, {}, None),
        ("v1 Namespace", {}, {}, None),
        ("argoproj.io/v1alpha1 Application", {}, {"health": {"status": "Degraded"}}, None),
        ("tekton.dev/v1 PipelineRun", {}, {"conditions": [{"type": "Succeeded", "status": "False"}]}, None),
    ],
)
def test_health_of_kinds(kind: str, spec: Body, status: Body, verdict: str | None) -> None:
    api_version, name = kind.split()
    body: Body = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, "spec": spec, "status": status}
    found = health(body, {}, (3, 5))
    assert (found.status if found else None) == verdict


def test_an_unknown_version_of_a_known_kind_is_an_error() -> None:
    body: Body = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "x"}}
    assert health(body, {}, (3, 5)) == Health(
        "Unknown", "unsupported Deployment GVK: apps/v1beta1, Kind=Deployment", True
    )


def test_an_object_being_deleted_is_progressing() -> None:
    body: Body = {**CLAIM, "metadata": {"name": "x", "deletionTimestamp": "now"}, "status": {"phase": "Bound"}}
    assert health(body, {}, (3, 5)) == Health("Progressing", "Pending deletion")


def test_crds_have_a_health_check_since_3_0() -> None:
    body: Body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"},
    }
    body["status"] = {"conditions": [{"type": "Established", "status": "False", "reason": "Installing"}]}
    assert health(body, {}, (2, 14)) is None
    assert health(body, {}, (3, 0)) == Health("Progressing", "CRD is being installed")


def test_a_user_script_overrides_other_checks() -> None:
    pending: Body = {**CLAIM, "status": {"phase": "Pending"}}
    assert _health(ADR_SCRIPT, pending) == Health("Healthy")


def test_a_script_that_reads_a_missing_status_fails() -> None:
    said = "<string>:3: attempt to index field 'status' (a nil value)"
    assert _health(ADR_SCRIPT, CLAIM) == Health("Unknown", said, broken=True)


def test_a_script_that_knows_two_phases_reports_a_lost_pvc_as_progressing() -> None:
    assert _health(ADR_SCRIPT, {**CLAIM, "status": {"phase": "Lost"}}) == Health("Progressing")


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("while true do end", Health("Unknown", TOO_LONG, True)),
        ("while true do pcall(function() while true do end end) end", Health("Unknown", TOO_LONG, True)),
        ("local s = 'x' while true do s = s .. s end", Health("Unknown", TOO_LARGE, True)),
        ("error('no')", Health("Unknown", "<string>:1: no", True)),
        ("error({})", Health("Unknown", ANY_OBJECT, True)),
        ("this is no Lua", Health("Unknown", "<string>:1: '=' expected near 'is'", True)),
        ("return 5", Health("Unknown", "expect table output from Lua script, not number", True)),
        ("return {status = 'Fine'}", Health("Unknown", INVALID)),
        ("return {status = 'Healthy', message = '\\255'}", Health("Unknown", NO_TEXT, True)),
        ("return nil", Health("")),
        ("return {}", Health("")),
        ("return {status = 'Degraded', message = 'no'}", Health("Degraded", "no")),
    ],
)
def test_results_of_scripts(script: str, verdict: Health) -> None:
    assert _health(script, CLAIM) == verdict


@pytest.mark.parametrize(
    "name",
    ["os", "io", "debug", "package", "load", "loadstring", "dofile", "loadfile", "getfenv", "setfenv", "ffi", "jit"],
)
def test_scripts_are_sandboxed(name: str) -> None:
    found = _health(f"return {{status = 'Healthy', message = tostring({name})}}", CLAIM, open_libs=True)
    assert found == Health("Healthy", "nil")


def test_scripts_can_only_require_os_with_a_fixed_clock() -> None:
    assert _health("return {status = 'Healthy', message = tostring(require('os').time())}", CLAIM).message == "0"
    assert _health("require('ffi')", CLAIM) == Health("Unknown", "<string>:1: module ffi not found", True)


def test_strings_have_methods_only_with_open_libs() -> None:
    script = "return {status = 'Healthy', message = ('x'):rep(3)}"
    assert _health(script, CLAIM, open_libs=True) == Health("Healthy", "xxx")
    assert _health(script, CLAIM).broken


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with a shorter limit, and another one after it."""
    lua._PROCESS.close()
    monkeypatch.setattr(lua, "SECONDS_MAX", 0.3)
    yield
    lua._PROCESS.close()


def test_long_strings_and_slow_patterns_are_stopped(impatient: None) -> None:
    assert _health("local x = ('a'):rep(1e9)", CLAIM, open_libs=True).message == TOO_LARGE
    for slow in (
        "string.find(('a'):rep(30000), 'a*a*a*a*b')",
        "for i = 1, 1e6 do string.find(('('):rep(1e6), '%b()x') end",
        "for i = 1, 1e6 do local s = ('a'):rep(1e7) end",
    ):
        assert _health(slow, CLAIM, open_libs=True) == Health("Unknown", TOO_SLOW, broken=True)
    assert _health("return {status = 'Healthy', message = 'x'}", CLAIM) == Health("Healthy", "x")


def _health(script: str, body: Body, *, open_libs: bool = False) -> Health:
    found = health(body, {"PersistentVolumeClaim": HealthScript(script, open_libs)}, (3, 5))
    assert found is not None
    return found
