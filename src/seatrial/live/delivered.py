"""Whether what an engine delivers is usable: Helm releases, Argo CD Applications, Flux Kustomizations and HelmReleases.

Sends nothing. An engine that says it is done is believed as far as its own record goes; the objects are looked at, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from seatrial.helm import hooks, records
from seatrial.helm.history import Revision
from seatrial.kinds.core import conditions
from seatrial.live import words
from seatrial.live.seen import RecordQuestion, Seen
from seatrial.live.usable import Verdict, absent, joined, lacks, object_usable
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

ARGOCD_GROUP = "argoproj.io"
KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"
HELM_GROUP = "helm.toolkit.fluxcd.io"
DEPLOYED = "deployed"
REFRESH = "argocd.argoproj.io/refresh"


def release_usable(namespace: str, name: str, seen: Seen) -> Verdict:
    """The newest revision is deployed, and its objects are usable."""
    newest = newest_record(namespace, name, seen)
    if newest is None:
        return lacks(no_record(namespace, name, seen))
    ref, number, status = newest
    if status != DEPLOYED:
        return lacks(f"release {name}: revision {number} has status {status}", ref)
    revision: Revision | str | None = seen.answer(RecordQuestion(ref))
    if revision is None:
        return lacks(f"release {name}: revision {number} is being read", ref)
    if isinstance(revision, str):
        return Verdict(notes=(f"the objects of release {name} were not checked: reading {ref} is forbidden",))
    found = joined(object_usable(ref, seen) for ref in objects_of(revision))
    return found if found.usable else replace(found, missing=f"release {name} is deployed, but {found.missing}")


def no_record(namespace: str, name: str, seen: Seen) -> str:
    """That there is no record of a release; or that it is not known."""
    hidden = hidden_records(namespace, seen)
    if hidden:
        return f"Helm release {name} in namespace {namespace} was not looked at: listing {hidden} is forbidden"
    return f"there is no Helm release {name} in namespace {namespace}"


def hidden_records(namespace: str, seen: Seen) -> str:
    """The kinds of records that may not be read."""
    return " and ".join(f"{kind}s" for kind in records.KINDS if not seen.is_known(kind, namespace))


def newest_record(namespace: str, name: str, seen: Seen) -> tuple[Ref, int, str] | None:
    """The record of the newest revision, its number and its status."""
    revisions = records_of(namespace, name, seen)
    return revisions[-1] if revisions else None


def records_of(namespace: str, name: str, seen: Seen) -> list[tuple[Ref, int, str]]:
    """Every revision that Helm keeps, oldest first. The labels of its record say what it is.

    ConfigMaps are looked at only if there is no Secret: a Helm uses one of both.
    """
    for kind in records.KINDS:
        found = []
        for body in seen.all(kind, namespace):  # Without a selector: objects of the release are of the same kinds.
            match = records.NAME.fullmatch(name_of(body))
            if match and match["release"] == name and labels_of(body).get("owner") == "helm":
                status = str(labels_of(body).get("status") or "unknown")
                found.append((int(match["revision"]), Ref(kind, namespace, name_of(body)), status))
        if found or not seen.was_read(kind, namespace):
            return [(ref, number, status) for number, ref, status in sorted(found)]
    return []


def objects_of(revision: Revision) -> Iterator[Ref]:
    """The regular resources of a revision: hooks come and go."""
    return (resource.ref for resource in revision.release.resources if not hooks.is_hook(resource.body))


def application_usable(namespace: str, name: str, seen: Seen) -> Verdict:
    """As `argocd app wait` waits: no operation runs, the last one succeeded, Synced and Healthy."""
    ref = Ref("Application", namespace, name, ARGOCD_GROUP)
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    missing = next(_application(body), "")
    return lacks(f"{ref}: {missing}", ref) if missing else Verdict()


def _application(body: Body) -> Iterator[str]:
    if REFRESH in (dig(body, "metadata", "annotations") or {}):
        yield "Argo CD has not refreshed it yet"
    if body.get("operation"):
        yield "a sync is requested and has not started"
    phase, said = dig(body, "status", "operationState", "phase"), dig(body, "status", "operationState", "message")
    if phase in ("Running", "Terminating"):
        yield words.shortened(f"a sync is {phase}" + (f": {said}" if said else ""))
    if phase in ("Failed", "Error"):
        yield words.shortened(f"the last sync has {phase}: {said}")
    errors = (c for c in listed(body, "status", "conditions") if str(c.get("type") or "").endswith("Error"))
    yield from (words.shortened(f"{error.get('type')}: {error.get('message')}") for error in errors)
    sync, health = dig(body, "status", "sync", "status"), dig(body, "status", "health", "status")
    if sync != "Synced":
        yield f"it is {sync or 'not compared yet'}"
    if health != "Healthy":
        yield f"its health is {health or 'unknown'}{_unhealthy(body)}"


def _unhealthy(body: Body) -> str:
    """The first resource that is not healthy, as the Application lists them."""
    for resource in listed(body, "status", "resources"):
        if (status := dig(resource, "health", "status")) and status != "Healthy":
            ref = Ref(str(resource.get("kind")), str(resource.get("namespace") or ""), str(resource.get("name")))
            said = dig(resource, "health", "message")
            return words.shortened(f": {ref} is {status}" + (f": {said}" if said else ""))
    return ""


def flux_usable(ref: Ref, seen: Seen) -> Verdict:
    """A Kustomization or HelmRelease: Ready, and for its present generation."""
    body = seen.get(ref)
    if body is None:
        return absent(ref, seen)
    if dig(body, "spec", "suspend") is True and (words.is_behind(body) or not conditions.is_true(body, "Ready")):
        return lacks(f"{ref} is suspended: Flux does not reconcile it", ref)
    if words.is_behind(body) or dig(body, "status", "observedGeneration") in (None, -1):
        return lacks(f"{ref}: its controller has not seen the last change yet", ref)
    if not conditions.is_true(body, "Ready") or conditions.is_true(body, "Reconciling"):
        return lacks(words.state(body), ref)
    return Verdict()
