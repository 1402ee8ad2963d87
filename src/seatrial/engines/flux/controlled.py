"""The objects of a real Flux: its CRDs, the status that its sources would have, and what its own objects say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from seatrial.engines.flux.objects import HELM_GROUP, KUSTOMIZE_GROUP, SOURCE_GROUP, FluxObjects, HelmRelease
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed, metadata, name_of, with_metadata
from seatrial.model.timeline import Reconciled

HOME = "flux-system"
GROUPS = (KUSTOMIZE_GROUP, HELM_GROUP, SOURCE_GROUP)
VERSIONS = {
    ("GitRepository", SOURCE_GROUP): "v1",
    ("OCIRepository", SOURCE_GROUP): "v1",
    ("Bucket", SOURCE_GROUP): "v1",
    ("HelmRepository", SOURCE_GROUP): "v1",
    ("HelmChart", SOURCE_GROUP): "v1",
    ("ExternalArtifact", SOURCE_GROUP): "v1",
    ("Kustomization", KUSTOMIZE_GROUP): "v1",
    ("HelmRelease", HELM_GROUP): "v2",
}
ACTED_ON = (("Kustomization", KUSTOMIZE_GROUP), ("HelmRelease", HELM_GROUP))
REQUESTED = "reconcile.fluxcd.io/requestedAt"
NOW = "2025-01-01T00:00:00Z"
SERVER = "http://source-controller.flux-system.svc.cluster.local."
TIMEOUT = "8s"
"""No time of the cluster passes in it, so a short wait shows the same as a long one. A Kustomization takes 30 s."""
AFTER = lazy_re.compile(r"failed after \S+:")
"""The time that a health check took, which is not that of the cluster."""
EARLY = lazy_re.compile(r"health check failed after \S+: (?=failed early)")
"""The same where it did not wait for its timeout: how long it takes is not known in the cluster."""
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
STATUS = {**ANYTHING, "default": {"observedGeneration": -1}}
SCHEMA: Body = {
    "schema": {"openAPIV3Schema": {**ANYTHING, "properties": {"status": STATUS}}},
    "subresources": {"status": {}},
}
State = Literal["ready", "failed", "busy"]


class Artifact(Struct, frozen=True):
    """What a source has fetched."""

    data: bytes
    revision: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def path(self) -> str:
        return f"{self.digest}.tar.gz"


def installed() -> tuple[Body, ...]:
    """What installing Flux leaves, as far as its controllers need it."""
    home: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    return (home, *(_definition(kind, group, version) for (kind, group), version in VERSIONS.items()))


def fetched(source: Body, artifact: Artifact) -> Body:
    """The status of a source with its artifact."""
    generation = metadata(source).get("generation") or 1
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Succeeded",
        "message": f"stored artifact for revision '{artifact.revision}'",
        "observedGeneration": generation,
        "lastTransitionTime": NOW,
    }
    about = {
        "digest": f"sha256:{artifact.digest}",
        "lastUpdateTime": NOW,
        "path": artifact.path,
        "revision": artifact.revision,
        "size": len(artifact.data),
        "url": f"{SERVER}/{artifact.path}",
    }
    return {"status": {"artifact": about, "conditions": [ready], "observedGeneration": generation}}


def has_fetched(source: Body, artifact: Artifact) -> bool:
    seen = dig(source, "status", "observedGeneration") == (metadata(source).get("generation") or 1)
    return bool(seen) and dig(source, "status", "artifact", "digest") == f"sha256:{artifact.digest}"


def is_source(body: Body) -> bool:
    return str(body["apiVersion"]).startswith(f"{SOURCE_GROUP}/")


def is_acted_on(body: Body) -> bool:
    return (body["kind"], str(body["apiVersion"]).rpartition("/")[0]) in ACTED_ON


def impatient(body: Body) -> Body:
    """An object of Flux that gives up earlier."""
    return {**body, "spec": {**(body.get("spec") or {}), "timeout": TIMEOUT}} if is_acted_on(body) else body


def asked_again(body: Body) -> Body:
    """A request to reconcile an object now, as `flux reconcile` writes it."""
    number = int(annotations_of(body).get(REQUESTED) or 0) + 1
    return with_metadata(body, annotations={**annotations_of(body), REQUESTED: str(number)})


def state_of(body: Body) -> State:
    """Whether an object is Ready, failed, or still being reconciled."""
    ready = condition(body)
    wanted = annotations_of(body).get(REQUESTED)
    if wanted and dig(body, "status", "lastHandledReconcileAt") != wanted:
        return "busy"
    if ready.get("observedGeneration") not in (None, metadata(body).get("generation")):
        return "busy"
    return {"True": "ready", "False": "failed"}.get(str(ready.get("status")), "busy")  # type: ignore[return-value]


def condition(body: Body, name: str = "Ready") -> Body:
    return next((one for one in listed(body, "status", "conditions") if one.get("type") == name), {})


def _message(body: Body) -> str:
    """Why an object is not Ready, and why it is not tried again."""
    stalled, why = condition(body, "Stalled"), str(condition(body).get("message") or "")
    words = f"{stalled.get('reason')}: {stalled.get('message')}"
    said = stalled.get("status") != "True" or why.startswith(words) or why == stalled.get("message")
    return why if said else f"{words}. {why}"


def reconciled(bodies: Iterable[Body], fleet: FluxObjects) -> Iterator[Reconciled]:
    """What became of each Kustomization and HelmRelease."""
    for body in bodies:
        ref = Ref(body["kind"], str(metadata(body).get("namespace") or ""), name_of(body), _group(body))
        message = "" if state_of(body) == "ready" else _message(body)
        if (own := fleet.kustomizations.get(ref)) is not None:
            message = AFTER.sub(f"failed after {own.timeout}:", EARLY.sub("", message))
            objects = tuple(target.ref for target in own.targets)
            yield Reconciled(ref, message, 1, objects, waits=own.wait or bool(own.health_checks))
        elif (release := fleet.releases.get(ref)) is not None:
            objects = tuple(target.ref for target in (*release.everything, *release.hooks))
            act = str(dig(body, "status", "lastAttemptedReleaseAction") or "")
            name, namespace = release.release_name, release.target_namespace
            acts = (act,) if act else ()
            waits = (release.upgrade if act == "upgrade" else release.install).waits
            yield Reconciled(ref, message, 1, objects, acts=acts, waits=waits, release=name, namespace=namespace)


def uninstalled(release: HelmRelease) -> Reconciled:
    """What became of a HelmRelease that was deleted."""
    ref = Ref("HelmRelease", release.namespace, release.name, HELM_GROUP)
    objects = tuple(target.ref for target in (*release.targets, *release.hooks))
    name, namespace, waits = release.release_name, release.target_namespace, release.uninstall.waits
    return Reconciled(ref, "", 1, objects, acts=("uninstall",), waits=waits, release=name, namespace=namespace)


def _group(body: Body) -> str:
    return str(body["apiVersion"]).rpartition("/")[0]


def _definition(kind: str, group: str, version: str) -> Body:
    plural = f"{kind.lower()[:-1]}ies" if kind.endswith("y") else f"{kind.lower()}s"
    served = {
        "name": version,
        "served": True,
        "storage": True,
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [{**served, **SCHEMA}]},
    }


def unobserved(crd: Body) -> Body:
    """A CRD whose objects are not taken for ready before their controller has seen them, as those of Flux are."""
    spec = crd["spec"]
    return {**crd, "spec": {**spec, "versions": [{**version, **SCHEMA} for version in spec["versions"]]}}
