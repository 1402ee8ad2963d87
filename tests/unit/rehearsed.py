"""Test data for reports: the rehearsal of an upgrade that turns a ConfigMap into a hook."""

from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding, Fix
from seatrial.model.resource import Place, Ref
from seatrial.model.result import Played, Prerequisite, Result
from seatrial.model.timeline import Event, Rehearsal, StepResult

CONFIG = Ref("ConfigMap", "default", "web-config")
WEB = Ref("Deployment", "default", "web", "apps")
POD = Ref("Pod", "default", "web-5d9c7b")

MISSING = 'MountVolume.SetUp failed for volume "config" : configmap "web-config" not found'

TIMELINE = (
    Event(0, -1, "kubernetes", "create", Ref("Namespace", "", "default"), "created"),
    Event(1, 0, "helm", "apply", CONFIG, "created"),
    Event(2, 0, "helm", "apply", WEB, "created"),
    Event(3, 0, "deployment-controller", "create", POD, "created", cause=2),
    Event(4, 0, "kubelet", "status", POD, "changed", cause=3),
    Event(5, 1, "helm", "delete", CONFIG, "deleted"),
    Event(6, 1, "helm", "apply", CONFIG, "created"),
    Event(7, 1, "helm", "get", WEB, "read"),
    Event(8, 1, "helm", "patch", WEB, "changed"),
    Event(9, 1, "deployment-controller", "status", WEB, "changed", cause=8),
    Event(10, 1, "kubelet", "say", POD, "said", MISSING, cause=9),
    Event(11, 1, "helm", "delete", CONFIG, "deleted"),
    Event(12, 2, "helm", "apply", CONFIG, "refused", 'configmaps "web-config" is forbidden: [quota] exceeded'),
)

STEPS = tuple(
    replace(step, by="Helm", act=f"helm {step.action}")
    for step in (
        StepResult("install", "web", "default", "./v1", "ok", created=(CONFIG, WEB)),
        StepResult("upgrade", "web", "default", "./v2", "ok", deleted=(CONFIG,), missing=(CONFIG,)),
        StepResult("upgrade", "web", "default", "./v2", "failed", "UPGRADE FAILED: [quota] exceeded\nconfigmaps"),
        StepResult("uninstall", "web", "default", "", "ok", deleted=(WEB,), orphans=(CONFIG,)),
    )
)

LAZY = Rehearsal(EngineId("helm", "4.2.3"), "lazy", STEPS, TIMELINE, label="Helm", actors=("helm",))
EAGER = replace(LAZY, schedule="eager")

PLACE = Place("v2/templates/configmap.yaml", 7)

FINDING = Finding(
    rule="release-to-hook-flip",
    code="ST201",
    certainty="will",
    damage="outage",
    engines=(EngineId("helm", "4.2.3"),),
    action="upgrade",
    objects=(CONFIG,),
    message="ConfigMap/default/web-config became a hook, and the upgrade that makes it one leaves it deleted",
    details=(
        "Helm deleted it by the hook's delete policy, made it as a hook, deleted it, because the new manifest no "
        "longer lists it. It reported success.",
        "Deployment/default/web mounts it.",
    ),
    places=(PLACE,),
    evidence=(5, 6, 10, 11),
    confirm="helm get hooks web --namespace default",
    schedules=("lazy", "eager"),
    fingerprint="0f1e2d3c4b5a6978",
)
FIXED = replace(FINDING, fix=Fix("keep the object: helm.sh/resource-policy: keep", safe=True, proven=True))

RESULT = Result(
    played=(Played("", LAZY), Played("", EAGER)),
    findings=(FINDING,),
    prerequisites=(Prerequisite("Secret/default/registry", "Deployment/default/web pulls its image with it"),),
    not_modelled=("Widget.example.com",),
    objects=3,
    files=2,
    excerpts={PLACE: "    helm.sh/hook: pre-install,pre-upgrade"},
)

CLEAN = Result(
    played=(Played("", replace(LAZY, steps=STEPS[:1], timeline=TIMELINE[:5])),), findings=(), objects=2, files=2
)
