"""Plans: what one upgrade cannot do, as commands in order. Each is rehearsed before it is offered."""

from __future__ import annotations

from msgspec import Struct

from seatrial.model.finding import Finding
from seatrial.model.options import Detour
from seatrial.model.resource import Ref
from seatrial.model.trial import Step
from seatrial.phrases.objects import in_kubectl

HELM = "helm"
ADOPTED = ("hook-to-release-flip", "crd-moves-crds-to-templates")
RECREATED = ("immutable-selector-change", "job-immutable-template", "other-immutable-field")
ORPHANED = ("statefulset-immutable-field",)
KEPT = {"CustomResourceDefinition": "apiextensions.k8s.io/v1", "PersistentVolumeClaim": "v1"}
"""Kinds that hold data, and the version to annotate them in."""
DROPPED = ("crd-in-templates-deleted-on-uninstall", "stateful-resource-renamed-or-dropped")
SKIPPED = ("crds-dir-not-upgraded",)
CRDS = "/crds/"
KEEP = "helm.sh/resource-policy"
ORPHAN = "--cascade=orphan"
UPGRADE = "helm upgrade, with the flags that you use"
NOTHING = "nothing is down meanwhile"
CLAIM = "PersistentVolumeClaim"
MOVE = (
    "If another PVC replaces it: scale what uses that to 0, copy the data with a pod that mounts both, and scale back "
    "(not rehearsed)."
)
MOVED = "what uses another PVC now starts with an empty volume, and is down while the data is copied"
MEANWHILE = {
    "Deployment": "its pods are down until the new ones are ready",
    "DaemonSet": "its pods are down until the new ones are ready",
    "StatefulSet": "its pods are down until the new ones are ready",
    "Job": "it runs again",
}


class MigrationPlan(Struct, frozen=True):
    """Commands in order, how they are rehearsed, and what is down while they run."""

    title: str
    steps: tuple[str, ...]
    detour: Detour
    meanwhile: str


def plan_for(finding: Finding) -> MigrationPlan | None:
    """The plan for a finding of a Helm upgrade, if its rule has one."""
    if not finding.objects or finding.action != "upgrade" or finding.certainty == "may":
        return None
    ref = finding.objects[0]
    if any(engine.name != HELM for engine in finding.engines):
        return None
    if finding.rule in ADOPTED:
        return _adopted(ref)
    if finding.rule in DROPPED:
        return _kept(finding)
    if finding.rule in SKIPPED:
        return _applied_first(finding)
    if finding.rule in ORPHANED:
        return _deleted(ref, (ORPHAN,), "its pods keep running, and the new one adopts them")
    if finding.rule in RECREATED:
        return _deleted(ref, (), MEANWHILE.get(ref.kind, "it is missing until the upgrade recreates it"))
    return None


def _adopted(ref: Ref) -> MigrationPlan:
    return MigrationPlan(
        f"adopt {ref} in this upgrade",
        ("helm upgrade --take-ownership, with the flags that you use", "From then on helm upgrade as before."),
        Detour(flags=("--take-ownership",)),
        NOTHING,
    )


def _applied_first(finding: Finding) -> MigrationPlan | None:
    """Helm installs crds/ once; kubectl takes their fields over."""
    files = list(dict.fromkeys(place.file for place in finding.places if CRDS in place.file))
    if not files:
        return None
    flags = ("--server-side", "--force-conflicts")
    return MigrationPlan(
        "apply the CRDs before this upgrade",
        (*(f"kubectl apply {' '.join(flags)} -f {file}" for file in files), UPGRADE),
        Detour(before=tuple(Step("apply", file, flags=flags) for file in files)),
        NOTHING,
    )


def _kept(finding: Finding) -> MigrationPlan | None:
    """Helm reads the annotation from the live object, so it can be set without a release before."""
    refs = [ref for ref in finding.objects if ref.kind in KEPT]
    if not refs:
        return None
    claims = [ref for ref in refs if ref.kind == CLAIM]
    more = f" and {len(refs) - 1} more" if len(refs) > 1 else ""
    file = f"{refs[0].name}-keep.yaml"
    return MigrationPlan(
        f"keep {refs[0]}{more} through this upgrade",
        (
            *(f"kubectl annotate {in_kubectl(ref)} {KEEP}=keep" for ref in refs),
            UPGRADE,
            *((MOVE, f"When the data is there: kubectl delete {in_kubectl(claims[0])}") if claims else ()),
        ),
        Detour(
            before=(Step("apply", file, flags=("--server-side",)),),
            files=((file, "---\n".join(map(_annotated, refs))),),
        ),
        MOVED if claims else NOTHING,
    )


def _annotated(ref: Ref) -> str:
    """What kubectl annotate does, as a manifest."""
    where = f"  namespace: {ref.namespace}\n" if ref.namespace else ""
    head = f"apiVersion: {KEPT[ref.kind]}\nkind: {ref.kind}\nmetadata:\n  name: {ref.name}\n{where}"
    return f"{head}  annotations:\n    {KEEP}: keep\n"


def _deleted(ref: Ref, flags: tuple[str, ...], meanwhile: str) -> MigrationPlan:
    words = " ".join(("kubectl delete", in_kubectl(ref), *flags))
    return MigrationPlan(
        f"delete {ref} once, before this upgrade",
        (words, UPGRADE),
        Detour(before=(Step("delete", str(ref), flags=flags),)),
        meanwhile,
    )
