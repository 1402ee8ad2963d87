"""What Helm 3 does with objects: map, own, create, patch, delete and wait. Models `pkg/kube/client.go` of Helm 3.22.

Every function is a part of a script. What goes wrong is raised, in Helm's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from seatrial.engines import Stuck, script
from seatrial.engines.script import Answer, Command, Part, wait_until
from seatrial.helm.ownership import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE, owned_by
from seatrial.kinds.core import threeway
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.refusal import NO_FAILURE, During, Failure, Fault, joined
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, metadata, with_metadata

MANAGER = "helm"
_INSTALLED = """
PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget
ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume PersistentVolumeClaim
CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList
RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment
HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService
"""
_UNINSTALLED = """
APIService Ingress IngressClass Service CronJob Job StatefulSet HorizontalPodAutoscaler Deployment ReplicaSet
ReplicationController Pod DaemonSet RoleBindingList RoleBinding RoleList Role ClusterRoleBindingList
ClusterRoleBinding ClusterRoleList ClusterRole CustomResourceDefinition PersistentVolumeClaim PersistentVolume
StorageClass ConfigMap SecretList Secret ServiceAccount PodDisruptionBudget PodSecurityPolicy LimitRange
ResourceQuota NetworkPolicy Namespace PriorityClass
"""
INSTALL_ORDER, UNINSTALL_ORDER = tuple(_INSTALLED.split()), tuple(_UNINSTALLED.split())
"""From `pkg/releaseutil/kind_sorter.go` of Helm 3.22: webhook configurations are among the kinds it does not know."""
KEEP_POLICY = "helm.sh/resource-policy"

about = partial(script.about, manager=MANAGER)

Live = dict[Ref, Answer]
"""What the cluster said of each object."""


class Failed(Exception):
    """A failed Helm action with its error; `stuck` if it fails only after its timeout."""

    def __init__(self, words: str, stuck: Stuck | None = None, failure: Failure = NO_FAILURE) -> None:
        super().__init__(words)
        self.stuck = stuck
        self.failure = failure

    def within(self, words: str) -> Failed:
        """The same in the words of the caller."""
        return Failed(words, self.stuck, self.failure)

    def because(self, fault: Fault) -> Failed:
        """The same with another reason."""
        return Failed(str(self), self.stuck, joined(self.failure, Failure(faults=(fault,))))


def built(resources: Iterable[Resource], doing: str = "", during: During = "") -> Part[Live]:
    """Look at every object; all of their kinds have to be served."""
    live = {}
    unknown: list[str] = []
    faults: list[Fault] = []
    for resource in resources:
        answer = live[resource.ref] = yield about(resource, "get")
        if not answer.served:
            unknown.append(no_mapping(resource))
            faults += (replace(fault, during=during) for fault in answer.failure.faults)
    if unknown:
        words = unknown[0] if len(unknown) == 1 else f"[{', '.join(unknown)}]"
        raise Failed(doing + words, failure=Failure(faults=tuple(faults)))
    return live


def owned(resources: Iterable[Resource], live: Live, owner: tuple[str, str], doing: str) -> list[Resource]:
    """Existing objects that belong to the release (name, namespace); another one is an error."""
    found = [resource for resource in resources if live[resource.ref].code == 200]
    for resource in found:
        if wrong := not_owned(live[resource.ref].body, owner):
            what = f'{resource.ref.kind} "{resource.ref.name}" in namespace "{resource.ref.namespace}"'
            why = f"exists and cannot be imported into the current release: invalid ownership metadata; {wrong}"
            failure = Failure(faults=(Fault("not-owned", resource.ref),))
            raise Failed(f"Unable to continue with {doing}: {what} {why}", failure=failure)
    return found


def create(resources: Iterable[Resource], owner: tuple[str, str] | None) -> Part[None]:
    """Create every object; a rejection does not stop the rest."""
    refused: list[Answer] = []
    for resource in resources:
        body = owned_by(resource.body, *owner) if owner else resource.body
        answer = yield about(resource, "create", body)
        if answer.message:
            refused.append(answer)
    if refused:
        raise Failed(counted([answer.message for answer in refused]), failure=failure_of(refused))


def update(
    before: Sequence[Resource],
    wanted: Sequence[Resource],
    owner: tuple[str, str],
    *,
    force: bool,
    made: list[Resource],
    strict: bool = False,
) -> Part[None]:
    """Create what is not there, patch what is, delete what is no longer wanted; what was created is added to `made`.

    `strict`: until 3.21 an object that is there and that the revision before did not have was an error.
    """
    old = {resource.ref: resource for resource in before}
    errors: list[str] = []
    refused: list[Answer] = []
    for resource in wanted:
        live = yield about(resource, "get")
        body = owned_by(resource.body, *owner)
        if live.code == 404:
            answer = yield about(resource, "create", body)
            if answer.message or not answer.served:
                raise Failed(f"failed to create resource: {answer.message}", failure=answer.failure)
            made.append(resource)
            continue
        if strict and resource.ref not in old:
            raise _not_in_revision(resource.ref)
        was = old[resource.ref].body if resource.ref in old else live.body
        command = _replace(resource, body, live.body) if force else _patch(resource, was, body, live.body)
        if command and (answer := (yield command)).message:
            doing = (
                "failed to replace object"
                if force
                else f'cannot patch "{resource.ref.name}" with kind {resource.ref.kind}'
            )
            errors.append(f"{doing}: {answer.message}")
            refused.append(answer)
    if errors:
        raise Failed(" && ".join(errors), failure=failure_of(refused))
    kept = {resource.ref for resource in wanted}
    for resource in before:
        if resource.ref not in kept:
            yield from _drop(resource)


def _not_in_revision(ref: Ref) -> Failed:
    fault = Fault("not-in-revision", Ref(ref.kind, "", ref.name))
    return Failed(f'no {ref.kind} with the name "{ref.name}" found', failure=Failure(faults=(fault,)))


def delete(resources: Iterable[Resource], propagation: str = "Background") -> Part[list[Answer]]:
    """Delete every object; the refusals, except that one is gone already."""
    refused: list[Answer] = []
    for _, batch in groupby(resources, key=lambda r: r.ref.kind):
        for resource in batch:
            answer = yield about(resource, "delete", propagation=propagation)
            if answer.message and answer.code != 404:
                refused.append(answer)
    return refused


def failure_of(answers: Iterable[Answer]) -> Failure:
    return joined(*(answer.failure for answer in answers))


def wait(
    resources: Sequence[Resource], content: Callable[[Body], bool], words: str, patience_seconds: float = 0
) -> Part[None]:
    """Wait until Helm counts all of them as ready; one that is gone is not waited for."""

    def look() -> Part[tuple[Ref, ...] | None]:
        waited = []
        for resource in resources:
            live = yield about(resource, "get")
            if live.code == 200 and not content(live.body):
                waited.append(resource.ref)
        return tuple(waited) or None

    stuck = yield from wait_until(look, patience_seconds)
    if stuck is not None:
        raise Failed(words, stuck)


def is_gone(body: Body) -> bool:
    return False


def counted(errors: list[str]) -> str:
    """As go-multierror writes it."""
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    return f"{count} occurred:\n" + "\n".join(f"\t* {error}" for error in errors)


def _drop(resource: Resource) -> Part[None]:
    """Delete objects that left the manifest, unless the live one is kept; errors are only logged."""
    live = yield about(resource, "get")
    if live.code == 200 and annotations_of(live.body).get(KEEP_POLICY) != "keep":
        yield about(resource, "delete", propagation="Background")


def _replace(resource: Resource, body: Body, live: Body) -> Command:
    version = {"resourceVersion": metadata(live).get("resourceVersion")}
    return about(resource, "update", with_metadata(body, **version))


def _patch(resource: Resource, before: Body, wanted: Body, live: Body) -> Command | None:
    """Nothing is sent where nothing differs."""
    if (resource.ref.group, resource.ref.kind) in CATALOGUE:
        patch = threeway.strategic(before, wanted, live)
        return about(resource, "strategic", patch) if patch else None
    patch = threeway.merge(before, wanted)
    return about(resource, "merge", patch) if patch else None


def not_owned(body: Body, owner: tuple[str, str]) -> str:
    checks = (
        ("label", *MANAGED_BY, labels_of(body)),
        ("annotation", RELEASE_NAME, owner[0], annotations_of(body)),
        ("annotation", RELEASE_NAMESPACE, owner[1], annotations_of(body)),
    )
    wrong = (_wrong_mark(key, wanted, found) for _, key, wanted, found in checks)
    return "; ".join(f"{what} validation error: {said}" for (what, *_), said in zip(checks, wrong, strict=True) if said)


def _wrong_mark(key: str, wanted: str, found: dict[str, str]) -> str:
    if key not in found:
        return f'missing key "{key}": must be set to "{wanted}"'
    return "" if found[key] == wanted else f'key "{key}" must equal "{wanted}": current value is "{found[key]}"'


def no_mapping(resource: Resource) -> str:
    body, own = resource.body, metadata(resource.body).get("namespace") or ""
    return (
        f'resource mapping not found for name: "{resource.ref.name}" namespace: "{own}" from "": no matches for kind '
        f'"{resource.ref.kind}" in version "{body.get("apiVersion")}"\nensure CRDs are installed first'
    )
