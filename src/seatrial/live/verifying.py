"""`verify`: what a deployment should have brought, against what is there. Sends nothing.

Each check is a function over what was read of the cluster. A problem is something that is so now; what cannot be known
from the cluster alone is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from seatrial.graph.linking import BLOCKING, Graph
from seatrial.helm import hooks
from seatrial.helm.history import Revision
from seatrial.helm.ownership import RELEASE_NAME
from seatrial.kinds.core import conditions
from seatrial.live.built import BUILD_GROUP, build_fault
from seatrial.live.delivered import DEPLOYED, hidden_records, newest_record, no_record, records_of
from seatrial.live.seen import IsServed, RecordQuestion, Seen
from seatrial.live.usable import absent, object_usable, secret_usable
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, group_of, listed, metadata, uid_of, version_of

ORDER_SECONDS = 2.0
"""Times of the API have whole seconds, and several API servers have clocks of their own."""
PRECIOUS = (
    *("Namespace", "PersistentVolumeClaim", "PersistentVolume"),
    *("CustomResourceDefinition", "ServiceAccount", "Secret"),
)
"""Kinds whose loss takes more with it than the object: content, data, tokens."""


class VerifyView(Struct, frozen=True):
    """What is verified."""

    releases: tuple[Release, ...]
    graph: Graph
    seen: Seen
    before: Mapping[Ref, str] | None = None
    """The uids that objects had before the deployment, if that is known."""
    uninstalled: bool = False
    """Whether the releases were removed."""

    def regular(self) -> Iterator[Resource]:
        """Objects that must be there. Of hooks, those that Helm does not delete once they have succeeded."""
        for release in self.releases:
            for resource in (*release.crds, *release.resources):
                if not hooks.is_hook(resource.body) or _stays(resource.body):
                    yield resource


class VerifyProblem(Struct, frozen=True):
    says: str
    object: Ref | None = None
    is_note: bool = False
    is_unknown: bool = False
    """Whether it may not be read, so that it is not known to be a problem."""


class Checked(Struct, frozen=True):
    """The result of one check."""

    name: str
    about: str
    problems: tuple[VerifyProblem, ...] = ()
    skipped: str = ""
    """Why there was nothing to check."""

    @property
    def passed(self) -> bool:
        return all(problem.is_note for problem in self.problems)

    @property
    def state(self) -> str:
        if self.skipped or self.passed:
            return "skipped" if self.skipped else "ok"
        return "unknown" if all(one.is_note or one.is_unknown for one in self.problems) else "problem"


Check = Callable[[VerifyView], Iterator[VerifyProblem]]


def verify(view: VerifyView) -> list[Checked]:
    """The result of every check."""
    return [
        Checked(name, about, skipped=why)
        if (why := _skipped(name, view))
        else Checked(name, about, tuple(dict.fromkeys(check(view))))
        for name, (about, check) in CHECKS.items()
        if (name == "left") is view.uninstalled
    ]


def _skipped(name: str, view: VerifyView) -> str:
    if name == "uids" and not view.before:
        return "no object of the input was there before" if view.before == {} else "--before was not given"
    if name in ("record", "orphans") and not any(release.chart for release in view.releases):
        return "the input is no chart"
    kinds = {resource.ref.kind for resource in view.regular()}
    if name == "builds" and "BuildConfig" not in kinds:
        return "the input has no BuildConfig"
    if name in ("cleanup", "logs") and "Job" not in kinds:
        return "the input has no Job"
    return "" if name != "secrets" or view.graph.made else "no operator creates anything from the input"


def _stays(body: Body) -> bool:
    runs = any(hooks.runs_at(body, action) for action in ("install", "upgrade"))
    return runs and hooks.SUCCEEDED not in hooks.delete_policies(body)


def _records(view: VerifyView) -> Iterator[VerifyProblem]:
    """Helm's record of the release is there: a release may delete the namespace that holds it."""
    for release in view.releases:
        if not release.chart:
            continue
        newest = newest_record(release.namespace, release.name, view.seen)
        where = f"release {release.name} in namespace {release.namespace}"
        if newest is None and hidden_records(release.namespace, view.seen):
            yield VerifyProblem(no_record(release.namespace, release.name, view.seen), is_unknown=True)
            continue
        if newest is None:
            yield VerifyProblem(f"Helm has no record of {where}; helm upgrade and helm uninstall will not find it")
            continue
        ref, number, status = newest
        if status != DEPLOYED:
            yield VerifyProblem(f"{where}: revision {number} has status {status}", ref)
        revision = view.seen.answer(RecordQuestion(ref))
        if isinstance(revision, Revision):
            yield from _failed_hooks(revision, where)


def _failed_hooks(revision: Revision, where: str) -> Iterator[VerifyProblem]:
    """Which hooks ran is in the record: a hook has an annotation and no label, so no selector finds it."""
    for hook in revision.record.get("hooks") or ():
        phase = str(dig(hook, "last_run", "phase") or "")
        if phase not in ("", "Succeeded", "Unknown"):
            ref = Ref(str(hook.get("kind")), revision.release.namespace, str(hook.get("name")))
            yield VerifyProblem(f"{where}: its hook {ref} has {phase}", ref)


def _presence(view: VerifyView) -> Iterator[VerifyProblem]:
    for resource in view.regular():
        ref, api_version = resource.ref, str(resource.body.get("apiVersion") or "")
        unserved = view.seen.answer(IsServed(group_of(api_version), version_of(api_version), ref.kind))
        if unserved:
            yield VerifyProblem(f"{ref}: {unserved}", ref)
        elif view.seen.get(ref) is None:
            yield VerifyProblem(absent(ref, view.seen).missing, ref, is_unknown=not _known(ref, view.seen))


def _readiness(view: VerifyView) -> Iterator[VerifyProblem]:
    for resource in view.regular():
        body = view.seen.get(resource.ref)
        if body is None:
            continue
        verdict = object_usable(resource.ref, view.seen)
        if not verdict.usable:
            yield VerifyProblem(verdict.missing, resource.ref)
        yield from (VerifyProblem(note, resource.ref, is_note=True) for note in verdict.notes)


def _secrets(view: VerifyView) -> Iterator[VerifyProblem]:
    """What operators create from the objects is there, with the keys that others use."""
    keys: dict[Ref, set[str]] = {ref: set() for ref in view.graph.made}
    for link in view.graph.links:
        if link.object in keys and link.key and not link.optional and not link.guess:
            keys[link.object].add(link.key)
    for ref in sorted(keys):
        wanted = tuple(sorted(keys[ref]))
        verdict = secret_usable(ref, view.seen, wanted) if ref.kind == "Secret" else object_usable(ref, view.seen)
        if not verdict.usable:
            yield VerifyProblem(verdict.missing, ref, is_unknown=not _known(ref, view.seen))


def _order(view: VerifyView) -> Iterator[VerifyProblem]:
    """No object was written before what it needs existed. Read from creation times and the times of field managers."""
    for link in view.graph.links:
        if link.optional or link.guess or link.stage not in BLOCKING or link.user == link.object:
            continue
        user, needed = view.seen.get(link.user), view.seen.get(link.object)
        if user is None or needed is None:
            continue
        late = (_created(needed) - _written(user)).total_seconds()
        if late > ORDER_SECONDS:
            yield VerifyProblem(
                f"{link.object} was created {late:.0f} s after {link.user}, which needs it", link.object
            )


def _uids(view: VerifyView) -> Iterator[VerifyProblem]:
    """Objects that were there before are the same objects now."""
    for resource in view.regular():
        before, body = (view.before or {}).get(resource.ref), view.seen.get(resource.ref)
        if not before or body is None or uid_of(body) == before:
            continue
        expected = hooks.is_hook(resource.body) and resource.ref.kind not in PRECIOUS
        says = f"{resource.ref} was deleted and created again (uid {before} before, {uid_of(body)} now)"
        yield VerifyProblem(says, resource.ref, is_note=expected)


def _orphans(view: VerifyView) -> Iterator[VerifyProblem]:
    """Objects of earlier revisions that the newest one does not have, and that are still there as this release's."""
    for release in view.releases:
        if not release.chart:
            continue
        kept = {resource.ref for resource in (*release.resources, *release.crds)}
        for ref, number, _ in reversed(records_of(release.namespace, release.name, view.seen)):
            revision = view.seen.answer(RecordQuestion(ref))
            if not isinstance(revision, Revision):
                continue
            for resource in revision.release.resources:
                if resource.ref not in kept and (body := view.seen.get(resource.ref)) is not None:
                    kept.add(resource.ref)
                    yield from _orphan(resource, body, release, number)


def _orphan(resource: Resource, body: Body, release: Release, number: int) -> Iterator[VerifyProblem]:
    if hooks.is_hook(resource.body):
        yield VerifyProblem(
            f"{resource.ref} is left of a hook of revision {number}; Helm never deletes it", resource.ref
        )
    elif annotations_of(body).get(RELEASE_NAME) == release.name:
        kept = annotations_of(body).get(hooks.RESOURCE_POLICY) == "keep"
        why = "its resource-policy is keep" if kept else "nothing deletes it"
        yield VerifyProblem(f"{resource.ref} is left of revision {number}: {why}", resource.ref, is_note=kept)


def _cleanup(view: VerifyView) -> Iterator[VerifyProblem]:
    """Finished Jobs that nothing removes: no TTL, and no hook policy that deletes them when they succeed."""
    for resource in view.regular():
        body = view.seen.get(resource.ref) if (resource.ref.group, resource.ref.kind) == ("batch", "Job") else None
        if body is None or dig(body, "spec", "ttlSecondsAfterFinished") is not None:
            continue
        if conditions.is_true(body, "Complete"):
            says = f"{resource.ref} is complete and stays: it has no ttlSecondsAfterFinished"
            yield VerifyProblem(says, resource.ref, is_note=True)


def _logs(view: VerifyView) -> Iterator[VerifyProblem]:
    """A Job that failed still has a pod, whose log tells why."""
    for resource in view.regular():
        body = view.seen.get(resource.ref) if (resource.ref.group, resource.ref.kind) == ("batch", "Job") else None
        if body is None or not conditions.is_true(body, "Failed") or view.seen.owned(body, "Pod"):
            continue
        kept = dig(body, "spec", "template", "spec", "restartPolicy") == "Never"
        why = "" if kept else "; with restartPolicy OnFailure the Job controller deletes them, with Never it keeps them"
        yield VerifyProblem(f"{resource.ref} failed, and its pods are gone with their logs{why}", resource.ref)


def _builds(view: VerifyView) -> Iterator[VerifyProblem]:
    """The newest build of every BuildConfig is complete, and its tag has the image of that build."""
    for resource in view.regular():
        ref = resource.ref
        if (ref.group, ref.kind) != (BUILD_GROUP, "BuildConfig") or view.seen.get(ref) is None:
            continue
        if says := build_fault(ref, view.seen):
            yield VerifyProblem(says, ref)


def _left(view: VerifyView) -> Iterator[VerifyProblem]:
    """Objects of a release that was removed. Helm leaves hooks, CRDs and what has the policy `keep`."""
    for release in view.releases:
        if release.chart and (newest := newest_record(release.namespace, release.name, view.seen)):
            ref, number, status = newest
            note = status == "uninstalled"
            yield VerifyProblem(f"Helm has a record of revision {number}, with status {status}", ref, is_note=note)
        crds = {resource.ref for resource in release.crds}
        for resource in (*release.resources, *release.crds):
            body = view.seen.get(resource.ref)
            if body is None:
                continue
            kept = annotations_of(body).get(hooks.RESOURCE_POLICY) == "keep" or resource.ref in crds
            hook = "a hook, which Helm does not delete" if hooks.is_hook(resource.body) and release.chart else ""
            why = hook or ("its resource-policy is keep" if resource.ref not in crds else "Helm never deletes crds/")
            says = f"{resource.ref} is left" + (f": {why}" if hook or kept else "")
            yield VerifyProblem(says, resource.ref, is_note=kept and not hook)


def _created(body: Body) -> datetime:
    return _time(metadata(body).get("creationTimestamp"))


def _written(body: Body) -> datetime:
    """When an object was last written by a client, not by the controller of its status or metadata."""
    times = [
        _time(owner.get("time"))
        for owner in listed(body, "metadata", "managedFields")
        if not owner.get("subresource") and set(owner.get("fieldsV1") or ()) - {"f:metadata", "f:status"}
    ]
    return max(times, default=_created(body))


def _time(text: object) -> datetime:
    return datetime.fromisoformat(str(text or "1970-01-01T00:00:00Z").replace("Z", "+00:00"))


def _known(ref: Ref, seen: Seen) -> bool:
    return seen.is_known(ref.kind, ref.namespace, ref.group, ref.name)


CHECKS: dict[str, tuple[str, Check]] = {
    "record": ("Helm's record of the release, and its hooks", _records),
    "presence": ("every object exists, in a version that is served", _presence),
    "readiness": ("every object is usable", _readiness),
    "secrets": ("what operators create is there, with the keys that are used", _secrets),
    "order": ("nothing was written before what it needs existed", _order),
    "uids": ("objects that were there before were not replaced", _uids),
    "orphans": ("nothing of earlier revisions is left", _orphans),
    "cleanup": ("finished Jobs are removed", _cleanup),
    "logs": ("failed Jobs still have their logs", _logs),
    "builds": ("the newest build of every BuildConfig is complete, and its tag is of it", _builds),
    "left": ("nothing of the removed release is left", _left),
}


def uids_of(bodies: Iterable[Body], refs: Iterable[Ref]) -> dict[Ref, str]:
    """The uids in a file, for objects that are looked for: a file may lack the namespace of what has none."""
    wanted = set(refs)
    found = {}
    for body in bodies:
        meta = metadata(body)
        ref = Ref(
            str(body.get("kind")),
            str(meta.get("namespace") or ""),
            str(meta.get("name")),
            group_of(str(body.get("apiVersion"))),
        )
        if ref in wanted and meta.get("uid"):
            found[ref] = str(meta["uid"])
    return found
