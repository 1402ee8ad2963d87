"""What an earlier life left in a cluster and a release stumbles over. Pure functions of a snapshot and releases."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.helm import hooks
from seatrial.helm.ownership import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE
from seatrial.kinds.core.selection import fits
from seatrial.kinds.operators.table import plural_for
from seatrial.kinds.webhooks import matching
from seatrial.kinds.webhooks.matching import Hook, WriteTarget
from seatrial.live.backends import called_by
from seatrial.live.keeping import STILL_THERE
from seatrial.live.point import Point
from seatrial.model.release import Release, Resource
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    dig,
    labels_of,
    listed,
    metadata,
    name_of,
    version_of,
)
from seatrial.model.snapshot import Snapshot
from seatrial.sources.places import place_of

ARGOCD_TRACKING = "argocd.argoproj.io/tracking-id"
PENDING = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")


def leftovers(releases: list[Release], before: Release | None, snapshot: Snapshot, *, by_helm: bool) -> Iterator[Point]:
    """Everything that stands in the way; `before` is the release that is deployed."""
    resources = [resource for release in releases for resource in release.resources]
    own = {resource.ref for resource in resources}
    yield from _webhooks(resources, own, snapshot)
    yield from _conversions(resources, own, snapshot)
    yield from _api_services(own, snapshot)
    yield from _terminating(resources, snapshot)
    yield from _stored_versions(releases, snapshot)
    if by_helm:
        yield from _unfinished(releases, snapshot)
    for release in releases[:1]:
        yield from _owners(release, before, snapshot, by_helm=by_helm)


def _webhooks(resources: list[Resource], own: set[Ref], snapshot: Snapshot) -> Iterator[Point]:
    """Webhooks whose Service has no ready endpoint, and that no release brings."""
    configurations = [body for ref, body in snapshot.refs.items() if ref.group == matching.GROUP]
    read = matching.read(
        [body for body in configurations if body["kind"] == "MutatingWebhookConfiguration"],
        [body for body in configurations if body["kind"] == "ValidatingWebhookConfiguration"],
        (),
        (),
    )
    for hook in (*read.mutating, *read.validating):
        service = next(called_by({"webhooks": [{"clientConfig": hook.client}]}), None)
        if service is None or service not in snapshot.unreachable or service in own or hook.configuration in own:
            continue
        refused = next((resource for resource in resources if _is_called_for(hook, resource, snapshot)), None)
        what = f"{hook.configuration} ({hook.name})"
        state = "does not exist" if snapshot.lacks(service) else "has no ready endpoint"
        command = f"kubectl delete {hook.configuration.kind.lower()} {hook.configuration.name}"
        if refused is None or hook.ignores:
            reason = "failurePolicy is Ignore" if hook.ignores else "it is not called for this release"
            yield Point("note", what, f"{service} {state}; {reason}")
        else:
            why = f"{service} {state}: the API server refuses {refused.ref}"
            yield Point("fails", what, why, place_of(refused.place()), f"start its backend, or: {command}")


def _is_called_for(hook: Hook, resource: Resource, snapshot: Snapshot) -> bool:
    ref = resource.ref
    version = version_of(str(resource.body.get("apiVersion") or ""))
    plural = plural_for(ref.group, ref.kind)
    target = WriteTarget("CREATE", ref.group, version, plural, "", bool(ref.namespace), (version,))
    called = matching.webhooks_for(matching.Hooks(mutating=(hook,)), "mutating", target)
    if not called or (ref.group == matching.GROUP and ref.kind in matching.EXEMPT):
        return False
    home = snapshot.refs.get(Ref("Namespace", "", ref.namespace))
    if hook.namespaces and ref.namespace and home is not None and not fits(labels_of(home), hook.namespaces):
        return False
    return not hook.objects or fits(labels_of(resource.body), hook.objects)


def _conversions(resources: list[Resource], own: set[Ref], snapshot: Snapshot) -> Iterator[Point]:
    for ref, body in snapshot.refs.items():
        if ref.kind != "CustomResourceDefinition":
            continue
        service = next(called_by({"spec": {"conversion": dig(body, "spec", "conversion")}}), None)
        if service is None or service not in snapshot.unreachable or service in own:
            continue
        kind = (dig(body, "spec", "group"), dig(body, "spec", "names", "kind"))
        used = next((one for one in resources if (one.ref.group, one.ref.kind) == kind), None)
        why = f"its conversion webhook {service} has no ready endpoint"
        if used is None:
            yield Point("note", str(ref), f"{why}; no object of this release is of this kind")
        else:
            yield Point("fails", str(ref), f"{why}: {used.ref} may not be read or written", place_of(used.place()))


def _api_services(own: set[Ref], snapshot: Snapshot) -> Iterator[Point]:
    for ref, body in snapshot.refs.items():
        if ref.kind == "APIService":
            for service in called_by(body):
                if service in snapshot.unreachable and service not in own:
                    why = f"{service} has no ready endpoint: discovery is incomplete, and namespaces cannot be deleted"
                    yield Point("fails", str(ref), why, command=f"kubectl get apiservice {ref.name}")


def _terminating(resources: list[Resource], snapshot: Snapshot) -> Iterator[Point]:
    """Objects that are being deleted and that a release needs again."""
    first: dict[Ref, Resource] = {}
    for resource in resources:
        first.setdefault(resource.ref, resource)
        first.setdefault(Ref("Namespace", "", resource.ref.namespace), resource)
    for ref, body in snapshot.refs.items():
        if not metadata(body).get("deletionTimestamp"):
            continue
        user, held = first.get(ref), _held_by(body)
        why = "is being deleted" + (f" ({held})" if held else "")
        command = f"kubectl get {ref.kind.lower()} {ref.name} -o yaml" + (
            f" -n {ref.namespace}" if ref.namespace else ""
        )
        if user is None:
            yield Point("note", str(ref), why)
        elif user.ref == ref:
            yield Point("fails", str(ref), f"{why}: it cannot be created again", place_of(user.place()), command)
        else:
            yield Point(
                "fails", str(ref), f"{why}: {user.ref} cannot be created in it", place_of(user.place()), command
            )


def _held_by(body: Body) -> str:
    """Why it is still there: what the namespace controller says, or the finalizers."""
    said = [str(one.get("message")) for one in listed(body, "status", "conditions") if one.get("status") == "True"]
    held = [str(one) for one in listed(metadata(body), "finalizers") if one != STILL_THERE]
    return "; ".join((*said, *([f"finalizers: {', '.join(held)}"] if held else ())))


def _stored_versions(releases: list[Release], snapshot: Snapshot) -> Iterator[Point]:
    """CRDs with custom resources in etcd in a version that is not served any more, or that the release drops."""
    brought = {r.ref: r for release in releases for r in (*release.crds, *release.resources)}
    for ref, body in snapshot.refs.items():
        if ref.kind != "CustomResourceDefinition":
            continue
        stored = [str(version) for version in listed(body, "status", "storedVersions")]
        served = {str(version.get("name")) for version in listed(body, "spec", "versions") if version.get("served")}
        new = brought.get(ref)
        kept = {str(version.get("name")) for version in listed(new.body, "spec", "versions")} if new else set()
        if new is not None and (dropped := [version for version in stored if version not in kept]):
            why = f"stores objects in {', '.join(dropped)}, which the release drops: the API server refuses the CRD"
            yield Point("fails", str(ref), why, place_of(new.place("spec", "versions")), _stored(ref))
        elif unserved := [version for version in stored if version not in served]:
            yield Point(
                "note",
                str(ref),
                f"stores objects in {', '.join(unserved)}, which it does not serve",
                None,
                _stored(ref),
            )


def _stored(ref: Ref) -> str:
    return f"kubectl get crd {ref.name} -o jsonpath={{.status.storedVersions}}"


def _unfinished(releases: list[Release], snapshot: Snapshot) -> Iterator[Point]:
    """A Helm release whose last operation did not end."""
    named = {(release.name, release.namespace) for release in releases}
    newest: dict[tuple[str, str], Body] = {}
    for record in snapshot.releases:
        key = (str(record.get("name")), str(record.get("namespace")))
        if key in named and int(record.get("version") or 0) > int(newest.get(key, {}).get("version") or 0):
            newest[key] = record
    for (name, namespace), record in newest.items():
        status = str(dig(record, "info", "status") or "")
        if status in PENDING:
            why = f"revision {record.get('version')} is {status}: another operation is in progress, or was interrupted"
            yield Point("fails", f"Helm release {namespace}/{name}", why, None, f"helm rollback {name} -n {namespace}")


def _owners(release: Release, before: Release | None, snapshot: Snapshot, *, by_helm: bool) -> Iterator[Point]:
    """Objects of the release that exist and belong to no release, or to another one."""
    deployed = {resource.ref for resource in before.resources} if before else set()
    for resource in release.resources:
        found = snapshot.refs.get(resource.ref)
        if found is None or resource.ref in deployed or metadata(found).get("deletionTimestamp"):
            continue
        if by_helm and not hooks.is_hook(resource.body):
            yield from _owned_otherwise(resource, found, release)
        elif not by_helm and (other := _other_owner(found, release)):
            yield Point("note", str(resource.ref), f"exists and belongs to {other}", place_of(resource.place()))


def _owned_otherwise(resource: Resource, found: Body, release: Release) -> Iterator[Point]:
    """Helm adopts an object only with its label and annotations: `checkOwnership` in pkg/action/validate.go."""
    annotations, (label, helm) = annotations_of(found), MANAGED_BY
    owner = annotations.get(RELEASE_NAME), annotations.get(RELEASE_NAMESPACE)
    if labels_of(found).get(label) == helm and owner == (release.name, release.namespace):
        return
    place = place_of(resource.place())
    if owner[0]:
        why = f"exists and belongs to the Helm release {owner[1]}/{owner[0]}: helm refuses to adopt it"
        yield Point("fails", str(resource.ref), why, place)
        return
    other = _other_owner(found, release)
    why = f"exists and belongs to {other or 'no release'}: helm refuses to adopt it"
    ref = resource.ref
    home = f" -n {ref.namespace}" if ref.namespace else ""
    marks = f"{RELEASE_NAME}={release.name} {RELEASE_NAMESPACE}={release.namespace}"
    command = f"kubectl annotate {ref.kind.lower()} {ref.name}{home} {marks}; kubectl label ... {label}={helm}"
    yield Point("fails", str(ref), why, place, "" if other else command)


def _other_owner(found: Body, release: Release) -> str:
    annotations = annotations_of(found)
    if tracked := annotations.get(ARGOCD_TRACKING):
        app = tracked.partition(":")[0]
        return "" if app == release.name else f"the Argo CD Application {app}"
    for label, name in labels_of(found).items():
        if label.endswith(".fluxcd.io/name") and name != release.name:
            return f"the Flux object {name}"
    helm = annotations.get(RELEASE_NAME)
    if helm and helm != release.name:
        return f"the Helm release {annotations.get(RELEASE_NAMESPACE)}/{helm}"
    controller = next((one for one in listed(metadata(found), "ownerReferences") if one.get("controller")), None)
    return f"{controller.get('kind')} {name_of({'metadata': controller})}" if controller else ""
