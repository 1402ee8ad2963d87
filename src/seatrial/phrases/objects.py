"""Sentences about one object: who uses it, what pods report about it, what the next steps do to it."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment
from seatrial.graph import Edge, users_of
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.core import missing
from seatrial.kinds.tables.catalogue import CATALOGUE, plural_of
from seatrial.kinds.workloads.images import running_images
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import StepResult
from seatrial.phrases.outcome import NAMES_MAX

HOW = {
    "volumes": "mounts",
    "env": "reads",
    "envFrom": "reads",
    "serviceAccountName": "runs as",
    "imagePullSecrets": "pulls its images with",
}
BUILT_IN_GROUPS = frozenset(group for group, _ in CATALOGUE)

AUTHENTICATION_ERRORS = {
    "postgres": '"password authentication failed for user" (PostgreSQL)',
    "pgvector": '"password authentication failed for user" (PostgreSQL)',
    "postgis": '"password authentication failed for user" (PostgreSQL)',
    "timescaledb": '"password authentication failed for user" (PostgreSQL)',
    "mysql": '"Access denied for user" (MySQL)',
    "mariadb": '"Access denied for user" (MariaDB)',
    "rabbitmq": '"ACCESS_REFUSED - Login was refused" (RabbitMQ)',
    "mongo": '"Authentication failed" (MongoDB)',
}
"""By the beginning of an image name: what clients see that use another password than the program was set up with."""


def authentication_error(workload: Body) -> str:
    """The error of the clients of a workload, as far as its images show which program it is."""
    names = running_images(workload)
    found = (error for name in names for begin, error in AUTHENTICATION_ERRORS.items() if name.startswith(begin))
    return next(found, "an authentication error")


def users_beyond_hooks(release: Release, ref: Ref) -> list[Edge]:
    """Users of an object that are not hooks: one edge per user."""
    found = {edge.user.ref: edge for edge in users_of(release, ref) if not hooks.is_hook(edge.user.body)}
    if ref.kind == "ServiceAccount":  # A binding only names the ServiceAccount; it works without it.
        found = {user: edge for user, edge in found.items() if user.group != RBAC}
    return [found[user] for user in sorted(found)]


def running_with(release: Release, ref: Ref) -> list[Ref]:
    """The workloads beyond hooks whose ServiceAccount has its rights from a role or a binding."""
    bindings = [r for r in release.resources if r.ref.group == RBAC and r.ref.kind.endswith("Binding")]
    if ref.group != RBAC:
        return []
    names = {ref} if ref.kind.endswith("Binding") else {edge.user.ref for edge in users_of(release, ref)}
    subjects = {
        Ref("ServiceAccount", str(subject.get("namespace") or one.ref.namespace), str(subject.get("name")))
        for one in bindings
        if one.ref in names
        for subject in listed(one.body, "subjects")
    }
    edges = (edge for subject in subjects for edge in users_beyond_hooks(release, subject))
    return sorted({edge.user.ref for edge in edges})


def consumers_sentence(release: Release, ref: Ref, said: str = "") -> str:
    """`Deployment/default/web mounts it.`, with what its pods reported, or would report without it."""
    users = users_beyond_hooks(release, ref)
    words = next(filter(None, (missing.missing_error(edge.user.body, edge.need) for edge in users)), "")
    says = said or (f'A pod that starts without it reports: "{words}".' if words else "")
    return f"{users_sentence(release, ref)} {says}".rstrip() if users else ""


def users_sentence(release: Release, ref: Ref) -> str:
    """`Deployment/default/web mounts it.`"""
    users = users_beyond_hooks(release, ref)
    named = "; ".join(f"{edge.user.ref} {_how(edge)} it" for edge in users[:NAMES_MAX])
    more = f"; {len(users) - NAMES_MAX} more use it" if len(users) > NAMES_MAX else ""
    return f"{named}{more}." if users else ""


def pods_say(moment: Moment, ref: Ref) -> str:
    """What pods reported about the missing object in this step."""
    said = [e for e in moment.events() if e.effect == "said" and ref in e.missing]
    if not said:
        return ""
    pods = len({event.object for event in said})
    late = (
        f"{pods} pods that start afterwards report" if pods > 1 else f"{said[0].object} starts afterwards and reports"
    )
    return f'{late}: "{said[-1].message}".'


def next_time_sentence(moment: Moment, ref: Ref) -> str:
    """What the next steps do to the object."""
    return " ".join(_later(moment, ref))


def in_kubectl(ref: Ref) -> str:
    """An object as kubectl arguments: `secret shop-db -n default`."""
    kind = f"{ref.kind.lower()}.{ref.group}" if ref.group not in BUILT_IN_GROUPS else ref.kind.lower()
    return f"{kind} {ref.name}" + (f" -n {ref.namespace}" if ref.namespace else "")


def in_api(ref: Ref) -> str:
    """The resource name of an object: `jobs.batch`."""
    plural = plural_of(ref.group, ref.kind) or f"{ref.kind.lower()}s"
    return f"{plural}.{ref.group}" if ref.group else plural


def adoption(ref: Ref, ended: StepResult) -> tuple[str, ...]:
    """The steps that make an existing object part of the release."""
    return (
        f"kubectl label --overwrite {in_kubectl(ref)} app.kubernetes.io/managed-by=Helm",
        f"kubectl annotate --overwrite {in_kubectl(ref)} meta.helm.sh/release-name={ended.release} "
        f"meta.helm.sh/release-namespace={ended.namespace}",
        f"{ended.action.capitalize()} again. Instead of all three: {ended.action} once with --take-ownership.",
    )


def confirm_twice(ref: Ref, path: str, around: str) -> str:
    """The command that shows a change when run before and after."""
    return f"kubectl get {in_kubectl(ref)} -o jsonpath='{path}'  # before and after {around}"


def _later(moment: Moment, ref: Ref) -> Iterator[str]:
    for index, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        before = "The next" if index == moment.index + 1 else "A later"
        if ref in ended.created:
            yield f"{before} {ended.action} recreates it."
            return
        if ref in ended.missing:
            yield f"{before} {ended.action} leaves it missing."
        elif ended.outcome != "ok":
            yield f"{before} {ended.action} {ended.outcome}."
            return


def _how(edge: Edge) -> str:
    return next((HOW[part] for part in edge.need.field if isinstance(part, str) and part in HOW), "needs")
