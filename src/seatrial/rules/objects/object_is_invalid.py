"""Kubernetes rejects an object as invalid: a name, a label or a field breaks the rules of its kind.

## What happens
Templates build names and labels from values: a release, a tenant, a branch. The result may be too long, contain capital
letters or end with a dash. `helm template`, `helm lint` and schemas accept it, because to them a name is any string;
the API server rejects it. By then Helm has created everything before it, and leaves that behind.

Common mistakes: names of Services and namespaces have at most 63 characters, and so do label *values*; most other names
may have 253. `trunc 63` may leave a dash at the end, hence `trimSuffix "-"`. Two long names that differ only in their
last letter become equal when both are cut: see `duplicate-object`.

This rule reports what the API server rejected on creation. Changes of immutable fields have rules of their own.

## Example
```yaml
metadata:
  name: {{ .Values.tenant.name }}             # Team A
  labels:
    tenant: {{ .Values.tenant.description }}  # longer than 63 characters
```

## Instead
`{{ .Values.tenant.name | lower | replace " " "-" | trunc 63 | trimSuffix "-" }}`; or a `values.schema.json` with a
`pattern` for it, which fails before anything is created. Free text belongs in an annotation.

## Fix safety
Another name is another object. This one was never created, so nothing is lost.
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
from seatrial.phrases.outcome import after_failure, revisions

INVALID = re.compile(r" is invalid: \[?(?P<field>[A-Za-z][^:\s]*): (?P<words>.*)", re.S)
VALUE = re.compile(r'Invalid value: "(?P<value>[^"]*)"')
ANNOTATIONS_MAX = 262144
TOO_LONG = f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_MAX} bytes"
LAST_APPLIED = (
    "kubectl apply causes this: it writes the whole object into the annotation "
    "kubectl.kubernetes.io/last-applied-configuration. --server-side (Argo CD: ServerSideApply=true) does not."
)
GATED = {
    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1": "Before Kubernetes 1.37 this needs the "
    "feature gate HPAScaleToZero, which some clusters have.",
}
"""Errors that depend on a feature gate, which the input does not show."""
STEP_OF_PATH = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, str]] = set()
    engine = rehearsal.engine.name
    actors = (engine, "helm") if engine == "flux" else (engine,)
    for event in rehearsal.timeline:
        said = INVALID.search(event.message) if event.effect == "refused" and event.actor in actors else None
        ref = event.object
        if said is None or (ref, said["field"]) in seen or ref.group not in BUILT_IN_GROUPS or event.verb == "delete":
            continue
        written = case.written(event.step, ref)
        if written is not None and ref not in state(rehearsal, event):
            seen.add((ref, said["field"]))
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
        message=f"{outcome_of(moment)}: {event.object} is invalid at {field}",
        details=(
            f'The API server rejects it: "{event.message}"',
            _left(rehearsal, case, event),
            LAST_APPLIED if _is_own_annotation(event, written) else "",
            gate,
        ),
        places=[written.place(*_path(field, event.message, written))],
        evidence=[event],
        cause=field,
        confirm=f"kubectl {verb} --dry-run=server -f -  # with the rendered object",
    )


def _is_own_annotation(event: Event, written: Resource) -> bool:
    """Whether the annotations are too long only because client-side apply adds one."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations_of(written.body).items())
    return TOO_LONG in event.message and size <= ANNOTATIONS_MAX


def _left(rehearsal: Rehearsal, case: Case, event: Event) -> str:
    moment = Moment(rehearsal, case, event.step)
    if rehearsal.engine.name != "helm":
        return ""
    uninstalls = rehearsal.steps[event.step].action == "uninstall"
    return revisions(moment) if uninstalls else after_failure(moment)


def _path(field: str, message: str, written: Resource) -> tuple[str | int, ...]:
    """The path of the field in the error; for labels, which are validated as a whole, that of the wrong one."""
    steps = (part.strip("[]") for part in STEP_OF_PATH.findall(field))
    path = tuple(int(step) if step.isdigit() else step for step in steps)
    value, texts = VALUE.search(message), dig(written.body, *path)
    if value is None or not isinstance(texts, dict):
        return path
    return next(((*path, key) for key, text in texts.items() if value["value"] in (key, text)), path)


RULE = Rule("ST115", "object-is-invalid", check)
