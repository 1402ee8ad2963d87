"""Resource tracking: how Argo CD marks and finds its objects, and which kinds it ignores.

Upstream: `util/argo/resource_tracking.go`, `util/settings/resources_filter.go`, `NormalizeTargetObjects` and
`isSelfReferencedObj` in controller/state.go, `GetManagedLiveObjs` in gitops-engine/pkg/cache/cluster.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Filter, Settings
from seatrial.engines.argocd.projects import IN_CLUSTER, refusal
from seatrial.engines.script import DescribedObject
from seatrial.helm.argocd_hooks import TRACKING_ID
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    group_of,
    labels_of,
    listed,
    metadata,
    name_of,
    ref_of,
    written,
)
from seatrial.model.timeline import ApplicationCondition
from seatrial.text.gotext import plain, quoted, type_name

CRD = "CustomResourceDefinition"
FAILED_TO_LOAD = "ComparisonError: Failed to load target state: "
RENDERING = f"{FAILED_TO_LOAD}failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc ="
ALWAYS_EXCLUDED = (
    Filter(groups=("events.k8s.io", "metrics.k8s.io")),
    Filter(groups=("",), kinds=("Event",)),
    Filter(groups=("coordination.k8s.io",), kinds=("Lease",)),
)
_REVIEWS = (
    *("SelfSubjectReview", "TokenReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"),
    *("SelfSubjectRulesReview", "SubjectAccessReview"),
)
_REPORTS = (
    *("PolicyReport", "ClusterPolicyReport", "EphemeralReport", "ClusterEphemeralReport", "AdmissionReport"),
    *("ClusterAdmissionReport", "BackgroundScanReport", "ClusterBackgroundScanReport", "UpdateRequest"),
)
SHIPPED_EXCLUSIONS = (
    Filter(groups=("", "discovery.k8s.io"), kinds=("Endpoints", "EndpointSlice")),
    Filter(groups=("coordination.k8s.io",), kinds=("Lease",)),
    Filter(groups=("authentication.k8s.io", "authorization.k8s.io"), kinds=_REVIEWS),
    Filter(groups=("certificates.k8s.io",), kinds=("CertificateSigningRequest",)),
    Filter(groups=("cert-manager.io",), kinds=("CertificateRequest",)),
    Filter(groups=("cilium.io",), kinds=("CiliumIdentity", "CiliumEndpoint", "CiliumEndpointSlice")),
    Filter(groups=("kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"), kinds=_REPORTS),
)
"""`resource.exclusions` of the argocd-cm that Argo CD 3.0 and later come with: manifests/base/config/argocd-cm.yaml."""


def is_excluded(group: str, kind: str, settings: Settings, server: str = IN_CLUSTER[0]) -> bool:
    """Whether Argo CD neither watches nor applies a kind in a cluster. Exclusions beat inclusions."""
    excluding = (f for f in (*ALWAYS_EXCLUDED, *settings.exclusions) if _is_for(f, server))
    if any(_matches(f, group, kind) for f in excluding):
        return True
    including = [f for f in settings.inclusions if _is_for(f, server)]
    return bool(including) and not any(_matches(f, group, kind) for f in including)


def wanted(app: App, settings: Settings) -> tuple[list[DescribedObject], list[ApplicationCondition]]:
    """The tracked targets of a render, and the conditions about the dropped ones."""
    last: dict[Ref, DescribedObject] = {}
    counts: dict[Ref, int] = {}
    conditions: list[ApplicationCondition] = []
    for target in app.targets:
        key = target.ref if target.ref.name else Ref(*_unnamed(target))
        last.pop(key, None)
        last[key] = target
        counts[key] = counts.get(key, 0) + 1
    for ref, count in counts.items():
        if count > 1:
            named = "/".join((ref.group, ref.kind, ref.namespace, ref.name))
            said = f"Resource {named} appeared {count} times among application resources."
            conditions.append(ApplicationCondition("RepeatedResourceWarning", said, ref))
    kept = []
    for target in last.values():
        if is_excluded(target.ref.group, target.ref.kind, settings, app.where.server):
            named = f"{target.ref.group}/{target.ref.kind} {target.ref.name}"
            said = f"Resource {named} is excluded in the settings"
            conditions.append(ApplicationCondition("ExcludedResourceWarning", said, target.ref))
        else:
            kept.append(DescribedObject(target.ref, marked(target, app, settings)))
    return kept, conditions


def marked(target: DescribedObject, app: App, settings: Settings) -> Body:
    """An object with its tracking metadata. CRDs get none: Argo CD never deletes them."""
    if target.ref.kind == CRD:
        return target.body
    meta = dict(metadata(target.body))
    method = tracking(settings)
    if "annotation" in method:
        meta["annotations"] = {**annotations_of(target.body), TRACKING_ID: tracking_id(target, app)}
    if "label" in method:
        meta["labels"] = {**labels_of(target.body), settings.label: app.instance}
    return {**target.body, "metadata": meta}


def unmarkable(app: App, settings: Settings) -> str:
    """Why the objects of an Application cannot be tracked: `nestedNullableStringMap` in util/kube/kube.go.

    The words are those of `NestedStringMap` in apimachinery 0.36, pkg/apis/meta/v1/unstructured/helpers.go. The type
    that it expects is `interface{}`, as written there; that of the value is `interface {}`, as Go prints it.
    """
    method = tracking(settings)
    fields = [field for field in ("annotations", "labels") if field.removesuffix("s") in method]
    for target in app.targets:
        for field in fields if target.ref.kind != CRD else ():
            found = metadata(written(target.body) or target.body).get(field)
            if not isinstance(found, dict | None):
                return _unreadable(target, field, f"{_of_type(found)}, expected map[string]interface{{}}")
            for key, value in (found or {}).items():
                if not isinstance(value, str):
                    under = f"contains non-string value in the map under key {quoted(key)}"
                    why = f"{under}: {_of_type(value)}, expected string"
                    return _unreadable(target, field, why)
    return ""


def source_failure(app: App, error: str) -> Failure:
    """Why an Application with an error cannot be synced: its source does not render, or is not permitted."""
    unrendered = error.startswith(FAILED_TO_LOAD)
    return Failure(faults=(Fault("source-not-rendered", app.ref),)) if unrendered else NO_FAILURE


def tracking(settings: Settings) -> str:
    usual = "annotation" if versions.has(settings.version, "annotation tracking") else "label"
    return settings.tracking or usual


def tracking_id(target: DescribedObject, app: App) -> str:
    ref = target.ref
    return f"{app.instance}:{ref.group}/{ref.kind}:{ref.namespace or app.destination}/{ref.name}"


def managed(bodies: Iterable[Body], app: App, settings: Settings) -> Iterator[Body]:
    """The live objects that are tracked to an Application, have no owner, and are permitted by its project."""
    found = list(bodies)
    claims = {name for body in found if body.get("kind") == "StatefulSet" for name in _claims_of(body)}
    for body in found:
        if metadata(body).get("ownerReferences") or body.get("kind") in (CRD, "Endpoints"):
            continue
        if body.get("kind") == "PersistentVolumeClaim" and _claimed_as(body) in claims:
            continue
        excluded = is_excluded(group_of(str(body["apiVersion"])), str(body["kind"]), settings, app.where.server)
        if _owner(body, settings) == app.instance and not excluded and _is_permitted(body, app):
            yield body


def shared(bodies: Iterable[Body], app: App, settings: Settings) -> Iterator[ApplicationCondition]:
    """The warnings about targets that are tracked to another Application."""
    for body in bodies:
        owner = _owner(body, settings)
        if owner and owner != app.instance:
            other = owner.replace("_", "/")
            said = f"{body['kind']}/{name_of(body)} is part of applications {app.namespace}/{app.name} and {other}"
            yield ApplicationCondition("SharedResourceWarning", said, ref_of(body))


def _owner(body: Body, settings: Settings) -> str:
    if tracking(settings) == "label":
        return str(labels_of(body).get(settings.label) or "")
    return annotations_of(body).get(TRACKING_ID, "").partition(":")[0]


def _is_permitted(body: Body, app: App) -> bool:
    ref = ref_of(body)
    return app.project is None or not refusal(ref, ref.namespace, app.where, app.project)


def speaks_of_itself(body: Body, settings: Settings) -> bool:
    """Whether the tracking metadata is the object's own, not copied from another with its annotations."""
    said = annotations_of(body).get(TRACKING_ID)
    if tracking(settings) == "label" or said is None:
        return True
    _, kind, place = [*said.split(":", 2), "", ""][:3]
    namespace, _, name = place.partition("/")
    own = metadata(body).get("namespace") or namespace
    group = group_of(str(body["apiVersion"]))
    return (kind, namespace, name) == (f"{group}/{body['kind']}", own, name_of(body))


def _claims_of(stateful_set: Body) -> Iterator[tuple[object, str]]:
    """The name prefixes of a StatefulSet's PVCs: they belong to it without an owner reference.

    Upstream: `isStatefulSetChild` in gitops-engine/pkg/cache/references.go.
    """
    for template in listed(stateful_set, "spec", "volumeClaimTemplates"):
        yield metadata(stateful_set).get("namespace"), f"{name_of(template)}-{name_of(stateful_set)}"


def _claimed_as(claim: Body) -> tuple[object, str]:
    name, _, number = name_of(claim).rpartition("-")
    return metadata(claim).get("namespace"), name if number.isdecimal() else ""


def _of_type(value: object) -> str:
    return f"{plain(value)} is of the type {type_name(value)}"


def _unreadable(target: DescribedObject, field: str, why: str) -> str:
    group, _, version = str(target.body["apiVersion"]).rpartition("/")
    own = metadata(target.body).get("namespace") or ""
    named = f"{group}/{version}, Kind={target.ref.kind} {own}/{target.ref.name}"
    doing = (
        f"failed to get annotations for {named}"
        if field == "annotations"
        else f"failed to set app instance label: failed to get labels from target object {named}"
    )
    words = f"{doing}: .metadata.{field} accessor error: {why}"
    return f"{RENDERING} failed to set app instance tracking info on manifest: {words}"


def _is_for(entry: Filter, server: str) -> bool:
    """The server of a cluster that is only known by name is unknown: only entries for all clusters match it."""
    return not entry.clusters or any(fnmatchcase(server, pattern) for pattern in entry.clusters)


def _matches(entry: Filter, group: str, kind: str) -> bool:
    in_group = not entry.groups or any(fnmatchcase(group, pattern) for pattern in entry.groups)
    return in_group and (not entry.kinds or kind in entry.kinds or "*" in entry.kinds)


def _unnamed(target: DescribedObject) -> tuple[str, str, str, str]:
    """Objects without a name are distinguished by their generateName."""
    begins = str(metadata(target.body).get("generateName") or "")
    return target.ref.kind, target.ref.namespace, f"{begins}*", target.ref.group
