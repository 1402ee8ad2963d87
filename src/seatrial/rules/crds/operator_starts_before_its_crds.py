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

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import holder
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import DEFINITION, DEFINITIONS
from seatrial.kinds.operators.table import OperatorEntry, workload_of
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named

CREATES_CRDS = {"apiGroups": DEFINITIONS, "resources": "customresourcedefinitions", "verbs": "create"}
SAYS = '"if kind is a CRD, it should be installed before calling Start"'


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for event in rehearsal.timeline:
        if event.actor not in rehearsal.actors or event.effect != "created" or not event.after:
            continue
        running = workload_of(event.after)
        written = case.written(event.step, event.object)
        if running is None or written is None or running[0].platform or running[0].name in reported:
            continue
        moment = Moment(rehearsal, case, event.step)
        if not _has_crds(rehearsal, event, running[0]) and not _creates_its_own(_of_step(moment)):
            reported.add(running[0].name)
            yield _finding(moment, event, running[0])


def _has_crds(rehearsal: Rehearsal, event: Event, operator: OperatorEntry) -> bool:
    """Whether at least one of the operator's CRDs exists when its workload is created."""
    live: set[Ref] = set()
    for earlier in rehearsal.timeline[: event.index]:
        if earlier.effect == "created":
            live.add(earlier.object)
        elif earlier.effect == "deleted":
            live.discard(earlier.object)
    return bool(live & _crds_of(operator))


def _creates_its_own(resources: tuple[Resource, ...]) -> bool:
    """Whether a ClusterRole of the release allows creating CRDs, as Crossplane's init container does."""
    rules = (rule for r in resources if r.ref.kind == "ClusterRole" for rule in listed(r.body, "rules"))
    return any(all(_allows(rule, field, wanted) for field, wanted in CREATES_CRDS.items()) for rule in rules)


def _allows(rule: Body, field: str, wanted: str) -> bool:
    return bool({wanted, "*"} & set(listed(rule, field)))


def _crds_of(operator: OperatorEntry) -> set[Ref]:
    return {Ref(DEFINITION, "", f"{kind.plural}.{kind.group}", DEFINITIONS) for kind in operator.kinds}


def _finding(moment: Moment, event: Event, operator: OperatorEntry) -> Finding:
    workloads = [r for r in _of_step(moment) if (ours := workload_of(r.body)) and ours[0] == operator]
    later = _created_later(moment.rehearsal, event, operator)
    certainty: Certainty = "will" if later else "may"
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
            f"At that time none of the {len(operator.kinds)} kinds of {operator.name} is served, for example "
            f"{operator.kinds[0].kind}.{operator.kinds[0].group}. Most controllers report {SAYS} and exit; others "
            "check only once.",
            "" if later else "Nothing in this trial installs the CRDs. It works if they are already in the cluster.",
            _side_by_side(moment, event, later),
        ),
        places=[resource.place("metadata", "name") for resource in workloads],
        evidence=[event, *later[:1]],
        confirm=f"kubectl logs {in_kubectl(event.object).replace(' ', '/', 1)}",
    )


def _of_step(moment: Moment) -> tuple[Resource, ...]:
    return moment.release.resources if moment.release else ()


def _created_later(rehearsal: Rehearsal, event: Event, operator: OperatorEntry) -> list[Event]:
    crds = _crds_of(operator)
    return [e for e in rehearsal.timeline[event.index :] if e.effect == "created" and e.object in crds]


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
