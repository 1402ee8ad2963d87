"""A NetworkPolicy blocks a hook's pod from what it must reach, so the hook never completes.

## What happens
A pod that no NetworkPolicy selects may connect to everything. As soon as one selects it, only what some policy allows
gets through, and both ends count: egress of the client and ingress of the server. There are two common mistakes:

- The chart's policies are written for the app's pods, and the hook's pod has other labels.
- The namespace denies everything (set by the cluster's administrators), and the policy that allows the hook's traffic
  is a regular resource, which Helm creates after the pre-install hooks.

Packets are dropped, not refused: the hook's connection hangs until the client gives up, and Helm waits for the hook. On
a cluster that does not enforce NetworkPolicies, such as many local clusters, the same chart installs.

What a hook must reach is read from its commands, arguments and environment: a Service of the release, a host outside of
the cluster in the URL of a command such as curl, or the API server if it runs `kubectl`. seatrial does not know whether
the cluster enforces NetworkPolicies, so the finding is *may*. A rule for an `ipBlock` is assumed to match every peer.
Egress to the cluster DNS, which every name needs too, is not checked.

kubectl and Pulumi have no hooks: with them any Job is checked. A deny policy that is applied moments before the
policies that allow traffic is not reported: it blocks everything only for that time.

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
      labels: {app: shop-migration}                                  # not allowed
    spec:
      containers:
        - command: [sh, -c, "until pg_isready -h shop-db; do sleep 1; done"]
```

## Instead
Give the hook's pod a label that the policy allows, or allow the hook's own label in the policy. If the namespace denies
everything, add a policy for the hook that is a hook itself, of the same event and with a lower weight.

## Fix safety
Do not use labels that a Service of the app selects: it would send requests to the hook too. A policy that is a hook
stays behind unless its delete policy deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.hooks.runs import acted_on, event_of, is_of, pod_of
from seatrial.evidence.hooks.services import asked_by, outside_of, spec_path
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
from seatrial.phrases.hooks import hook_timeout
from seatrial.phrases.objects import in_kubectl

API_PORTS = (443, 6443)
"""Of the Service `kubernetes` and of its endpoints: which one a policy sees depends on the network plugin."""
WITHOUT_HOOKS = {
    "kubectl": "kubectl does not wait for it and reports success.",
    "Pulumi": "Pulumi waits ten minutes for the Job to complete, and does not create what depends on it.",
}
"""Engines without hooks, and what they do with a Job that does not complete."""
KUBECTL_SAYS = 'kubectl then fails with "Unable to connect to the server: dial tcp ...:443: i/o timeout".'


class RequiredServer(Struct, frozen=True):
    """What a hook's pod must reach: pods behind a Service of the release, a host outside, or the API server."""

    ref: Ref | None
    command: str
    retried: bool
    ends: tuple[tuple[Peer | None, tuple[int, ...]], ...]
    """The pods that may answer, and their ports."""
    host: str = ""
    """The host outside of the cluster."""

    @property
    def name(self) -> str:
        return str(self.ref) if self.ref else self.host or "the API server"


class Block(Struct, frozen=True):
    """The direction that is blocked, and by which policies."""

    direction: Direction
    policies: tuple[Body, ...]

    @property
    def first(self) -> Ref:
        return ref_of(self.policies[0])


class BlockedHook(Struct, frozen=True):
    """A hook whose pod cannot reach what it must."""

    hook: Resource
    pod: Event
    server: RequiredServer
    block: Block
    later: Resource | None
    """A policy of the release that would allow it, but does not exist when it runs."""


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
            for server in _required_servers(hook, release, world):
                block = _block(_peer(pod.after, world), server, _policies(world))
                if block and (hook.ref, block.first) not in seen:
                    seen.add((hook.ref, block.first))
                    later = _created_later(release, world, pod.after, server)
                    yield _finding(moment, release, BlockedHook(hook, pod, server, block, later))


def _pod(moment: Moment, job: Resource) -> Event | None:
    """The pod of a hook, or of any Job under an engine without hooks."""
    if moment.speaker not in WITHOUT_HOOKS or job.ref.kind != "Job":
        return pod_of(moment, job)
    pods = (e for e in moment.events() if e.object.kind == "Pod" and e.effect == "created")
    return next((e for e in pods if e.after is not None and is_of(e.object, e.after, job.ref)), None)


def _required_servers(hook: Resource, release: Release, world: World) -> Iterator[RequiredServer]:
    """What the hook must reach and what exists; other rules report what does not exist yet."""
    for asked in asked_by(hook, release):
        templates = [dig(body, "spec", "template") or {} for body in behind(world, asked.service.ref)]
        ends = [
            (_template_peer(template, asked.service.ref.namespace, world), _ports(asked.service.body, template))
            for template in templates
        ]
        if ends and all(ports for _, ports in ends):
            yield RequiredServer(asked.service.ref, asked.command, asked.retried, tuple(ends))
    for need in needed(dig(hook.body, *spec_path(hook)) or {}, hook.ref.namespace):
        if need.certainty == "will":
            yield RequiredServer(None, need.command, False, ((None, API_PORTS),))
    for outside in outside_of(hook):
        yield RequiredServer(None, outside.command, outside.retried, ((None, (outside.port,)),), outside.host)


def _peer(pod: Body, world: World) -> Peer:
    return _template_peer(pod, namespace_of(pod), world)


def _template_peer(template: Body, namespace: str, world: World) -> Peer:
    return Peer(namespace, labels_of(template), labels_of(world.get(Ref("Namespace", "", namespace)) or {}))


def _ports(service: Body, template: Body) -> tuple[int, ...]:
    """The container ports that a Service targets."""
    containers = listed(template, "spec", "containers")
    named = {p.get("name"): p.get("containerPort") for container in containers for p in listed(container, "ports")}
    meant = [port.get("targetPort") or port.get("port") for port in listed(service, "spec", "ports")]
    return tuple(port for port in (named.get(one, one) for one in meant) if isinstance(port, int))


def _policies(world: World) -> list[Body]:
    return [world[ref] for ref in sorted(ref for ref in world if ref.kind == "NetworkPolicy")]


def _block(pod: Peer, server: RequiredServer, policies: list[Body]) -> Block | None:
    """The first block, if the pod can reach none of the pods that may answer."""
    blocks = [_block_between(pod, other, ports, policies) for other, ports in server.ends]
    return blocks[0] if all(blocks) else None


def _block_between(pod: Peer, other: Peer | None, ports: tuple[int, ...], policies: list[Body]) -> Block | None:
    if egress := blocking(policies, "Egress", pod, other, ports):
        return Block("Egress", tuple(egress))
    if other is not None and (ingress := blocking(policies, "Ingress", other, pod, ports)):
        return Block("Ingress", tuple(ingress))
    return None


def _created_later(release: Release, world: World, pod: Body, server: RequiredServer) -> Resource | None:
    """A policy of the release that would allow the pod's traffic, but does not exist when it runs."""
    absent = (r for r in release.resources if r.ref.kind == "NetworkPolicy" and r.ref not in world)
    existing, client = _policies(world), _peer(pod, world)
    return next((policy for policy in absent if _block(client, server, [*existing, placed(policy)]) is None), None)


def _finding(moment: Moment, release: Release, blocked: BlockedHook) -> Finding:
    hook, block, policy = blocked.hook, blocked.block, blocked.block.first
    event = event_of(moment, hook)
    written = release.find(policy)
    template = () if hook.ref.kind == "Pod" else ("spec", "template")
    return found(
        RULE,
        moment,
        objects=[hook.ref, policy],
        damage="failed-deploy",
        certainty="may",
        message=f"{_ends(moment, hook, event)} if the cluster enforces {policy}",
        details=(
            f"{policy} blocks {block.direction.lower()} from its pod to {blocked.server.name}.",
            *_details(moment, blocked, event),
        ),
        places=[
            *([blocked.later.place("metadata", "name")] if blocked.later else ()),
            hook.place(*template, "metadata", "labels"),
            *([written.place("spec", RULES[block.direction][0])] if written else ()),
        ],
        evidence=[blocked.pod],
        confirm=f"kubectl describe {in_kubectl(policy)}  # which pods it selects, and what it allows",
    )


def _details(moment: Moment, blocked: BlockedHook, event: str) -> Iterator[str]:
    hook, server, who = blocked.hook, blocked.server, moment.speaker
    if server.command:
        yield f'It runs "{server.command}".'
    else:
        named = server.ref.name if server.ref else ""
        yield f"It names {named}. Its program is not run here, so how it uses the Service is unknown."
    yield _selection(hook, server, blocked.block)
    yield _comes_later(who, blocked.later)
    yield "Packets are dropped, not refused: the connection hangs until the client gives up."
    yield KUBECTL_SAYS if server.ref is None and not server.host else ""
    if event and hook.ref.kind == "Job" and server.retried:
        yield hook_timeout(hook, event, moment.ended)
    yield WITHOUT_HOOKS.get(who, "")
    yield "On a cluster that does not enforce NetworkPolicies it works, which hides the problem."


def _ends(moment: Moment, job: Resource, event: str) -> str:
    act = moment.act
    if moment.speaker not in WITHOUT_HOOKS:
        return f"{act} hangs at hook {job.ref}"
    return f"{job.ref} of {act} does not complete"


def _selection(hook: Resource, server: RequiredServer, block: Block) -> str:
    """Which pods the policies select, what they allow, and the labels of the hook's pod."""
    names = ", ".join(str(ref_of(policy)) for policy in block.policies)
    select, allow = ("select", "allow") if len(block.policies) > 1 else ("selects", "allows")
    own = labels_of(hook.body if hook.ref.kind == "Pod" else dig(hook.body, "spec", "template") or {})
    labelled = f"labels {_in_words({'matchLabels': own})}" if own else "no labels"
    pod = f"the pod of {hook.ref} ({labelled})"
    peers = " and ".join(dict.fromkeys(_allowed(block)))
    if block.direction == "Egress":
        return f"{names} {select} {pod} and {allow} {f'egress only to {peers}' if peers else 'no egress'}."
    allowed = f"ingress only from {peers}, not from {pod}" if peers else "no ingress"
    return f"{names} {select} the pods behind {server.name} and {allow} {allowed}."


def _allowed(block: Block) -> Iterator[str]:
    """The peers that the rules of the policies allow."""
    field, end = RULES[block.direction]
    for policy in block.policies:
        for rule in listed(policy, "spec", field):
            ports = [str(entry.get("port")) for entry in listed(rule, "ports") if entry.get("port")]
            at = f" on port {' or '.join(ports)}" if ports else ""
            peers = " or ".join(_named(peer) for peer in listed(rule, end)) or "all peers"
            yield f"{peers}{at}"


def _named(peer: Body) -> str:
    if block := peer.get("ipBlock"):
        return str(dig(block, "cidr"))
    namespaces, pods = peer.get("namespaceSelector"), _in_words(peer.get("podSelector") or {})
    labels = _in_words(namespaces or {})
    where = f" in namespaces labelled {labels}" if labels else ""
    same = " in the same namespace" if namespaces is None and not pods else ""
    return f"pods labelled {pods}{where}" if pods else f"all pods{where}{same}"


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
        return f"{policy.ref} would allow it, but does not exist yet when the pod starts."
    if hooks.is_hook(policy.body):
        return f"{policy.ref} would allow it, but is a hook that Helm runs later or not in this step."
    return f"{policy.ref} would allow it, but is a regular resource, which Helm creates after these hooks."


RULE = Rule("ST217", "networkpolicy-blocks-hook", check)
