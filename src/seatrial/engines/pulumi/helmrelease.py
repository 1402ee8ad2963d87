"""`helm.v3.Release`: Helm 3 inside one step of Pulumi. Hooks run, kinds have their order, revisions are recorded.

Upstream: `provider/pkg/provider/helm_release.go` of pulumi-kubernetes 4.33, which calls Helm 3.20.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.engines.concurrent import Steps
from seatrial.engines.helm.v3 import ACTS, Helm3Act
from seatrial.engines.helm.v3_objects import Failed, counted
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.steps import lacks, serves
from seatrial.engines.script import NO_ERROR, Answer, Command, Error, Line, Part, carry
from seatrial.helm import records as helmrecords
from seatrial.model.program import Generated, Registration
from seatrial.model.refusal import Failure, Fault
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, labels_of, name_of, ref_of
from seatrial.model.trial import Step

FLAGS = {
    "install": {
        "disableWebhooks": "--no-hooks",
        "skipCrds": "--skip-crds",
        "createNamespace": "--create-namespace",
        "atomic": "--atomic",
        "replace": "--replace",
    },
    "upgrade": {
        "disableCRDHooks": "--no-hooks",
        "atomic": "--atomic",
        "forceUpdate": "--force",
        "cleanupOnFail": "--cleanup-on-fail",
    },
    "uninstall": {},
}
"""By act, what the inputs of a Release mean to Helm. Which of them turns hooks off differs, in the provider as well."""
CHART, VALUES = ("chart", "version", "repositoryOpts"), ("values", "valueYamlFiles")
INVESTIGATE = "failed to initialize completely. Use Helm CLI to investigate: "
UNAVAILABLE = "failed to become available within allocated timeout. Error: "


def install(one: Registration, checkpoint: Checkpoint) -> Steps[Error]:
    """Definitions of crds/, then hooks before, objects, waiting, hooks after."""
    if (yield from lacks(one.after)):
        return Error(one.unrendered, Failure(faults=(Fault("source-not-rendered", urn=one.urn),)))
    one = checkpoint.begin(one)
    ended = yield from _deployed("install", one, checkpoint, "was created, but ")
    if checkpoint.get(one.urn) is None:
        checkpoint.refused(one.urn)
    else:
        checkpoint.creating.pop(one.urn, None)
    return ended


def upgrade(one: Registration, checkpoint: Checkpoint) -> Steps[Error]:
    """As an install, but crds/ is not looked at, and what is no longer in the chart is deleted."""
    return (yield from _deployed("upgrade", one, checkpoint, ""))


def uninstall(one: Registration, checkpoint: Checkpoint) -> Steps[Error]:
    try:
        yield from ACTS["uninstall"](_act("uninstall", one, checkpoint))
    except Failed as why:
        return Error(str(why), why.failure)
    return NO_ERROR


def _deployed(action: str, one: Registration, checkpoint: Checkpoint, how: str) -> Steps[Error]:
    act = _act(action, (yield from _as_rendered(action, one)), checkpoint)
    recorded = False

    def on_line(line: Line, answer: Answer) -> Part[None]:
        """Once Helm has recorded a revision, the provider returns the release even if it fails later."""
        nonlocal recorded
        recorded |= isinstance(line, Command) and (line.verb, line.kind) == ("create", "Secret") and not answer.message
        yield from ()

    try:
        yield from carry(ACTS[action](act), on_line)
    except Failed as why:
        if not recorded:
            return Error(str(why), why.failure)
        checkpoint.put(one, unready=True)
        if action == "install" and act.has("--atomic"):
            checkpoint.drop(one)
            return Error(str(why), why.failure)
        named = f"{act.namespace}/{act.name}"
        words = f'Helm release "{named}" {how}{INVESTIGATE}{UNAVAILABLE}Helm Release {named}: {why}'
        return Error(counted([words]), why.failure)
    if recorded:
        checkpoint.put(one, unready=True)
    checkpoint.ready(one.urn)
    return NO_ERROR


def _as_rendered(action: str, one: Registration) -> Steps[Registration]:
    """The Release without the objects that its chart omits, because their CRDs do not exist when Helm renders it."""
    own = {name_of(body) for body in one.definitions} if action == "install" else set()
    omitted = set()
    for guarded in one.guarded:
        if not (yield from serves(ref for ref in guarded.crds if ref.name not in own)):
            omitted.add(guarded.object)
    read_back = {of.object: of for of in one.generated if of.looked_up and action == "upgrade"}
    left: list[Body] = []
    for body in one.contents:
        ref = ref_of(body)
        if ref not in omitted:
            left.append((yield from _read_back(body, read_back[ref])) if ref in read_back else body)
    return replace(one, contents=tuple(left))


def _read_back(body: Body, generated: Generated) -> Steps[Body]:
    """A Secret with the values that `lookup` finds in the cluster."""
    found = yield Command("get", "v1", "Secret", generated.object.namespace, generated.object.name)
    old = (found.body.get("data") or {}) if found.code == 200 else {}
    kept = {key: old[key] for key in generated.keys if key in old}
    plain = {key: value for key, value in (body.get("stringData") or {}).items() if key not in kept}
    return {**body, "data": {**(body.get("data") or {}), **kept}, **({"stringData": plain} if plain else {})}


def is_recorded(one: Registration) -> Part[bool]:
    """Whether Helm knows the release: `resourceReleaseLookup` of the provider."""
    name, namespace = name_in_cluster(one)
    answer = yield Command("list", "v1", "Secret", namespace)
    records = (body for body in answer.body.get("items") or () if body.get("type") == helmrecords.TYPE)
    return any(labels_of(body).get("name") == name for body in records)


def name_in_cluster(one: Registration) -> tuple[str, str]:
    """The name and the namespace of a release."""
    return str(one.inputs.get("name") or one.name), str(one.inputs.get("namespace") or "default")


def _act(action: str, one: Registration, checkpoint: Checkpoint) -> Helm3Act:
    name, namespace = name_in_cluster(one)
    chart = " ".join(str(one.inputs.get(key) or "") for key in CHART)
    values = {key: value for key in VALUES if (value := one.inputs.get(key))}
    resources, crds = _resources(one.contents), _resources(one.definitions)
    release = Release(name, namespace, chart, resources, crds, values=values)
    step = Step(action, flags=tuple(_flags(action, one)))
    return Helm3Act(step, name, namespace, checkpoint.releases, release, keeps_values=not one.inputs.get("resetValues"))


def _flags(action: str, one: Registration) -> Iterable[str]:
    """The options that the provider passes to Helm. It waits unless `skipAwait` is set."""
    yield from (flag for key, flag in FLAGS[action].items() if one.inputs.get(key))
    if not one.inputs.get("skipAwait") or (action == "uninstall" and one.inputs.get("atomic")):
        yield "--wait"
        if one.inputs.get("waitForJobs"):
            yield "--wait-for-jobs"


def _resources(bodies: Iterable[Body]) -> tuple[Resource, ...]:
    return tuple(_resource(body) for body in bodies)


def _resource(body: Body) -> Resource:
    ref = ref_of(body)
    return Resource(ref, body, Origin(name_of(body)))
