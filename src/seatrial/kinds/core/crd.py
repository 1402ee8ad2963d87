"""CustomResourceDefinition: accepted, established, deleted only after its custom resources.

From k8s.io/apiextensions-apiserver (controller/status, controller/establish, controller/finalizer) of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds import Acts, Delete, Kind, Need, Status, Update, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition
from seatrial.kinds.core.immutable import NEWEST, immutable_field, invalid, scalar
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating, with_finalizer, without_finalizer
from seatrial.kinds.operators.cert_manager import injection_needs
from seatrial.kinds.webhooks import cabundle
from seatrial.model.resource import Body, Ref, dig, listed, name_of, ref_of

GROUP = "apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
LONG_MESSAGE_SINCE = 33

CA_CHECKED_SINCE = 31
NO_PEM = "unable to load root certificates: unable to parse bytes as PEM block"
INVALID_CA = ("InvalidCABundle", "The conversion webhook CABundle is invalid")
"""Reason and message of a CRD that is not established."""

# Names that must be unique in the group, and the reason of a conflict.
RESOURCE_NAMES = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def needs(crd: Body) -> Iterator[Need]:
    yield from injection_needs(crd)
    service = dig(crd, "spec", "conversion", "webhook", "clientConfig", "service") or {}
    if service.get("name"):
        ref = Ref("Service", str(service.get("namespace") or ""), str(service["name"]))
        yield Need(ref, "serve", ("spec", "conversion", "webhook", "clientConfig", "service", "name"))


def behave(crd: Body, world: World) -> Acts:
    if is_terminating(crd):
        yield from _delete_objects(crd, world)
    elif dig(crd, "status", "acceptedNames") != dig(crd, "spec", "names"):
        yield from _accept(crd, world)
    elif (
        conditions.is_true(crd, "NamesAccepted") and has_invalid_ca(crd) and not conditions.is_true(crd, "Established")
    ):
        yield _with_conditions(crd, condition(crd, "Established", "False", *INVALID_CA))
        yield from cabundle.behave(world.peek(ref_of(crd, namespaced=False)) or crd, world)
    elif conditions.is_true(crd, "NamesAccepted") and not conditions.is_true(crd, "Established"):
        # Clients can see the time between accepted names and the first served request.
        message = "the initial names have been accepted"
        yield _with_conditions(crd, condition(crd, "Established", "True", "InitialNamesAccepted", message))
    else:
        yield from cabundle.behave(crd, world)


def is_quick(crd: Body) -> bool:
    """All but the injection of a CA is done by the API server."""
    established = conditions.is_true(crd, "Established") or has_invalid_ca(crd)
    return is_terminating(crd) or not established or not cabundle.wants_injection(crd)


def has_invalid_ca(crd: Body) -> bool:
    """Whether the CA of its conversion webhook is no PEM, which keeps it from being served until there is a valid one.

    Since Kubernetes 1.31 (controller/establish). A single newline (`Cg==`) is invalid as well.
    """
    bundle = str(dig(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle") or "")
    return bool(bundle) and not cabundle.has_certificate(bundle)


def is_held_by_its_ca(crd: Body) -> bool:
    """Whether an existing CRD is not served for that reason."""
    established = (c for c in listed(crd, "status", "conditions") if c.get("type") == "Established")
    return has_invalid_ca(crd) and any(c.get("reason") == INVALID_CA[0] for c in established)


def default(crd: Body) -> Body:
    spec = {"conversion": {"strategy": "None"}, **(crd.get("spec") or {})}
    names = dict(spec.get("names") or {})
    if kind := names.get("kind"):
        names.setdefault("singular", str(kind).lower())
        names.setdefault("listKind", f"{kind}List")
    spec["names"] = names
    webhook = dig(spec, "conversion", "webhook")
    if service := dig(webhook, "clientConfig", "service"):
        config = {**webhook["clientConfig"], "service": {"port": 443, **service}}
        spec["conversion"] = {**spec["conversion"], "webhook": {**webhook, "clientConfig": config}}
    return {**crd, "spec": spec}


def prepare(crd: Body, old: Body | None) -> Body:
    """Every version that was ever the storage version is kept in storedVersions."""
    status = dict(crd.get("status") or (old or {}).get("status") or {})
    stored = list(status.get("storedVersions") or ())
    for version in listed(crd, "spec", "versions"):
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version["name"])
    return {**crd, "status": {**status, "storedVersions": stored}}


def deleting(crd: Body) -> Body:
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    new = condition(crd, "Terminating", "True", "InstanceDeletionPending", message)
    kept = with_condition(listed(crd, "status", "conditions"), new)
    status = {**(crd.get("status") or {}), "conditions": kept}
    return {**with_finalizer(crd, FINALIZER), "status": status}


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if conditions.is_true(old, "Established"):
        yield from immutable_field(old, new, "spec.scope", minor)
        yield from immutable_field(old, new, "spec.names.kind", minor)
        # allowInvalidCABundle in apiextensions/validation: what was never served may have an invalid one.
        if minor >= CA_CHECKED_SINCE and has_invalid_ca(new) and not has_invalid_ca(old):
            bundle = scalar(dig(new, "spec", "conversion", "webhook", "clientConfig", "caBundle"), minor)
            yield invalid("spec.conversion.webhookClientConfig.caBundle", bundle, NO_PEM)
    yield from immutable_field(old, new, "spec.group", minor)
    yield from immutable_field(old, new, "spec.names.plural", minor)
    versions = [version.get("name") for version in listed(new, "spec", "versions")]
    for index, version in enumerate(listed(new, "status", "storedVersions")):
        if version not in versions:
            yield invalid(f"status.storedVersions[{index}]", scalar(version, minor), _still_stored(version, minor))


def ready(crd: Body) -> bool:
    return conditions.is_true(crd, "Established") and not is_terminating(crd)


def _accept(crd: Body, world: World) -> Acts:
    names = dig(crd, "spec", "names") or {}
    conflict = _conflict(crd, world)
    if conflict:
        new = [
            condition(crd, "NamesAccepted", "False", *conflict),
            condition(crd, "Established", "False", "NotAccepted", "not all names are accepted"),
        ]
        yield _with_conditions(crd, *new)
        return
    new = [condition(crd, "NamesAccepted", "True", "NoConflicts", "no conflicts found")]
    if not conditions.is_true(crd, "Established"):
        message = "the initial names have been accepted"
        new.append(condition(crd, "Established", "False", "Installing", message))
    accepted = _with_conditions(crd, *new)
    yield Status(crd, {**accepted.status, "acceptedNames": names})


def _conflict(crd: Body, world: World) -> tuple[str, str] | None:
    """(reason, message) of the last name that another CRD of the group has."""
    others = [
        dig(other, "status", "acceptedNames") or {}
        for other in world.all("CustomResourceDefinition", group=GROUP)
        if name_of(other) != name_of(crd) and dig(other, "spec", "group") == dig(crd, "spec", "group")
    ]
    resources = {name for other in others for name in (other.get("plural"), other.get("singular"))}
    resources |= {name for other in others for name in listed(other, "shortNames")}
    kinds = {name for other in others for name in (other.get("kind"), other.get("listKind"))}
    names = dig(crd, "spec", "names") or {}
    found = None
    for field, reason in RESOURCE_NAMES:
        if names.get(field) in resources:
            found = reason, f'"{names[field]}" is already in use'
    for name in listed(names, "shortNames"):
        if name in resources:
            found = "ShortNamesConflict", f'"{name}" is already in use'
    for field, reason in KIND_NAMES:
        if names.get(field) in kinds:
            found = reason, f'"{names[field]}" is already in use'
    return found


def _delete_objects(crd: Body, world: World) -> Acts:
    """Custom resources are deleted first. A finalizer on one of them also blocks the CRD."""
    if FINALIZER not in finalizers_of(crd):
        return
    kind, group = str(dig(crd, "spec", "names", "kind")), str(dig(crd, "spec", "group"))
    for body in world.all(kind, group=group):
        if not is_terminating(body):
            yield Delete(body, why=f"its CRD {name_of(crd)} is being deleted", skip_webhooks=True)
    if world.all(kind, group=group):
        message = "CustomResource deletion is in progress"
        yield _with_conditions(crd, condition(crd, "Terminating", "True", "InstanceDeletionInProgress", message))
        return
    yield Update(without_finalizer(crd, FINALIZER))


def _with_conditions(crd: Body, *new: Body) -> Status:
    kept = listed(crd, "status", "conditions")
    for found in new:
        kept = with_condition(kept, found)
    return Status(crd, {**(crd.get("status") or {}), "conditions": kept})


def _still_stored(version: str, minor: int) -> str:
    if minor < LONG_MESSAGE_SINCE:
        return "must appear in spec.versions"
    return (
        f"missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions "
        f"until a storage migration ensures no data remains persisted in {version} and removes {version} from "
        "status.storedVersions"
    )


KINDS = (
    Kind(
        "CustomResourceDefinition",
        GROUP,
        actor="crd-controller",
        needs=needs,
        behave=behave,
        quick=is_quick,
        immutable=immutable,
        default=default,
        prepare=prepare,
        deleting=deleting,
        ready=ready,
    ),
)


def api_versions(bodies: Iterable[Body]) -> list[str]:
    """What the CRDs among these objects add to a chart's `.Capabilities.APIVersions`."""
    found: dict[str, None] = {}
    for body in bodies:
        if body.get("kind") == "CustomResourceDefinition":
            group, kind = dig(body, "spec", "group"), dig(body, "spec", "names", "kind")
            for version in listed(body, "spec", "versions"):
                if version.get("served"):
                    found[f"{group}/{version.get('name')}"] = None
                    found[f"{group}/{version.get('name')}/{kind}"] = None
    return list(found)
