"""Generated health checks for Argo CD, run under Lua, and what is found in those of users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from seatrial.check import check
from seatrial.engines.argocd.settings import settings_of
from seatrial.engines.argocd.trying import tried_health_checks
from seatrial.generate.health import Form, written
from seatrial.generate.health.script import EXPECTED, HealthCheck, Wanted, health_check, kinds_without_check
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.model.release import Release, Resource, TriedHealthCheck
from seatrial.model.resource import Body, Origin, dig, ref_of
from seatrial.readiness.argocd import lua
from seatrial.readiness.argocd.examples import examples
from seatrial.readiness.argocd.verdict import HealthScript
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

CONDITIONS: Body = {"properties": {"conditions": {"type": "array"}}}
PHASES: Body = {"properties": {"phase": {"type": "string", "enum": ["Opening", "Running", "Failed"]}}}
STATES: Body = {"properties": {"state": {"type": "string"}}}


def crd(status: Body | None) -> Resource:
    properties = {"status": status} if status is not None else {"spec": {}}
    body: Body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.canal.example"},
        "spec": {
            "group": "canal.example",
            "names": {"kind": "Gate", "plural": "gates"},
            "versions": [{"name": "v1", "storage": True, "schema": {"openAPIV3Schema": {"properties": properties}}}],
        },
    }
    return Resource(ref_of(body, namespaced=False), body, Origin("crd.yaml"))


def gate(status: Body | None = CONDITIONS, wanted: Wanted | None = None) -> HealthCheck:
    return health_check("canal.example", "Gate", crd(status), wanted or Wanted())


def health(script: str, status: Any) -> str:
    body = {"apiVersion": "canal.example/v1", "kind": "Gate", "metadata": {"name": "north"}, "status": status}
    verdict = lua.health(HealthScript(script), body)
    assert not verdict.broken, verdict.message
    return verdict.status


def test_every_example_state_has_an_expected_health() -> None:
    assert set(EXPECTED) == {example.name for example in examples("canal.example", "Gate")}


def test_conditions_that_the_schema_describes_are_read() -> None:
    script = gate().script
    assert health(script, {"conditions": [{"type": "Ready", "status": "True"}]}) == "Healthy"
    assert health(script, {"conditions": [{"type": "Ready", "status": "Unknown"}]}) == "Progressing"
    assert health(script, {"conditions": [{"type": "Other", "status": "True"}]}) == "Progressing"


def test_a_failure_counts_wherever_it_is_listed() -> None:
    conditions = [{"type": "Ready", "status": "False"}, {"type": "Stalled", "status": "True"}]
    assert health(gate().script, {"conditions": conditions}) == "Degraded"
    assert health(gate().script, {"conditions": conditions[::-1]}) == "Degraded"


def test_phases_come_from_the_enumeration_of_the_schema() -> None:
    script = gate(PHASES).script
    found = {phase: health(script, {"phase": phase}) for phase in ("Opening", "Running", "Failed")}
    assert found == {"Opening": "Progressing", "Running": "Healthy", "Failed": "Degraded"}


def test_a_state_is_read_where_the_schema_has_one() -> None:
    assert gate(STATES).reads == "status.state"
    assert health(gate(STATES).script, {"state": "Ready"}) == "Healthy"


def test_the_condition_of_the_user_counts() -> None:
    script = gate(wanted=Wanted(("Opened",))).script
    assert health(script, {"conditions": [{"type": "Opened", "status": "True"}]}) == "Healthy"
    assert health(script, {"conditions": [{"type": "Ready", "status": "True"}]}) == "Progressing"


def test_an_application_has_the_health_that_it_reports() -> None:
    script = health_check("argoproj.io", "Application", None).script
    assert health(script, {"health": {"status": "Suspended"}}) == "Suspended"
    assert health(script, {"sync": {}}) == "Progressing"


@pytest.mark.parametrize(("group", "kind"), [("apps", "Deployment"), ("cert-manager.io", "Certificate")])
def test_a_kind_that_argo_cd_checks_gets_no_other_check(group: str, kind: str) -> None:
    with pytest.raises(CannotContinue, match="has a check for it already"):
        health_check(group, kind, None)


def test_a_kind_without_status_gets_no_check() -> None:
    assert list(kinds_without_check(iter([crd(None)]))) == []
    with pytest.raises(CannotContinue, match="its CRD has no status"):
        gate(None)


@pytest.mark.parametrize("form", ["argocd-cm", "operator"])
def test_what_is_written_is_what_argo_cd_runs(form: Form) -> None:
    body = next(documents(Text("x.yaml", written([gate()], form, "argocd", "argocd")))).body
    assert settings_of("3.5", [body]).scripts["canal.example/Gate"].text == gate().script
    assert faults(body) == {}


def test_the_configmap_is_valid_and_passes_the_check(tmp_path: Path) -> None:
    text = written([gate()], "argocd-cm", "argocd", "argocd")
    kubernetes_validate.validate(next(documents(Text("x.yaml", text))).body, "1.34", strict=True)
    (tmp_path / "argocd-cm.yaml").write_text(text)
    result = check(CheckOptions(inputs=(str(tmp_path),), engines=("kubectl",)))
    assert [finding.message for finding in result.findings] == []


def test_the_ansible_tasks_keep_the_checks_of_others() -> None:
    tasks = next(documents(Text("x.yaml", written([gate()], "ansible", "argocd", "argocd")))).body
    assert [next(key for key in task if key.startswith("kubernetes.core")) for task in tasks] == [
        "kubernetes.core.k8s_info",
        "kubernetes.core.k8s",
    ]
    assert tasks[1]["vars"]["health_checks"][0]["check"] == gate().script
    merged = dig(tasks[1], "kubernetes.core.k8s", "definition", "spec", "resourceHealthChecks")
    assert "found.resources" in merged


def tried(body: Body) -> list[TriedHealthCheck]:
    resource = Resource(ref_of(body), body, Origin("argocd-cm.yaml"))
    return list(tried_health_checks([Release("argocd", "argocd", ".", (resource,))]))


def config(about: str, script: str) -> Body:
    data = {f"resource.customizations.health.{about}": script}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": data}


def faults(body: Body) -> dict[str, Any]:
    one = tried(body)[0]
    found = {"errors": one.errors, "always": one.only_healthy and one.verdicts, "replaces": one.replaces}
    return {name: value for name, value in found.items() if value}


def test_a_check_of_a_built_in_kind_may_expect_the_status_that_the_api_server_sets() -> None:
    script = 'if obj.status.phase == "Bound" then return {status = "Healthy"} end return {status = "Progressing"}'
    assert faults(config("PersistentVolumeClaim", script)) == {}
    assert list(faults(config("canal.example_Gate", script))) == ["errors"]


def test_a_check_that_copies_a_status_is_not_always_healthy() -> None:
    script = (
        'hs = {status = "Healthy"} if obj.status and obj.status.health then hs.status = obj.status.health.status end'
    )
    assert faults(config("canal.example_Gate", f"{script} return hs")) == {}


def test_a_pattern_of_custom_kinds_replaces_nothing() -> None:
    body = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": "argocd"},
        "spec": {"resourceHealthChecks": [{"group": "*.canal.example", "kind": "*", "check": gate().script}]},
    }
    assert faults(body) == {}


def test_a_check_for_everything_replaces_all_built_in_ones() -> None:
    assert "apps/Deployment" in faults(config("all", gate().script))["replaces"]
