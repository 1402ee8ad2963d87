"""An operator is started in a cluster that has none of the definitions of its kinds.

## What happens
A controller asks the API server for the kinds that it is to watch when it starts. Where they are not served, most end
after a while with `if kind is a CRD, it should be installed before calling Start` and are started again and again;
others look once, switch the feature off, and do not notice when the definitions come (`Required GatewayAPI resources
are not found`). Until then nothing acts on anything: certificates, Secrets and routes are not made, and webhooks that
the operator serves do not answer.

It happens where a chart leaves its definitions to somebody else (`crds.enabled: false`, `installCRDs: false`,
`--skip-crds`), and where they are made after the operator: by a hook after the install, or by a release that comes
later. Helm itself does not mind. An operator whose role lets it make definitions is taken to bring its own.

Whether the definitions will be in the cluster cannot be known where nobody in the trial brings them: then it is a
`may`. A trial that has them (`assume: crds: [definitions.yaml]`) decides it.

## Example
```yaml
# values.yaml of a chart that runs cert-manager
crds:
  enabled: false
```

## Instead
Definitions first: in `crds/`, in a chart of their own, or by `kubectl apply --server-side -f` before the install.

## Fix safety
Definitions that come too late do no harm; restart the operator afterwards if it looks only once.
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
from seatrial.phrases.outcome import named

MAKES_DEFINITIONS = {"apiGroups": DEFINITIONS, "resources": "customresourcedefinitions", "verbs": "create"}
ENGINES = ("helm", "flux")
SAYS = '"if kind is a CRD, it should be installed before calling Start"'


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    for event in rehearsal.timeline:
        if event.actor not in ENGINES or event.effect != "created" or not event.after:
            continue
        running = workload_of(event.after)
        written = case.written(event.step, event.object)
        if running is None or written is None or running[0].platform or running[0].name in told:
            continue
        if not _are_there(rehearsal, event, running[0]) and not _makes_its_own(_of_step(case, event.step)):
            told.add(running[0].name)
            yield _finding(rehearsal, case, event, running[0])


def _are_there(rehearsal: Rehearsal, event: Event, operator: OperatorEntry) -> bool:
    """Whether at least one of the operator's definitions was in the cluster when its workload was made."""
    live: set[Ref] = set()
    for earlier in rehearsal.timeline[: event.index]:
        if earlier.effect == "created":
            live.add(earlier.object)
        elif earlier.effect == "deleted":
            live.discard(earlier.object)
    return bool(live & _definitions_of(operator))


def _makes_its_own(resources: tuple[Resource, ...]) -> bool:
    """Whether a role of the release lets somebody make definitions: Crossplane's first container does."""
    rules = (rule for r in resources if r.ref.kind == "ClusterRole" for rule in listed(r.body, "rules"))
    return any(all(_allows(rule, field, wanted) for field, wanted in MAKES_DEFINITIONS.items()) for rule in rules)


def _allows(rule: Body, field: str, wanted: str) -> bool:
    return bool({wanted, "*"} & set(listed(rule, field)))


def _definitions_of(operator: OperatorEntry) -> set[Ref]:
    return {Ref(DEFINITION, "", f"{kind.plural}.{kind.group}", DEFINITIONS) for kind in operator.kinds}


def _finding(rehearsal: Rehearsal, case: Case, event: Event, operator: OperatorEntry) -> Finding:
    workloads = [r for r in _of_step(case, event.step) if (ours := workload_of(r.body)) and ours[0] == operator]
    later = _made_later(rehearsal, event, operator)
    certainty: Certainty = "will" if later else "may"
    return found(
        RULE,
        Moment(rehearsal, case, event.step),
        objects=[resource.ref for resource in workloads],
        damage="nuisance" if later else "failed-deploy",
        certainty=certainty,
        message=f"{named(resource.ref for resource in workloads)} {'starts' if len(workloads) == 1 else 'start'} "
        + (
            f"before {_when(rehearsal, event, later)}"
            if later
            else f"{operator.name} where nobody has defined its kinds"
        ),
        details=(
            f"None of the {len(operator.kinds)} kinds that {operator.name} is known to bring is served then "
            f"({operator.kinds[0].kind}.{operator.kinds[0].group} is one). Most controllers say {SAYS} and end; others "
            "look only once.",
            "" if later else "Nobody in this trial brings them; it goes well where they are in the cluster already.",
            _side_by_side(rehearsal, event, later),
        ),
        places=[resource.place("metadata", "name") for resource in workloads],
        evidence=[event, *later[:1]],
        confirm=f"kubectl logs {in_kubectl(event.object).replace(' ', '/', 1)}; kubectl get crd | grep "
        f"{operator.kinds[0].group}",
    )


def _of_step(case: Case, step: int) -> tuple[Resource, ...]:
    release = case.releases[step]
    return release.resources if release else ()


def _made_later(rehearsal: Rehearsal, event: Event, operator: OperatorEntry) -> list[Event]:
    wanted = _definitions_of(operator)
    return [e for e in rehearsal.timeline[event.index :] if e.effect == "created" and e.object in wanted]


def _when(rehearsal: Rehearsal, event: Event, later: list[Event]) -> str:
    first = later[0]
    step = rehearsal.steps[first.step]
    where = "" if first.step == event.step else f" by the {step.action} of {step.release or step.source}"
    return f"{first.object} is made{where}"


def _side_by_side(rehearsal: Rehearsal, event: Event, later: list[Event]) -> str:
    """Which parts of Flux bring the two, where they are two."""
    ended = rehearsal.steps[event.step]
    own, other = holder(ended, event.object), holder(ended, later[0].object) if later else None
    if own is None or other is None or own == other:
        return ""
    return (
        f"{later[0].object.name} comes with {other}, and {event.object} with {own}: they are applied side by side "
        "unless dependsOn says otherwise. In one Kustomization definitions come first, and are waited for."
    )


RULE = Rule("ST107", "operator-starts-before-its-crds", check)
