"""An object is none that Kubernetes takes: a name, a label or a field breaks the rules of its kind.

## What happens
Templates put names and labels together out of values: of a release, of a tenant, of a branch. What comes out may be too
long, have capitals or end with a dash. `helm template`, `helm lint` and schemas let it pass, since to them a name is a
text; the API server refuses it. Helm has made what comes before it by then and leaves that behind.

What people fall over: names of Services and namespaces have at most 63 characters, and so have the *values* of labels;
most other names may have 253. `trunc 63` may leave a dash at the end, hence `trimSuffix "-"`.
And two long names that differ in their last letter are one name when both are cut: `duplicate-object` tells that.

Told is what the API server refused when it was to be made. What may not be changed later has rules of its own.

## Example
```yaml
metadata:
  name: {{ .Values.tenant.name }}             # Team A
  labels:
    tenant: {{ .Values.tenant.description }}  # longer than 63 characters
```

## Instead
`{{ .Values.tenant.name | lower | replace " " "-" | trunc 63 | trimSuffix "-" }}`; or a `values.schema.json` with a
`pattern` for it, which says so before anything is made. What is no name belongs into an annotation.

## Fix safety
Another name is another object. This one was never made, so there is nothing to lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import outcome_of, state
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import BUILT_IN_GROUPS
from seatrial.phrases.outcome import aftermath, revisions

INVALID = re.compile(r" is invalid: \[?(?P<field>[A-Za-z][^:\s]*): (?P<words>.*)", re.S)
VALUE = re.compile(r'Invalid value: "(?P<value>[^"]*)"')
ANNOTATIONS_MAX = 262144
TOO_LONG = f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_MAX} bytes"
LAST_APPLIED = (
    "It is kubectl apply that makes it so: it writes the whole object into the annotation "
    "kubectl.kubernetes.io/last-applied-configuration. --server-side (of Argo CD: ServerSideApply=true) does without."
)
GATED = {
    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1": "Before Kubernetes 1.37 this needs the "
    "feature gate HPAScaleToZero, which some clusters have.",
}
"""What the API server says only where a feature is off, which nobody can see from here."""
STEP_OF_PATH = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    engine = rehearsal.engine.name
    actors = (engine, "helm") if engine == "flux" else (engine,)
    for event in rehearsal.timeline:
        said = INVALID.search(event.message) if event.effect == "refused" and event.actor in actors else None
        ref = event.object
        if said is None or ref in seen or ref.group not in BUILT_IN_GROUPS or event.verb == "delete":
            continue
        written = case.written(event.step, ref)
        if written is not None and ref not in state(rehearsal, event):
            seen.add(ref)
            yield _finding(rehearsal, case, event, written, said["field"])


def _finding(rehearsal: Rehearsal, case: Case, event: Event, written: Resource, field: str) -> Finding:
    moment = Moment(rehearsal, case, event.step)
    verb = "apply" if _is_own_annotation(event, written) else "create"
    gate = next((words for said, words in GATED.items() if said in event.message), "")
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage="failed-deploy",
        certainty="may" if gate else "will",
        message=f"{outcome_of(moment)}: {event.object} is invalid at {field}",
        details=(
            f'The API server says: "{event.message}"',
            _left(rehearsal, case, event),
            LAST_APPLIED if _is_own_annotation(event, written) else "",
            gate,
        ),
        places=[written.place(*_path(field, event.message, written))],
        evidence=[event],
        confirm=f"kubectl {verb} --dry-run=server -f -  # given the object as it is rendered",
    )


def _is_own_annotation(event: Event, written: Resource) -> bool:
    """Whether an object has too many annotations only since kubectl, or who uses its code, adds one."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations_of(written.body).items())
    return TOO_LONG in event.message and size <= ANNOTATIONS_MAX


def _left(rehearsal: Rehearsal, case: Case, event: Event) -> str:
    moment = Moment(rehearsal, case, event.step)
    if rehearsal.engine.name != "helm":
        return ""
    uninstalls = rehearsal.steps[event.step].action == "uninstall"
    return revisions(moment) if uninstalls else aftermath(moment)


def _path(field: str, message: str, written: Resource) -> tuple[str | int, ...]:
    """Where a field of the API server's words is written; of labels, which are refused all together, the one."""
    steps = (part.strip("[]") for part in STEP_OF_PATH.findall(field))
    path = tuple(int(step) if step.isdigit() else step for step in steps)
    value, texts = VALUE.search(message), dig(written.body, *path)
    if value is None or not isinstance(texts, dict):
        return path
    return next(((*path, key) for key, text in texts.items() if value["value"] in (key, text)), path)


RULE = Rule("ST115", "object-is-invalid", check)
