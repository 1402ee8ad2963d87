"""The conversion webhook of a CRD does not answer: its backend is not ready yet, or already deleted.

## What happens
With `conversion.strategy: Webhook` the API server calls a Service whenever a custom resource is read or written in
another version than the stored one. While the Service does not answer, no client can read, change or delete such custom
resources: `conversion webhook for ... failed`. Conversion has no `failurePolicy`.

Helm applies CRDs before Services and Deployments and does not wait in between, so the CRD is active before its webhook
is. On `helm uninstall` the Service and the Deployment are deleted first. If the CRD stays (it came from `crds/`, or has
`helm.sh/resource-policy: keep`), its objects cannot even be deleted afterwards.

A `caBundle` that is no PEM certificate, such as the placeholder `Cg==`, is worse than none: since Kubernetes 1.31 the
CRD is not established (`InvalidCABundle`), and its kind is not served at all.

Changing the storage version (`storage: true`) does not change objects that are already stored: each keeps its old
version until it is written again. So the same kind can work for new objects and fail for old ones.

## Example
```yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.canal.example}
spec:
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {name: canal, namespace: canal}}}    # of the same chart
  versions:
    - {name: v1, served: true, storage: true}
    - {name: v1beta1, served: true, storage: false}                        # objects still use this version
```

## Instead
Use two releases: first the one with the conversion backend, then the one with the CRD that uses it. Use the storage
version in manifests: then nothing is converted. Before you remove the backend, delete the custom resources, or set the
strategy to `None` if the versions have the same schema.

## Fix safety
A chart that uses the storage version needs a cluster that serves that version. Setting the strategy to `None` while
the schemas differ silently drops fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import outcome_of, state_after
from seatrial.kinds.core.crd import is_held_by_its_ca
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.refusal import GroupVersionKind, Refusal
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import revisions

NAMES_MAX = 3


class Unconverted(Struct, frozen=True):
    """A request that failed because an object is stored in another version."""

    step: int
    group: str
    kind: str
    words: str
    event: Event | None
    """None if Helm only tried to read it."""
    untrusted: bool
    """Whether the API server does not trust the backend's certificate."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    yield from _never_served(rehearsal, case)
    reported: set[Ref] = set()
    for failed in _failures(rehearsal):
        definition, body = _definition(rehearsal, case, failed)
        if definition is not None and definition not in reported:
            reported.add(definition)
            yield _finding(rehearsal, case, failed, definition, body)


def _never_served(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """CRDs that are not established when a step has ended, because of the CA in their source."""
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for ref, body in state_after(moment).items():
            if ref in reported or not is_held_by_its_ca(body):
                continue
            written = case.written(moment.index, ref)
            if written is None:
                continue
            reported.add(ref)
            users = [r.ref for r in case.all_resources() if (r.ref.group, r.ref.kind) == _names(body)]
            yield found(
                RULE,
                moment,
                objects=[ref, *dict.fromkeys(users)],
                damage="failed-deploy",
                message=f"{ref} is never served: the caBundle of its conversion webhook is no certificate",
                details=('The CRD has the condition Established=False: "The conversion webhook CABundle is invalid"',),
                way_out=(
                    f"Leave caBundle of {ref} out if something injects it: then the CRD is served, and only conversion "
                    "fails until the bundle is there.",
                ),
                places=[written.place("spec", "conversion", "webhook", "clientConfig", "caBundle")],
                evidence=[event for event in moment.events() if event.object == ref][-3:],
                confirm=f"kubectl get crd {ref.name} -o jsonpath='{{.status.conditions}}'",
            )


def _names(crd: Body) -> tuple[str, str]:
    return str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))


def _failures(rehearsal: Rehearsal) -> Iterator[Unconverted]:
    for step, ended in enumerate(rehearsal.steps):
        refused = [(e.refusal, e) for e in rehearsal.of_step(step) if e.refusal and e.effect == "refused"]
        reads = ((fault.refusal, None) for fault in faults(ended.failure, "not-read") if fault.refusal)
        writes = [one for one in refused if _converts(one[0])]
        for refusal, event in writes or reads:
            if of := _converts(refusal):
                untrusted = refusal.call is not None and refusal.call.untrusted
                yield Unconverted(step, of.group, of.kind, refusal.message, event, untrusted)


def _converts(refusal: Refusal) -> GroupVersionKind | None:
    return refusal.call.converts if refusal.call else None


def _definition(rehearsal: Rehearsal, case: Case, failed: Unconverted) -> tuple[Ref | None, Body]:
    for ref, body in state_after(Moment(rehearsal, case, failed.step)).items():
        named = (dig(body, "spec", "group"), dig(body, "spec", "names", "kind"))
        if ref.kind == "CustomResourceDefinition" and named == (failed.group, failed.kind):
            return ref, body
    return None, {}


def _finding(rehearsal: Rehearsal, case: Case, failed: Unconverted, definition: Ref, body: Body) -> Finding:
    step = failed.step
    moment = Moment(rehearsal, case, step)
    written = case.written(step, definition)
    service = _service(body)
    refused = failed.event.object if failed.event else None
    user = case.written(step, refused) if refused else _of_kind(case, step, failed)
    gone = any(service in ended.deleted for ended in rehearsal.steps[: step + 1])
    which = refused or (user.ref if user else f"an object of kind {failed.kind}")
    stored = next((str(v.get("name")) for v in listed(body, "spec", "versions") if v.get("storage")), "")
    return found(
        RULE,
        moment,
        objects=[definition, *([user.ref] if user and not failed.event else ())],
        damage=_damage(gone=gone),
        message=f"{outcome_of(moment)}: the conversion webhook of {definition} does not answer",
        details=(
            f"{which} must be converted.",
            f'The API server reports: "{failed.words}"',
            _order(rehearsal, failed, definition, service, gone=gone),
            f"New custom resources are stored as {stored}; existing ones keep their version until they are written "
            "again. Every request for another version than the stored one fails, for all clients.",
            revisions(moment),
        ),
        places=[
            *([written.place("spec", "conversion", "strategy")] if written else ()),
            *([user.place("apiVersion")] if user else ()),
        ],
        evidence=[*_deeds(moment, definition, service)][-3:] + ([failed.event] if failed.event else []),
        confirm=f"kubectl get {dig(body, 'spec', 'names', 'plural')}.{_other(body, stored)}.{failed.group} -A",
    )


def _service(body: Body) -> Ref:
    found = dig(body, "spec", "conversion", "webhook", "clientConfig", "service") or {}
    return Ref("Service", str(found.get("namespace") or ""), str(found.get("name") or ""))


def _of_kind(case: Case, step: int, failed: Unconverted) -> Resource | None:
    release = case.releases[step]
    found = (
        (r for r in release.resources if (r.ref.group, r.ref.kind) == (failed.group, failed.kind)) if release else ()
    )
    return next(iter(found), None)


def _damage(*, gone: bool) -> Damage:
    return "outage" if gone else "failed-deploy"


def _order(rehearsal: Rehearsal, failed: Unconverted, definition: Ref, service: Ref, *, gone: bool) -> str:
    action = rehearsal.steps[failed.step].action
    if gone:
        took = next(ended for ended in rehearsal.steps if service in ended.deleted)
        return (
            f"The {took.action} of {took.release} deletes {service} and leaves {definition}, which still calls it: its "
            "objects can no longer be deleted either."
        )
    if failed.untrusted:
        return f"The caBundle of {definition}, with which the API server verifies the backend, is not written yet."
    changed = any(e.object == definition and e.effect in ("created", "changed") for e in rehearsal.of_step(failed.step))
    if changed:
        return (
            f"The same {action} applies {definition} before {service}, and does not wait for pods in between: --wait "
            "only waits after everything is applied."
        )
    return f"The pods behind {service} are not ready."


def _deeds(moment: Moment, *refs: Ref) -> Iterator[Event]:
    for event in moment.rehearsal.timeline:
        if (
            event.step <= moment.index
            and event.object in refs
            and event.actor == "helm"
            and event.effect in ("created", "changed", "deleted")
        ):
            yield event


def _other(body: Body, stored: str) -> str:
    """A served version that is not the storage version: reading it requires conversion."""
    served = [str(v.get("name")) for v in listed(body, "spec", "versions") if v.get("served")]
    return next((version for version in served if version != stored), stored)


RULE = Rule("ST508", "conversion-webhook-order", check)
