"""An operator starts in a cluster that has none of its CRDs.

## What happens
When a controller starts, it asks the API server for the kinds it watches. If they are not served, most controllers exit
after a while with `if kind is a CRD, it should be installed before calling Start` and crash-loop. Others look once,
disable the feature, and do not notice when the CRDs are created (`Required GatewayAPI resources are not found`). Until
then nothing is reconciled: certificates, Secrets and routes are not created, and webhooks that the operator serves do
not answer.

It happens if a chart does not install its CRDs (`crds.enabled: false`, `installCRDs: false`, `--skip-crds`), and if
they are created after the operator: by a post-install hook or by a later release. Helm reports no error. An operator
whose ClusterRole allows it to create CRDs is assumed to install its own.

Operators are known by their image, described in the trial file, or recognized by the rights of their ServiceAccount to
kinds whose CRDs the trial creates later; the last is a `may`.

If nothing in the trial brings the CRDs, it cannot be known whether they will be in the cluster: then the finding is a
`may`. A trial that lists them (`assume: crds: [definitions.yaml]`) decides it.

## Example
```yaml
# values.yaml of a chart that runs cert-manager
crds:
  enabled: false
```

## Instead
Install the CRDs first: in `crds/`, in a separate chart, or with `kubectl apply --server-side -f` before the install.

## Fix safety
CRDs that come late do no harm; restart the operator afterwards if it looks only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.described import deployments
from seatrial.evidence.flux.reconciliations import holder
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import DEFINITION, DEFINITIONS
from seatrial.kinds.operators.starting import creator_in
from seatrial.kinds.operators.table import plural_for, workload_of
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Resource, once
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named

CREATES_CRDS = {"apiGroups": DEFINITIONS, "resources": "customresourcedefinitions", "verbs": "create"}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
BY_RIGHTS = "Its ServiceAccount may watch it. A controller that watches an unserved kind exits, or never notices it."
SAYS = '"if kind is a CRD, it should be installed before calling Start"'


class Starting(Struct, frozen=True):
    """An operator that a release runs, and the CRDs of its kinds."""

    name: str
    kinds: tuple[tuple[str, str], ...]
    """(kind, group)"""
    crds: frozenset[Ref]
    exits: bool = True
    """Whether it is known that it watches these kinds when it starts."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for event in rehearsal.timeline:
        if event.actor not in rehearsal.actors or event.effect != "created" or not event.after:
            continue
        written = case.written(event.step, event.object)
        moment = Moment(rehearsal, case, event.step)
        starting = _starting(moment, event) if written is not None else None
        if starting is None or starting.name in reported:
            continue
        if not _has_crds(rehearsal, event, starting) and not _creates_its_own(_of_step(moment)):
            reported.add(starting.name)
            yield _finding(moment, event, starting)


def _starting(moment: Moment, event: Event) -> Starting | None:
    """The operator that a workload runs: a known one, one that the trial describes, or one by its rights."""
    described = deployments(moment.case).get(event.object)
    if described is not None:
        kinds = tuple((kind, group) for kind, _, group in (name.partition(".") for name in described.all_kinds))
        return Starting(described.name, kinds, _crds(kinds), described.exits)
    running = workload_of(event.after or {})
    if running is not None:
        kinds = tuple((kind.kind, kind.group) for kind in running[0].kinds)
        own = running[0].platform or creator_in(event.after or {}) is not None
        return None if own else Starting(running[0].name, kinds, _crds(kinds))
    if event.object.kind not in WORKLOADS:
        return None
    return _by_rights(moment, event)


def _by_rights(moment: Moment, event: Event) -> Starting | None:
    """An unknown operator: its ServiceAccount may watch kinds whose CRDs the trial creates later."""
    late = {
        (str(dig(e.after, "spec", "names", "kind")), str(dig(e.after, "spec", "group"))): e.object
        for e in once(moment.rehearsal, "CRDs that engines create", lambda: _created_crds(moment.rehearsal))
        if e.index >= event.index
    }
    rules = list(_rules_of(event, _of_step(moment))) if late else []
    kinds = tuple(
        (kind, group)
        for (kind, group), crd in sorted(late.items())
        if any(_may_watch(rule, group, crd.name.partition(".")[0]) for rule in rules)
    )
    return Starting(event.object.name, kinds, _crds(kinds), exits=False) if kinds else None


def _created_crds(rehearsal: Rehearsal) -> list[Event]:
    created = (e for e in rehearsal.timeline if e.effect == "created" and e.object.kind == DEFINITION)
    return [e for e in created if e.actor in rehearsal.actors]


def _rules_of(event: Event, resources: Iterable[Resource]) -> Iterator[Body]:
    """The rules of the ClusterRoles that are bound to the ServiceAccount of a workload."""
    account = str(dig(event.after or {}, "spec", "template", "spec", "serviceAccountName") or "default")
    found = {resource.ref: resource.body for resource in resources}
    for ref, binding in found.items():
        subjects = (s for s in listed(binding, "subjects") if ref.kind in ("ClusterRoleBinding", "RoleBinding"))
        if any((s.get("kind"), s.get("name")) == ("ServiceAccount", account) for s in subjects):
            role = Ref(str(dig(binding, "roleRef", "kind")), "", str(dig(binding, "roleRef", "name")), ref.group)
            namespaced = Ref(role.kind, ref.namespace, role.name, ref.group)
            yield from listed(found.get(role) or found.get(namespaced) or {}, "rules")


def _may_watch(rule: Body, group: str, plural: str) -> bool:
    """Whether a rule names the group: one that allows everything says nothing of what a program watches."""
    return group in listed(rule, "apiGroups") and _allows(rule, "resources", plural) and _allows(rule, "verbs", "watch")


def _has_crds(rehearsal: Rehearsal, event: Event, operator: Starting) -> bool:
    """Whether at least one of the operator's CRDs exists when its workload is created."""
    live: set[Ref] = set()
    for earlier in rehearsal.timeline[: event.index]:
        if earlier.effect == "created":
            live.add(earlier.object)
        elif earlier.effect == "deleted":
            live.discard(earlier.object)
    return bool(live & operator.crds)


def _creates_its_own(resources: tuple[Resource, ...]) -> bool:
    """Whether a ClusterRole of the release allows creating CRDs, as Crossplane's init container does."""
    rules = (rule for r in resources if r.ref.kind == "ClusterRole" for rule in listed(r.body, "rules"))
    return any(all(_allows(rule, field, wanted) for field, wanted in CREATES_CRDS.items()) for rule in rules)


def _allows(rule: Body, field: str, wanted: str) -> bool:
    return bool({wanted, "*"} & set(listed(rule, field)))


def _crds(kinds: Iterable[tuple[str, str]]) -> frozenset[Ref]:
    return frozenset(Ref(DEFINITION, "", f"{plural_for(group, kind)}.{group}", DEFINITIONS) for kind, group in kinds)


def _finding(moment: Moment, event: Event, operator: Starting) -> Finding:
    workloads = [r for r in _of_step(moment) if _runs(r, event, operator)]
    later = _created_later(moment.rehearsal, event, operator)
    certainty: Certainty = "will" if later and operator.exits else "may"
    starts = f"{first_named(r.ref for r in workloads)} {'starts' if len(workloads) == 1 else 'start'}"
    return found(
        RULE,
        moment,
        objects=[resource.ref for resource in workloads],
        damage="nuisance" if later else "failed-deploy",
        certainty=certainty,
        message=f"{starts} before {later[0].object} is created"
        if later
        else f"{starts} {operator.name}, but nothing installs its CRDs",
        details=(
            _when(moment, later[0]) if later else "",
            f"{_unserved(operator)} "
            + (f"Most controllers report {SAYS} and exit; others check only once." if operator.exits else BY_RIGHTS),
            "" if later else "Nothing in this trial installs the CRDs. It works if they are already in the cluster.",
            _side_by_side(moment, event, later),
        ),
        places=[resource.place("metadata", "name") for resource in workloads],
        evidence=[event, *later[:1]],
        confirm=f"kubectl logs {in_kubectl(event.object).replace(' ', '/', 1)}",
    )


def _unserved(operator: Starting) -> str:
    first = ".".join(operator.kinds[0])
    if len(operator.kinds) == 1:
        return f"At that time {first} is not served."
    return f"At that time none of the {len(operator.kinds)} kinds of {operator.name} is served, for example {first}."


def _runs(resource: Resource, event: Event, operator: Starting) -> bool:
    owner = workload_of(resource.body)
    return resource.ref == event.object or (owner is not None and owner[0].name == operator.name)


def _of_step(moment: Moment) -> tuple[Resource, ...]:
    return moment.release.resources if moment.release else ()


def _created_later(rehearsal: Rehearsal, event: Event, operator: Starting) -> list[Event]:
    return [e for e in rehearsal.timeline[event.index :] if e.effect == "created" and e.object in operator.crds]


def _when(moment: Moment, created: Event) -> str:
    step = moment.at(created.step).ended
    same = created.step == moment.index
    return "" if same else f"The {step.action} of {step.release or step.source} creates the CRD later."


def _side_by_side(moment: Moment, event: Event, later: list[Event]) -> str:
    """The two Flux objects that contain the CRD and the operator, if they differ."""
    own, other = holder(moment.ended, event.object), holder(moment.ended, later[0].object) if later else None
    if own is None or other is None or own == other:
        return ""
    return (
        f"{later[0].object.name} is part of {other}, and {event.object} of {own}: without dependsOn Flux reconciles "
        "both concurrently. Within one Kustomization it applies CRDs first and waits for them."
    )


RULE = Rule("ST107", "operator-starts-before-its-crds", check)
