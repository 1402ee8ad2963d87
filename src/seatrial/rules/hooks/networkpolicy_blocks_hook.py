"""A hook must reach something that a NetworkPolicy does not let it reach, and nobody answers it.

## What happens
A pod that no NetworkPolicy selects may speak to everyone. As soon as one selects it, only what some policy allows goes
through, and both ends count: the egress of the one who asks, the ingress of the one who is asked. Charts write policies
for the pods of the app and forget the pod of the hook, which has other labels. Or the namespace denies everything
(those who run the cluster put that there) and the policy that lets the hook out is a plain object of the release: Helm
makes it only after the pre-install hooks.

Packets are dropped and not refused: the hook hangs in a connection until its client gives up, and Helm waits for the
hook. Where the network does not heed policies, as on many a cluster on a laptop, the same chart installs.

What a hook must reach is read from its commands, arguments and environment: a Service of the release, or the API server
where it runs `kubectl`. No program is run here, and whether the network heeds policies is not written anywhere, so this
only *may* be. A rule for a block of addresses is taken to let pods through. Whether the name of a Service can be
resolved, which needs a way out to the DNS of the cluster as well, is not judged.

kubectl and Pulumi know no hooks: with them it is the same for any Job. That a policy which denies is applied moments
before those that allow is not told: whatever runs is cut off for as long.

## Example
```yaml
kind: NetworkPolicy
spec:
  podSelector: {matchLabels: {app: shop-db}}
  ingress:
    - from: [{podSelector: {matchLabels: {app: shop}}}]
---
kind: Job
metadata:
  annotations: {helm.sh/hook: post-install}
spec:
  template:
    metadata:
      labels: {app: shop-migration}                                  # not let in
    spec:
      containers:
        - command: [sh, -c, "until pg_isready -h shop-db; do sleep 1; done"]
```

## Instead
Give the pod of the hook a label that the policy lets through, or name its own label in the policy. Where the namespace
denies everything: a policy for the hook that is a hook itself, of the same event and a lower weight.

## Fix safety
Not the labels that a Service of the app selects: its traffic would go to the hook as well. A policy that is a hook
stays behind unless its delete policy says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.hooks.runs import acted_on, event_of, is_of, pod_of
from seatrial.evidence.hooks.services import asked_by, spec_path
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import World, behind, state
from seatrial.graph import placed
from seatrial.helm import hooks
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.network.policies import RULES, Direction, Peer, blocking
from seatrial.kinds.scripts.commands import needed
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, ref_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import hook_in_vain
from seatrial.phrases.objects import in_kubectl

API_PORTS = (443, 6443)
"""Of the Service `kubernetes`, and of what stands behind it: which one a policy sees depends on the network."""
WITHOUT_HOOKS = {
    "kubectl": "kubectl does not wait for it and reports success.",
    "Pulumi": "Pulumi waits for a Job to complete, for ten minutes, and all that depends on it is not made.",
}
"""Engines to which a hook is an object like any other, and what they make of a Job that does not end."""
KUBECTL_SAYS = 'kubectl then says: "Unable to connect to the server: dial tcp ...:443: i/o timeout".'


class Target(Struct, frozen=True):
    """What the pod of a hook must reach: pods behind a Service of the release, or the API server."""

    ref: Ref | None
    command: str
    retried: bool
    ends: tuple[tuple[Peer | None, tuple[int, ...]], ...]
    """Whoever may answer, and at which ports."""

    @property
    def name(self) -> str:
        return str(self.ref) if self.ref else "the API server"


class Shut(Struct, frozen=True):
    """The way that is shut, and by which policies."""

    direction: Direction
    policies: tuple[Body, ...]

    @property
    def first(self) -> Ref:
        return ref_of(self.policies[0])


class CutOff(Struct, frozen=True):
    """The pod of a hook that does not reach what it must."""

    hook: Resource
    pod: Event
    target: Target
    shut: Shut
    later: Resource | None
    """A policy of the release that would let it through, and is not there when it runs."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if not any(event.object.kind == "NetworkPolicy" for event in rehearsal.timeline):
        return
    seen: set[tuple[Ref, Ref]] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            pod = _pod(moment, hook)
            if pod is None or pod.after is None or release is None:
                continue
            world = state(rehearsal, pod)
            for target in _targets(hook, release, world):
                shut = _shut(_peer(pod.after, world), target, _policies(world))
                if shut and (hook.ref, shut.first) not in seen:
                    seen.add((hook.ref, shut.first))
                    later = _absent_yet(release, world, pod.after, target)
                    yield _finding(moment, release, CutOff(hook, pod, target, shut, later))


def _pod(moment: Moment, job: Resource) -> Event | None:
    """The pod of a hook, or under engines that know no hooks that of a Job."""
    if moment.speaker not in WITHOUT_HOOKS or job.ref.kind != "Job":
        return pod_of(moment, job)
    pods = (e for e in moment.events() if e.object.kind == "Pod" and e.effect == "created")
    return next((e for e in pods if e.after is not None and is_of(e.object, e.after, job.ref)), None)


def _targets(hook: Resource, release: Release, world: World) -> Iterator[Target]:
    """What is not there yet is told by others."""
    for asked in asked_by(hook, release):
        templates = [dig(body, "spec", "template") or {} for body in behind(world, asked.service.ref)]
        ends = [
            (_template_peer(template, asked.service.ref.namespace, world), _ports(asked.service.body, template))
            for template in templates
        ]
        if ends and all(ports for _, ports in ends):
            yield Target(asked.service.ref, asked.command, asked.retried, tuple(ends))
    for need in needed(dig(hook.body, *spec_path(hook)) or {}, hook.ref.namespace):
        if need.certainty == "will":
            yield Target(None, need.command, False, ((None, API_PORTS),))


def _peer(pod: Body, world: World) -> Peer:
    return _template_peer(pod, namespace_of(pod), world)


def _template_peer(template: Body, namespace: str, world: World) -> Peer:
    return Peer(namespace, labels_of(template), labels_of(world.get(Ref("Namespace", "", namespace)) or {}))


def _ports(service: Body, template: Body) -> tuple[int, ...]:
    """The ports of pods that a Service leads to."""
    containers = listed(template, "spec", "containers")
    named = {p.get("name"): p.get("containerPort") for container in containers for p in listed(container, "ports")}
    meant = [port.get("targetPort") or port.get("port") for port in listed(service, "spec", "ports")]
    return tuple(port for port in (named.get(one, one) for one in meant) if isinstance(port, int))


def _policies(world: World) -> list[Body]:
    return [world[ref] for ref in sorted(ref for ref in world if ref.kind == "NetworkPolicy")]


def _shut(pod: Peer, target: Target, policies: list[Body]) -> Shut | None:
    """Shut only where nobody who could answer is reached; whichever end is named first is the first to change."""
    ways = [_way(pod, other, ports, policies) for other, ports in target.ends]
    return ways[0] if all(ways) else None


def _way(pod: Peer, other: Peer | None, ports: tuple[int, ...], policies: list[Body]) -> Shut | None:
    if out := blocking(policies, "Egress", pod, other, ports):
        return Shut("Egress", tuple(out))
    if other is not None and (into := blocking(policies, "Ingress", other, pod, ports)):
        return Shut("Ingress", tuple(into))
    return None


def _absent_yet(release: Release, world: World, pod: Body, target: Target) -> Resource | None:
    """A policy of the release that would let the pod through, and is not there when it runs."""
    absent = (r for r in release.resources if r.ref.kind == "NetworkPolicy" and r.ref not in world)
    there, asks = _policies(world), _peer(pod, world)
    return next((policy for policy in absent if _shut(asks, target, [*there, placed(policy)]) is None), None)


def _finding(moment: Moment, release: Release, cut: CutOff) -> Finding:
    hook, shut, policy = cut.hook, cut.shut, cut.shut.first
    event = event_of(moment, hook)
    written = release.find(policy)
    way = "out" if shut.direction == "Egress" else "in"
    template = () if hook.ref.kind == "Pod" else ("spec", "template")
    return found(
        RULE,
        moment,
        objects=[hook.ref, policy],
        damage="failed-deploy",
        certainty="may",
        message=f"{_ends(moment, hook, event)} if the network heeds {policy}, which does not let it {way} to "
        f"reach {cut.target.name}",
        details=tuple(_details(moment, cut, event)),
        places=[
            *([cut.later.place("metadata", "name")] if cut.later else ()),
            hook.place(*template, "metadata", "labels"),
            *([written.place("spec", RULES[shut.direction][0])] if written else ()),
        ],
        evidence=[cut.pod],
        confirm=f"kubectl describe {in_kubectl(policy)}  # whom it selects, and whom it lets {way}",
    )


def _details(moment: Moment, cut: CutOff, event: str) -> Iterator[str]:
    hook, target, who = cut.hook, cut.target, moment.speaker
    if target.command:
        yield f'It runs "{target.command}".'
    else:
        yield f"It names {target.ref.name if target.ref else ''}. What it does with it is not run here."
    yield _selection(hook, target, cut.shut)
    yield _comes_later(who, cut.later)
    yield "Packets are dropped and not refused: its connection hangs until its client gives up."
    yield KUBECTL_SAYS if target.ref is None else ""
    if event and hook.ref.kind == "Job" and target.retried:
        yield hook_in_vain(hook, event, moment.ended)
    yield WITHOUT_HOOKS.get(who, "")
    yield "Where the network does not heed policies it works, and that hides it."


def _ends(moment: Moment, job: Resource, event: str) -> str:
    act = moment.act
    if moment.speaker not in WITHOUT_HOOKS:
        return f"{act} does not get past the {event} hook {job.ref}"
    return f"{job.ref} of {act} does not get done"


def _selection(hook: Resource, target: Target, shut: Shut) -> str:
    """Whom the policies select, whom they let through, and how the pod of the hook is labelled."""
    names = ", ".join(str(ref_of(policy)) for policy in shut.policies)
    several = len(shut.policies) > 1
    own = labels_of(hook.body if hook.ref.kind == "Pod" else dig(hook.body, "spec", "template") or {})
    labelled = f"labelled {_in_words({'matchLabels': own})}" if own else "which has no label of its own"
    pod = f"the pod of {hook.ref}, {labelled},"
    lets = " and ".join(dict.fromkeys(_let_through(shut))) or "nobody"
    selected = pod if shut.direction == "Egress" else f"the pods behind {target.name}"
    end = f"it out to {lets}." if shut.direction == "Egress" else f"in {lets}: not {pod.rstrip(',')}."
    return f"{names} {'select' if several else 'selects'} {selected} and {'let' if several else 'lets'} {end}"


def _let_through(shut: Shut) -> Iterator[str]:
    """Whom the rules of the policies name."""
    field, end = RULES[shut.direction]
    for policy in shut.policies:
        for rule in listed(policy, "spec", field):
            ports = [str(entry.get("port")) for entry in listed(rule, "ports") if entry.get("port")]
            at = f" at port {' or '.join(ports)}" if ports else ""
            peers = " or ".join(_named(peer) for peer in listed(rule, end)) or "everyone"
            yield f"{peers}{at}"


def _named(peer: Body) -> str:
    if block := peer.get("ipBlock"):
        return str(dig(block, "cidr"))
    housing, pods = peer.get("namespaceSelector"), _in_words(peer.get("podSelector") or {})
    where = "" if housing is None else f" of namespaces labelled {words}" if (words := _in_words(housing)) else ""
    whose = " of the same namespace" if housing is None and not pods else ""
    return f"pods labelled {pods}{where}" if pods else f"all pods{where}{whose}"


def _in_words(selector: Body) -> str:
    equal = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    terms = [
        " ".join(filter(None, (str(t.get("key")), str(t.get("operator")), ", ".join(map(str, listed(t, "values"))))))
        for t in selector.get("matchExpressions") or ()
    ]
    return ", ".join((*equal, *terms))


def _comes_later(who: str, policy: Resource | None) -> str:
    if policy is None:
        return ""
    if who in WITHOUT_HOOKS:
        return f"{policy.ref} would let it through, and is not there yet when its pod starts."
    if hooks.is_hook(policy.body):
        return f"{policy.ref} would let it through, and is a hook that Helm runs later, or not now."
    return f"{policy.ref} would let it through, and is a plain object: Helm makes it after these hooks."


RULE = Rule("ST217", "networkpolicy-blocks-hook", check)
