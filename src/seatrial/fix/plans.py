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
ORPHAN = "--cascade=orphan"
NOTHING = "nothing is down meanwhile"
MEANWHILE = {
    "Deployment": "its pods are down until the new ones are ready",
    "DaemonSet": "its pods are down until the new ones are ready",
    "StatefulSet": "its pods are down until the new ones are ready",
    "Job": "it runs again",
}


class Plan(Struct, frozen=True):
    """Commands in order, how they are rehearsed, and what is down while they run."""

    title: str
    steps: tuple[str, ...]
    detour: Detour
    meanwhile: str


def plan_for(finding: Finding) -> Plan | None:
    """The plan for a finding of a Helm upgrade, if its rule has one."""
    if not finding.objects or finding.action != "upgrade" or finding.certainty == "may":
        return None
    ref = finding.objects[0]
    if any(engine.name != HELM for engine in finding.engines):
        return None
    if finding.rule in ADOPTED:
        return _adopted(ref)
    if finding.rule in ORPHANED:
        return _deleted(ref, (ORPHAN,), "its pods keep running, and the new one adopts them")
    if finding.rule in RECREATED:
        return _deleted(ref, (), MEANWHILE.get(ref.kind, "it is missing until the upgrade recreates it"))
    return None


def _adopted(ref: Ref) -> Plan:
    return Plan(
        f"adopt {ref} in this upgrade",
        ("helm upgrade --take-ownership, with the flags that you use", "From then on helm upgrade as before."),
        Detour(flags=("--take-ownership",)),
        NOTHING,
    )


def _deleted(ref: Ref, flags: tuple[str, ...], meanwhile: str) -> Plan:
    words = " ".join(("kubectl delete", in_kubectl(ref), *flags))
    return Plan(
        f"delete {ref} once, before this upgrade",
        (words, "helm upgrade, with the flags that you use"),
        Detour(before=(Step("delete", str(ref), flags=flags),)),
        meanwhile,
    )
