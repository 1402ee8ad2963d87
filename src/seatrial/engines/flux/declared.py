"""Kustomizations and HelmReleases from their manifests, with their objects. Reads no files."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.flux.dependencies import invalid, unknown_status
from seatrial.engines.flux.objects import (
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    HelmRelease,
    IgnoredDifference,
    Kustomization,
    ReleasePolicy,
)
from seatrial.engines.flux.postrendering import additions, rendered_error
from seatrial.engines.script import DescribedObject
from seatrial.helm import hooks
from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, metadata, name_of
from seatrial.readiness import flux as fluxhealth
from seatrial.sources.flux.gathering import Built, Charted, at_home
from seatrial.text.durations import seconds_in, written

POST = ("post-install", "post-upgrade")
FLAGS = {
    "disableHooks": "--no-hooks",
    "createNamespace": "--create-namespace",
    "replace": "--replace",
    "force": "--force-replace",
    "cleanupOnFail": "--cleanup-on-fail",
    "preserveValues": "--reuse-values",
    "disableOpenAPIValidation": "--disable-openapi-validation",
    "keepHistory": "--keep-history",
}
"""Fields of spec.install, spec.upgrade and spec.uninstall that are flags of Helm's."""
NOT_MODELLED = {
    ("HelmRelease", "postRenderers"): "postRenderers are not run; objects are used as the chart renders them",
    ("HelmRelease", "kubeConfig"): "kubeConfig is ignored; it deploys to the cluster of the trial",
    ("Kustomization", "kubeConfig"): "kubeConfig is ignored; it deploys to the cluster of the trial",
}
"""Fields that change what is deployed or where, and are left out here."""


def declared(built: Built) -> Kustomization:
    """The Kustomization of a manifest, with the objects of its path."""
    body = built.body
    spec = body.get("spec") or {}
    namespace = str(metadata(body).get("namespace") or "default")
    checks = (_checked(entry, namespace) for entry in listed(body, "spec", "healthChecks"))
    return Kustomization(
        name=name_of(body),
        namespace=namespace,
        targets=tuple(DescribedObject(resource.ref, at_home(resource)) for resource in built.resources),
        depends_on=_depends_on(body, "Kustomization", KUSTOMIZE_GROUP),
        ready_exprs=_ready_exprs(body, "Kustomization", KUSTOMIZE_GROUP),
        wait=bool(spec.get("wait")),
        health_checks=tuple(checks),
        health=fluxhealth.read(_entries(body, "healthCheckExprs")).checks,
        prune=bool(spec.get("prune")),
        force=bool(spec.get("force")),
        ignored=tuple(map(_ignored, _entries(body, "ignore"))),
        suspended=bool(spec.get("suspend")),
        deletion_policy=str(spec.get("deletionPolicy") or "MirrorPrune"),
        timeout=str(spec.get("timeout") or written(max(30, (seconds_in(str(spec.get("interval"))) or 0) - 30))),
        assumed=bool(built.absent),
        error=built.error,
        invalid=_invalid(body),
        without_namespace=frozenset(r.ref for r in built.resources if _lacks_namespace(r)),
        declared=body,
    )


def _lacks_namespace(resource: Resource) -> bool:
    """Of a built-in kind: whether a custom resource needs a namespace, its CRD says, which may be elsewhere."""
    ref = resource.ref
    return bool(ref.namespace and (ref.group, ref.kind) in CATALOGUE) and not metadata(resource.body).get("namespace")


def declared_release(charted: Charted) -> HelmRelease:
    """The HelmRelease of a manifest, with its chart rendered."""
    body, chart, rendered = charted.body, charted.chart, charted.release
    if chart is None or rendered is None:
        return _without_chart(charted)
    plain = [r for r in rendered.resources if not hooks.is_hook(r.body)]
    return HelmRelease(
        name=name_of(body),
        namespace=str(metadata(body).get("namespace") or "default"),
        release_name=rendered.name,
        target_namespace=rendered.namespace,
        chart=chart.as_deployed(charted.values).load,
        archive=chart.archive,
        chart_name=f"{chart.name}@{chart.version}",
        values=charted.values,
        adds=additions(body),
        rendered_error=rendered_error(rendered.resources, body),
        targets=tuple(DescribedObject(resource.ref, at_home(resource)) for resource in plain),
        crds=tuple(DescribedObject(resource.ref, resource.body) for resource in rendered.crds),
        hooks=tuple(DescribedObject(r.ref, at_home(r)) for r in rendered.resources if hooks.is_hook(r.body)),
        runs_post_hooks=any(event in POST for r in rendered.resources for event in hooks.events_of(r.body)),
        depends_on=_depends_on(body, "HelmRelease", HELM_GROUP),
        ready_exprs=_ready_exprs(body, "HelmRelease", HELM_GROUP),
        health=fluxhealth.read(_entries(body, "healthCheckExprs")).checks,
        invalid=_invalid(body),
        declared=body,
        install=_policy(body, "install"),
        upgrade=_policy(body, "upgrade"),
        uninstall=_policy(body, "uninstall"),
        rollback=_policy(body, "rollback"),
        suspended=bool(dig(body, "spec", "suspend")),
        tests=bool(dig(body, "spec", "test", "enable")),
        needs_tests=not dig(body, "spec", "test", "ignoreFailures"),
        drift=str(dig(body, "spec", "driftDetection", "mode") or "disabled"),
        drift_ignored=tuple(map(_ignored, listed(body, "spec", "driftDetection", "ignore"))),
        timeout=str(dig(body, "spec", "timeout") or "5m0s"),
    )


def _without_chart(charted: Charted) -> HelmRelease:
    body = charted.body
    return HelmRelease(
        name=name_of(body),
        namespace=str(metadata(body).get("namespace") or "default"),
        assumed=bool(charted.absent),
        invalid=_invalid(body) if charted.absent else "",
        error=charted.error,
    )


def not_evaluated(body: Body) -> Iterator[str]:
    """Notes on fields and CEL expressions that are not modelled."""
    who = f"flux: {body.get('kind')}/{metadata(body).get('namespace')}/{name_of(body)}"
    for (kind, field), words in NOT_MODELLED.items():
        if kind == body.get("kind") and dig(body, "spec", field):
            yield f"{who}: {words}"
    read = fluxhealth.read(_entries(body, "healthCheckExprs"))
    for named in read.unsupported:
        yield f"{who}: the CEL expressions for {named} are not supported; kstatus is used instead"
    for check in read.checks:
        named = f"{check.kind}.{check.group}" if check.kind else f"all kinds of {check.group}"
        if check.group in (KUSTOMIZE_GROUP, HELM_GROUP):
            yield f"{who}: the CEL expressions for {named} are not evaluated; Ready is used instead"
        elif not fluxhealth.is_modelled(check.group, check.kind):
            yield f"{who}: the status of {named} is not modelled; assuming its CEL expressions become true"
    for entry in _entries(body, "dependsOn"):
        fields = unknown_status(str(entry.get("readyExpr") or ""))
        if fields:
            reads = f"the readyExpr for {entry.get('name')} reads status.{fields[0]}, which is not modelled"
            yield f"{who}: {reads}; Ready is used instead"


def _entries(body: Body, field: str) -> list[Body]:
    return [entry for entry in listed(body, "spec", field) if isinstance(entry, dict)]


def _ready_exprs(body: Body, kind: str, group: str) -> dict[Ref, str]:
    """Those that can be decided here."""
    exprs = (str(entry.get("readyExpr") or "") for entry in _entries(body, "dependsOn"))
    pairs = zip(_depends_on(body, kind, group), exprs, strict=True)
    return {ref: expr for ref, expr in pairs if expr and not unknown_status(expr)}


def _invalid(body: Body) -> str:
    """Why Flux stalls on an expression of an object of its own; health checks are read first."""
    read = fluxhealth.read(_entries(body, "healthCheckExprs"))
    named = ((str(entry.get("name")), str(entry.get("readyExpr") or "")) for entry in _entries(body, "dependsOn"))
    return read.invalid or next(filter(None, (invalid(name, expr) for name, expr in named if expr)), "")


def _ignored(rule: Body) -> IgnoredDifference:
    target = rule.get("target") or {}
    fields = ("group", "kind", "namespace", "name", "labelSelector", "annotationSelector")
    return IgnoredDifference(tuple(rule.get("paths") or ()), *(str(target.get(field) or "") for field in fields))


def _policy(body: Body, act: str) -> ReleasePolicy:
    said = dig(body, "spec", act) or {}
    remediation = said.get("remediation") or {}
    retries = int(remediation.get("retries") or 0)
    last = remediation.get("remediateLastFailure")
    ignores = remediation.get("ignoreTestFailures")
    return ReleasePolicy(
        retries=retries,
        remediates_last=bool(last) if last is not None else act == "upgrade" and retries > 0,
        strategy=str(remediation.get("strategy") or "rollback"),
        retries_on_failure=dig(said, "strategy", "name") == "RetryOnFailure",
        crds=str(said.get("crds") or "Create"),
        flags=tuple(flag for field, flag in FLAGS.items() if said.get(field)),
        waits=not said.get("disableWait"),
        waits_for_jobs=not said.get("disableWaitForJobs"),
        server_side=_server_side(said, act),
        takes_ownership=not said.get("disableTakeOwnership"),
        ignores_tests=bool(dig(body, "spec", "test", "ignoreFailures") if ignores is None else ignores),
    )


def _server_side(said: Body, act: str) -> bool | None:
    """`true` or `false` for an install; `enabled`, `disabled` or `auto`, the default, for what comes after it."""
    asked = said.get("serverSideApply")
    return {"enabled": True, "disabled": False}.get(str(asked)) if act != "install" else asked is not False


def _depends_on(body: Body, kind: str, group: str) -> tuple[Ref, ...]:
    home = str(metadata(body).get("namespace") or "default")
    entries = _entries(body, "dependsOn")
    return tuple(Ref(kind, str(entry.get("namespace") or home), str(entry.get("name")), group) for entry in entries)


def _checked(entry: Body, namespace: str) -> Ref:
    group, kind = group_of(str(entry.get("apiVersion") or "")), str(entry.get("kind"))
    home = "" if is_cluster_scoped(group, kind) else str(entry.get("namespace") or namespace)
    return Ref(kind, home, str(entry.get("name")), group)
