"""CustomResourceDefinition: accepted, established, and going only when its objects are gone.

From k8s.io/apiextensions-apiserver (controller/status, controller/establish, controller/finalizer) of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds import Acts, Change, Delete, Kind, Need, Status, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition
from seatrial.kinds.core.immutable import NEWEST, frozen_field, invalid, scalar
from seatrial.kinds.core.objectmeta import finalizers_of, is_going, with_finalizer, without_finalizer
from seatrial.kinds.operators.cert_manager import injection_needs
from seatrial.kinds.webhooks import cabundle
from seatrial.model.resource import Body, Ref, dig, listed, name_of

GROUP = "apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
WHOLE_WORDS_SINCE = 33

# Names that must be free in the group, the reason of a conflict, and the field of the accepted names that hold them.
RESOURCE_NAMES = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def needs(definition: Body) -> Iterator[Need]:
    yield from injection_needs(definition)
    service = dig(definition, "spec", "conversion", "webhook", "clientConfig", "service") or {}
    if service.get("name"):
        ref = Ref("Service", str(service.get("namespace") or ""), str(service["name"]))
        yield Need(ref, "serve", ("spec", "conversion", "webhook", "clientConfig", "service", "name"))


def behave(definition: Body, world: World) -> Acts:
    if is_going(definition):
        yield from _delete_objects(definition, world)
    elif dig(definition, "status", "acceptedNames") != dig(definition, "spec", "names"):
        yield from _accept(definition, world)
    elif conditions.is_true(definition, "NamesAccepted") and not conditions.is_true(definition, "Established"):
        # Clients can see the moment in which the names are accepted and nothing is served yet.
        words = "the initial names have been accepted"
        yield _told(definition, condition(definition, "Established", "True", "InitialNamesAccepted", words))
    else:
        yield from cabundle.behave(definition, world)


def default(definition: Body) -> Body:
    spec = {"conversion": {"strategy": "None"}, **(definition.get("spec") or {})}
    names = dict(spec.get("names") or {})
    if kind := names.get("kind"):
        names.setdefault("singular", str(kind).lower())
        names.setdefault("listKind", f"{kind}List")
    spec["names"] = names
    webhook = dig(spec, "conversion", "webhook")
    if service := dig(webhook, "clientConfig", "service"):
        config = {**webhook["clientConfig"], "service": {"port": 443, **service}}
        spec["conversion"] = {**spec["conversion"], "webhook": {**webhook, "clientConfig": config}}
    return {**definition, "spec": spec}


def prepare(definition: Body, old: Body | None) -> Body:
    """Every version that ever was the stored one is remembered."""
    status = dict(definition.get("status") or (old or {}).get("status") or {})
    stored = list(status.get("storedVersions") or ())
    for version in listed(definition, "spec", "versions"):
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version["name"])
    return {**definition, "status": {**status, "storedVersions": stored}}


def deleting(definition: Body) -> Body:
    words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    told = condition(definition, "Terminating", "True", "InstanceDeletionPending", words)
    kept = with_condition(listed(definition, "status", "conditions"), told)
    status = {**(definition.get("status") or {}), "conditions": kept}
    return {**with_finalizer(definition, FINALIZER), "status": status}


def frozen(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if conditions.is_true(old, "Established"):
        yield from frozen_field(old, new, "spec.scope", minor)
        yield from frozen_field(old, new, "spec.names.kind", minor)
    yield from frozen_field(old, new, "spec.group", minor)
    yield from frozen_field(old, new, "spec.names.plural", minor)
    versions = [version.get("name") for version in listed(new, "spec", "versions")]
    for index, version in enumerate(listed(new, "status", "storedVersions")):
        if version not in versions:
            yield invalid(f"status.storedVersions[{index}]", scalar(version, minor), _still_stored(version, minor))


def ready(definition: Body) -> bool:
    return conditions.is_true(definition, "Established") and not is_going(definition)


def _accept(definition: Body, world: World) -> Acts:
    names = dig(definition, "spec", "names") or {}
    conflict = _conflict(definition, world)
    if conflict:
        told = [
            condition(definition, "NamesAccepted", "False", *conflict),
            condition(definition, "Established", "False", "NotAccepted", "not all names are accepted"),
        ]
        yield _told(definition, *told)
        return
    told = [condition(definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found")]
    if not conditions.is_true(definition, "Established"):
        words = "the initial names have been accepted"
        told.append(condition(definition, "Established", "False", "Installing", words))
    accepted = _told(definition, *told)
    yield Status(definition, {**accepted.status, "acceptedNames": names})


def _conflict(definition: Body, world: World) -> tuple[str, str] | None:
    """(reason, message) of the last name that another definition of the group has."""
    others = [
        dig(other, "status", "acceptedNames") or {}
        for other in world.all("CustomResourceDefinition", group=GROUP)
        if name_of(other) != name_of(definition) and dig(other, "spec", "group") == dig(definition, "spec", "group")
    ]
    resources = {name for other in others for name in (other.get("plural"), other.get("singular"))}
    resources |= {name for other in others for name in listed(other, "shortNames")}
    kinds = {name for other in others for name in (other.get("kind"), other.get("listKind"))}
    names = dig(definition, "spec", "names") or {}
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


def _delete_objects(definition: Body, world: World) -> Acts:
    """All its objects go first; a finalizer on one of them keeps the definition too."""
    if FINALIZER not in finalizers_of(definition):
        return
    kind, group = str(dig(definition, "spec", "names", "kind")), str(dig(definition, "spec", "group"))
    for body in world.all(kind, group=group):
        if not is_going(body):
            yield Delete(body, why=f"its definition {name_of(definition)} is being deleted", unasked=True)
    if world.all(kind, group=group):
        words = "CustomResource deletion is in progress"
        yield _told(definition, condition(definition, "Terminating", "True", "InstanceDeletionInProgress", words))
        return
    yield Change(without_finalizer(definition, FINALIZER))


def _told(definition: Body, *told: Body) -> Status:
    kept = listed(definition, "status", "conditions")
    for found in told:
        kept = with_condition(kept, found)
    return Status(definition, {**(definition.get("status") or {}), "conditions": kept})


def _still_stored(version: str, minor: int) -> str:
    if minor < WHOLE_WORDS_SINCE:
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
        frozen=frozen,
        default=default,
        prepare=prepare,
        deleting=deleting,
        ready=ready,
    ),
)


def api_versions(bodies: Iterable[Body]) -> list[str]:
    """What definitions among these objects make a chart's `.Capabilities.APIVersions` say."""
    found: dict[str, None] = {}
    for body in bodies:
        if body.get("kind") == "CustomResourceDefinition":
            group, kind = dig(body, "spec", "group"), dig(body, "spec", "names", "kind")
            for version in listed(body, "spec", "versions"):
                if version.get("served"):
                    found[f"{group}/{version.get('name')}"] = None
                    found[f"{group}/{version.get('name')}/{kind}"] = None
    return list(found)
