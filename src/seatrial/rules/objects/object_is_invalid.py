"""Kubernetes rejects an object as invalid: a name, a label or a field breaks the rules of its kind.

## What happens
Templates build names and labels from values: a release, a tenant, a branch. The result may be too long, contain capital
letters or end with a dash. `helm template`, `helm lint` and schemas accept it, because to them a name is any string;
the API server rejects it. By then Helm has created everything before it, and leaves that behind.

Common mistakes: names of Services and namespaces have at most 63 characters, and so do label *values*; most other names
may have 253. `trunc 63` may leave a dash at the end, hence `trimSuffix "-"`. Two long names that differ only in their
last letter become equal when both are cut: see `duplicate-object`.

`kubectl apply` asks for strict validation, and Helm 4 applies on the server: both refuse a field that the kind does not
have. Helm 3 and Argo CD do not, and the field is dropped.

A field of a custom resource without a value is null. The API server drops it when the object is created by Helm 3 or
`kubectl apply`, and rejects it in a server-side apply, which Helm 4 sends.

This rule reports what the API server rejected on creation, and unknown fields; of custom resources, those whose CRD is
known. If the release has the CRD, and the cluster has another one, `crds-dir-not-upgraded` reports it. Changes of
immutable fields have rules of their own.

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

from collections.abc import Iterator

from seatrial.evidence.crds import is_alike
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import outcome_of, state
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.refusal import UNKNOWN_FIELD, FieldCause
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import BUILT_IN_GROUPS
from seatrial.phrases.outcome import after_failure, revisions

ANNOTATIONS_MAX = 262144
NEVER_ABOUT_A_CHANGE = ("FieldValueRequired", "FieldValueNotSupported", "FieldValueDuplicate", "FieldValueTypeInvalid")
ABOUT_A_CHANGE = lazy_re.compile(
    r"immutable|may not change|can ?not be (changed|removed|added|decreased|unset)|updates? to|once set|after creation"
    r"|previous|status\.|storedVersions|resourceVersion|terminating"
)
CRD = "CustomResourceDefinition"
NAME = "metadata.name"
PARTS_OF_A_NAME = lazy_re.compile(r"[^-.]+")
NOT_IN_A_NAME = lazy_re.compile(r"[^a-z0-9]")
TOO_LONG = ("metadata.annotations", "FieldValueTooLong")
LAST_APPLIED = (
    "kubectl apply causes this: it writes the whole object into the annotation "
    "kubectl.kubernetes.io/last-applied-configuration."
)
SERVER_SIDE = "Apply {ref} with --server-side (Argo CD: ServerSideApply=true), which does not write that annotation."
NULL = (
    "The field is empty, which is null. The API server drops a null when an object is created without server-side "
    "apply, as by Helm 3, and rejects it in a server-side apply, as by Helm 4."
)
LEAVE_OUT = "Leave {field} out of {ref} where it has no value: {{{{- with .Values... }}}} around its line."
GATED = {
    ("spec.minReplicas", "0"): "Before Kubernetes 1.37 this needs the "
    "feature gate HPAScaleToZero, which some clusters have.",
}
"""Fields and values that depend on a feature gate, which the input does not show."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    alike: dict[tuple[object, str], list[Event]] = {}
    engine = rehearsal.engine.name
    actors = (engine, "helm") if engine == "flux" else (engine,)
    for event in rehearsal.timeline:
        wrong = _first(event) if event.effect == "refused" and event.actor in actors else None
        ref = event.object
        if wrong is None or event.verb == "delete" or not _is_known(rehearsal, case, event):
            continue
        written = case.written(event.step, ref)
        if written is not None and (_is_wrong_by_itself(wrong) or ref not in state(rehearsal, event)):
            part = _bad_part(event.object.name) if wrong.field == NAME else ""
            alike.setdefault((part or ref, wrong.field), []).append(event)
    for events in alike.values():
        yield _finding(rehearsal, case, sorted(events, key=lambda event: event.object))


def _is_known(rehearsal: Rehearsal, case: Case, event: Event) -> bool:
    """Whether the kind is built in, or its CRD is in the cluster as the release has it, if the release has it."""
    ref, release = event.object, case.releases[event.step] if event.step >= 0 else None
    if ref.group in BUILT_IN_GROUPS or release is None:
        return ref.group in BUILT_IN_GROUPS
    crds = [crd for crd in (*release.crds, *release.resources) if _defines(crd.body, ref)]
    live = state(rehearsal, event) if crds else {}
    return not crds or any(is_alike(live[crd.ref], crd.body) for crd in crds if crd.ref in live)


def _defines(body: Body, ref: Ref) -> bool:
    spec = body.get("spec")
    return body.get("kind") == CRD and (dig(spec, "group"), dig(spec, "names", "kind")) == (ref.group, ref.kind)


def _is_wrong_by_itself(wrong: FieldCause) -> bool:
    """Whether a new object would be rejected as well. Changes of immutable fields have rules of their own."""
    if wrong.reason == UNKNOWN_FIELD or wrong.reason in NEVER_ABOUT_A_CHANGE:
        return True
    return wrong.reason == "FieldValueInvalid" and not ABOUT_A_CHANGE.search(wrong.message)


def _bad_part(name: str) -> str:
    """The part of a name that makes it invalid: `My_Shop` in `My_Shop-config`. A chart puts it into every name."""
    return next((part for part in PARTS_OF_A_NAME.findall(name) if NOT_IN_A_NAME.search(part)), "")


def _first(event: Event) -> FieldCause | None:
    """The first invalid field of an object that the API server rejects as invalid, or the first that is unknown."""
    if unknown := next((cause for cause in _causes(event) if cause.reason == UNKNOWN_FIELD), None):
        return unknown
    causes = event.refusal.causes if event.refusal and event.refusal.reason == "Invalid" else ()
    return next((cause for cause in causes[:1] if cause.field[:1].isalpha()), None)


def _finding(rehearsal: Rehearsal, case: Case, events: list[Event]) -> Finding:
    """`events` are the refusals of one object, or of one part of names, for one field; the first is quoted."""
    event = events[0]
    others = [ref for ref in dict.fromkeys(other.object for other in events) if ref != event.object]
    also = (case.written(event.step, ref) for ref in others)
    moment, written, wrong = Moment(rehearsal, case, event.step), case.written(event.step, event.object), _first(event)
    assert written is not None
    assert wrong is not None
    by_apply = _is_own_annotation(event, written)
    verb = "apply" if by_apply else "apply --server-side" if _is_null(event, wrong) else "create"
    gate = next((words for cause in _causes(event) if (words := GATED.get((cause.field, cause.value)))), "")
    return found(
        RULE,
        moment,
        objects=[event.object, *others],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: {event.object} {_fault(wrong)}",
        details=(
            f'{len(others)} more objects have "{_bad_part(event.object.name)}" in their names.' if others else "",
            f'The API server rejects it: "{event.message}"',
            _left(rehearsal, case, event),
            LAST_APPLIED if by_apply else "",
            gate,
            NULL if _is_null(event, wrong) else "",
        ),
        places=[one.place(*_path(wrong, one)) for one in (written, *also) if one is not None],
        evidence=[event, *(other for other in events[1:] if other.message != event.message)],
        cause=wrong.field,
        way_out=tuple(_way_out(event, wrong, by_apply=by_apply)),
        confirm=f"kubectl {verb} --dry-run=server -f -  # with the rendered object",
    )


def _is_null(event: Event, wrong: FieldCause) -> bool:
    return wrong.value == "null" and event.verb == "apply" and event.object.group not in BUILT_IN_GROUPS


def _way_out(event: Event, wrong: FieldCause, *, by_apply: bool) -> Iterator[str]:
    if by_apply:
        yield SERVER_SIDE.format(ref=event.object)
    elif _is_null(event, wrong):
        yield LEAVE_OUT.format(field=wrong.field, ref=event.object)


def _fault(wrong: FieldCause) -> str:
    return f"has the unknown field {wrong.field}" if wrong.reason == UNKNOWN_FIELD else f"is invalid at {wrong.field}"


def _is_own_annotation(event: Event, written: Resource) -> bool:
    """Whether the annotations are too long only because client-side apply adds one."""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations_of(written.body).items())
    return size <= ANNOTATIONS_MAX and any((cause.field, cause.reason) == TOO_LONG for cause in _causes(event))


def _causes(event: Event) -> tuple[FieldCause, ...]:
    return event.refusal.causes if event.refusal else ()


def _left(rehearsal: Rehearsal, case: Case, event: Event) -> str:
    moment = Moment(rehearsal, case, event.step)
    if rehearsal.engine.name != "helm":
        return ""
    uninstalls = rehearsal.steps[event.step].action == "uninstall"
    return revisions(moment) if uninstalls else after_failure(moment)


def _path(wrong: FieldCause, written: Resource) -> tuple[str | int, ...]:
    """The path of the field in the error; for labels, which are validated as a whole, that of the wrong one."""
    path = _indexed(wrong.path, written.body)
    texts = dig(written.body, *path)
    if not wrong.value or not isinstance(texts, dict):
        return path
    return next(((*path, key) for key, text in texts.items() if wrong.value in (key, text)), path)


def _indexed(path: tuple[str | int, ...], body: object) -> tuple[str | int, ...]:
    """A path with the index of each entry that server-side apply names by its key: `containers[name="web"]`."""
    done: list[str | int] = []
    for step in path:
        key, named, value = step.partition("=") if isinstance(step, str) else ("", "", "")
        own = dig(body, *done) if named else None
        entries = own if isinstance(own, list) else []
        at = (n for n, one in enumerate(entries) if isinstance(one, dict) and str(one.get(key)) == value.strip('"'))
        done.append(next(at, step))
    return tuple(done)


RULE = Rule("ST115", "object-is-invalid", check, timeless=True)
