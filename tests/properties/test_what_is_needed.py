"""No pod starts and no workload is ready before its needs are met, for every release and schedule."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial import kinds
from seatrial.engines.act import Apply, Manifest
from seatrial.engines.engine import PlannedStep
from seatrial.kinds import Need, Stage
from seatrial.model.engine import EngineId
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Rehearsal, Schedule
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse

NAMES = ("a", "b")
KEYS = ("key", "other")
BEFORE_START: tuple[Stage, ...] = ("admit", "schedule", "start")
SCHEDULES: tuple[Schedule, ...] = ("eager", "lazy", "seeded")
STARTED = ("Running", "Succeeded")
names = st.sampled_from(NAMES)


def plain(kind: str, api_version: str = "v1", **more: object) -> st.SearchStrategy[Body]:
    return names.map(lambda name: {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more})


def with_data(kind: str) -> st.SearchStrategy[Body]:
    data = st.lists(st.sampled_from(KEYS), unique=True).map(lambda keys: dict.fromkeys(keys, "eA=="))
    return st.tuples(plain(kind), data).map(lambda pair: {**pair[0], "data": pair[1]})


def claims() -> st.SearchStrategy[Body]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    named = names.map(lambda name: {**asked, "storageClassName": name})
    return st.tuples(plain("PersistentVolumeClaim"), named).map(lambda pair: {**pair[0], "spec": pair[1]})


def storage_classes() -> st.SearchStrategy[Body]:
    modes = st.sampled_from(("Immediate", "WaitForFirstConsumer"))
    plain_class = plain("StorageClass", "storage.k8s.io/v1", provisioner="example.com/disks")
    return st.tuples(plain_class, modes).map(lambda pair: {**pair[0], "volumeBindingMode": pair[1]})


@st.composite
def environment(draw: st.DrawFn) -> Body:
    source = {"name": draw(names), "key": draw(st.sampled_from(KEYS)), "optional": draw(st.booleans())}
    return {"name": "VALUE", "valueFrom": {draw(st.sampled_from(("configMapKeyRef", "secretKeyRef"))): source}}


def volumes() -> st.SearchStrategy[Body]:
    shapes = (
        lambda name: {"configMap": {"name": name}},
        lambda name: {"secret": {"secretName": name}},
        lambda name: {"persistentVolumeClaim": {"claimName": name}},
        lambda name: {"projected": {"sources": [{"secret": {"name": name}}, {"configMap": {"name": name}}]}},
    )
    return st.tuples(st.sampled_from(shapes), names).map(lambda pair: {"name": "volume", **pair[0](pair[1])})


@st.composite
def workloads(draw: st.DrawFn) -> Body:
    container: Body = {"name": "app", "image": "app:1", "env": draw(st.lists(environment(), max_size=1))}
    pod: Body = {"containers": [container], "volumes": draw(st.lists(volumes(), max_size=1))}
    if draw(st.booleans()):
        pod["serviceAccountName"] = draw(names)
    if draw(st.booleans()):
        pod["priorityClassName"] = draw(names)
    kind = draw(st.sampled_from(("Deployment", "StatefulSet", "DaemonSet", "Job")))
    template: Body = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    spec: Body = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    if kind == "Job":
        spec = {"template": {**template, "spec": {**pod, "restartPolicy": "Never"}}}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": draw(names)}, "spec": spec}


def releases() -> st.SearchStrategy[list[Body]]:
    one = st.one_of(
        with_data("ConfigMap"),
        with_data("Secret"),
        plain("ServiceAccount"),
        plain("PriorityClass", "scheduling.k8s.io/v1", value=5),
        claims(),
        storage_classes(),
        workloads(),
        workloads(),
    )
    key = lambda body: (body["kind"], body["metadata"]["name"])  # noqa: E731
    return st.lists(one, min_size=2, max_size=8, unique_by=key)


def played(objects: list[Body], schedule: Schedule, seed: int) -> Rehearsal:
    """Apply, then create what was missing, so that most objects start in the end."""
    rest: list[Body] = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": dict.fromkeys(KEYS, "eA==")}
        for kind in ("ConfigMap", "Secret")
        for name in NAMES
    ]
    rest += [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}} for name in NAMES]
    steps = tuple(
        PlannedStep(Step("apply"), "kubectl", "", "default", Apply(tuple(map(Manifest, bodies))))
        for bodies in (objects, rest)
    )
    return rehearse(Plan(EngineId("kubectl", "1.34"), steps, Case("", (None, None))), schedule, seed=seed)


def is_met(need: Need, there: dict[Ref, Body]) -> bool:
    body = there.get(need.object)
    if body is None:
        return need.optional
    data = {**(body.get("data") or {}), **(body.get("binaryData") or {})}
    return need.optional or not need.key or need.key in data


def needs(body: Body) -> Iterator[Need]:
    kind = kinds.known()["", "Pod"]
    return (need for need in kind.needs(body) if need.stage in BEFORE_START and not need.guess)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(releases(), st.sampled_from(SCHEDULES), st.integers(0, 20))
def test_no_pod_starts_before_its_needs_are_met(objects: list[Body], schedule: Schedule, seed: int) -> None:
    there: dict[Ref, Body] = {}
    for event in played(objects, schedule, seed).timeline:
        if event.object.kind == "Pod" and event.after is not None and dig(event.after, "status", "phase") in STARTED:
            started = dig(event.before or {}, "status", "phase") not in STARTED
            assert not started or [need for need in needs(event.after) if not is_met(need, there)] == []
        if event.effect in ("created", "changed", "unchanged") and event.after is not None:
            there[event.object] = event.after
        elif event.effect == "deleted":
            there.pop(event.object, None)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(releases(), st.sampled_from(SCHEDULES), st.integers(0, 20))
def test_no_workload_is_ready_before_one_of_its_pods(objects: list[Body], schedule: Schedule, seed: int) -> None:
    """Except a DaemonSet without nodes and a Job without pods: each of these has at least one pod."""
    ran: set[str] = set()
    for event in played(objects, schedule, seed).timeline:
        body = event.after
        if body is None:
            continue
        if event.object.kind == "Pod" and dig(body, "status", "phase") in STARTED:
            ran.update(owner["uid"] for owner in body["metadata"].get("ownerReferences") or ())
        if event.object.kind == "ReplicaSet" and body["metadata"]["uid"] in ran:
            ran.update(owner["uid"] for owner in body["metadata"].get("ownerReferences") or ())
        kind = kinds.known().get((event.object.group, event.object.kind))
        if event.object.kind in ("Deployment", "StatefulSet", "DaemonSet", "Job") and kind and kind.ready:
            assert not kind.ready(body) or body["metadata"]["uid"] in ran
