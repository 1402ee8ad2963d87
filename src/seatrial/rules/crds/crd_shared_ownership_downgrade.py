"""Two installers bring the same CRD, and the one with the older copy removes versions or fields.

## What happens
A CustomResourceDefinition has one name in the whole cluster. Two charts that both contain it (the Gateway API, the CRDs
of an operator that is bundled twice) do not know about each other. `kubectl apply` of the older copy replaces the list
of versions, and so does `helm install` of Helm 4, which applies `crds/` over an existing CRD. A version that others use
is no longer served; a field that others set is dropped with the next write. The command reports success. The other
release fails at its next upgrade (`no matches for kind`), its controller at once.

If another tool (kubectl, Argo CD, Flux) created the CRD, Helm 4 does not take it over: if the copies differ, the API
server rejects the apply, and the install fails (`Apply failed with 1 conflict: ... .spec.versions`).
`--force-conflicts` overrides that, and does the same damage.

Helm 3 leaves an existing CRD of `crds/` as it is: the second chart gets the copy of the first, in either order. A CRD
in the templates belongs to one release: the second install is rejected.

## Example
```
charts/mesh/crds/routes.yaml       serves v1beta1 and v1
charts/gateway/crds/routes.yaml    serves v1beta1
```

## Instead
One owner: install the CRDs once, from a separate chart or with `kubectl apply`, in the newest version that is needed,
and install the other charts with `--skip-crds`.

## Fix safety
`--skip-crds` changes nothing for existing CRDs.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.crds import losses
from seatrial.evidence.faults import has_fault
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import DEFINITION, Unserved, defines, served_versions
from seatrial.evidence.webhooks.bundles import is_bundle_conflict
from seatrial.evidence.writers import writer_of, wrote_before
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release
from seatrial.model.resource import Ref, group_of, version_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure, named

LOSSES_MAX = 6
CONFLICT = "FieldManagerConflict"
SHARED = (DEFINITION, "Namespace")
NUMBER = lazy_re.compile(r"\d+(?:[.-]\d+)*")
"""The version in the name of a file or folder."""


class Downgrade(Struct, frozen=True):
    """A change of a CRD by another writer than the previous one."""

    event: Event
    before: Event
    lost: tuple[str, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for downgrade in _downgrades(rehearsal, case):
        if downgrade.event.object not in reported:
            reported.add(downgrade.event.object)
            yield _finding(Moment(rehearsal, case, downgrade.event.step), downgrade)
    for event in rehearsal.timeline:
        if event.object.kind == DEFINITION and event.object not in reported and _is_conflict(event):
            reported.add(event.object)
            yield _refused(Moment(rehearsal, case, event.step), event)


def _downgrades(rehearsal: Rehearsal, case: Case) -> Iterator[Downgrade]:
    for event in rehearsal.timeline:
        if event.object.kind != DEFINITION or event.effect != "changed" or not event.before or not event.after:
            continue
        before = wrote_before(rehearsal, event)
        if before is None or writer_of(rehearsal, before) == writer_of(rehearsal, event):
            continue
        if _are_revisions(case, before.step, event.step):
            continue
        if lost := losses(event.before, event.after):
            yield Downgrade(event, before, tuple(lost))


def _are_revisions(case: Case, *steps: int) -> bool:
    """Whether steps apply revisions of the same app, not two installers that share a CRD."""
    releases = [release for step in steps if step >= 0 and (release := case.releases[step])]
    if len(releases) < len(steps):
        return False
    own = [{r.ref for r in release.resources if r.ref.kind not in SHARED} for release in releases]
    return bool(set.intersection(*own)) or (not any(own) and _is_one_bundle(releases))


def _is_one_bundle(releases: list[Release]) -> bool:
    """Whether sources of CRDs alone are one bundle: several CRDs in common, or names that differ in a number."""
    defined = [{r.ref for r in release.resources if r.ref.kind == DEFINITION} for release in releases]
    named = {NUMBER.sub("", release.source) for release in releases}
    return len(set.intersection(*defined)) > 1 or len(named) == 1


def _is_conflict(event: Event) -> bool:
    causes = event.refusal.causes if event.refusal else ()
    refused = event.effect == "refused" and event.step >= 0 and not is_bundle_conflict(event)
    return refused and any(cause.reason == CONFLICT for cause in causes)


def _refused(moment: Moment, event: Event) -> Finding:
    written, live = moment.case.written(event.step, event.object), moment.was(event.object)
    lost = losses(live, written.body) if live and written else []
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage="failed-deploy",
        message=f"helm {moment.ended.action} fails: {event.object} exists, differs and is owned by another manager",
        details=(
            f'The API server reports: "{event.message}"',
            f"Helm would remove: {', '.join(lost[:LOSSES_MAX])}." if lost else "",
            after_failure(moment),
            "Helm 3 leaves an existing CRD of crds/ as it is and continues.",
            "--force-conflicts would replace it for everything that uses it.",
        ),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[event],
        confirm=f"kubectl get crd {event.object.name} --show-managed-fields -o yaml  # who wrote spec.versions",
    )


def _finding(moment: Moment, downgrade: Downgrade) -> Finding:
    event, result = downgrade.event, moment.ended
    written = moment.case.written(event.step, event.object)
    users = _users(moment.case, event)
    more = f" and {len(downgrade.lost) - LOSSES_MAX} more" if len(downgrade.lost) > LOSSES_MAX else ""
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage="outage" if users else "failed-deploy",
        message=f"{event.actor} {result.action} of {result.release or result.source} removes versions or fields of "
        f"{event.object}",
        details=(
            f"Removed: {', '.join(downgrade.lost[:LOSSES_MAX])}{more}. Added before: "
            f"{_named(moment, downgrade.before)}.",
            f"{named(users)} {'needs' if len(users) == 1 else 'need'} it." if users else "",
            "The command reports success." if result.outcome == "ok" else "",
            "On install, Helm 4 applies crds/ over an existing CRD; Helm 3 leaves it as it is."
            if event.actor == "helm"
            else "",
            *_next(moment),
        ),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[downgrade.before, event] if downgrade.before.step >= 0 else [event],
        confirm=f"kubectl get crd {event.object.name} --show-managed-fields -o yaml  # who wrote spec.versions",
    )


def _users(case: Case, event: Event) -> list[Ref]:
    """Custom resources of the trial in a version that is no longer served."""
    assert event.before is not None and event.after is not None
    gone = set(served_versions(event.before)) - set(served_versions(event.after))
    found: dict[Ref, None] = {}
    for resource in case.all_resources():
        api_version = str(resource.body.get("apiVersion", ""))
        kind = Unserved(resource.ref.kind, api_version, (), ())
        if defines(event.before, kind) and version_of(api_version) in gone and group_of(api_version):
            found[resource.ref] = None
    return list(found)


def _named(moment: Moment, event: Event) -> str:
    if event.step < 0:
        return "another installer"
    result = moment.at(event.step).ended
    return f"{result.action} of {result.release or result.source}"


def _next(moment: Moment) -> Iterator[str]:
    """The first later step that fails because the kind is not served."""
    for result in moment.rehearsal.steps[moment.index + 1 :]:
        if has_fault(result.failure, "unserved"):
            yield f'The next {result.action} of {result.release or result.source} fails: "{result.error.strip()}"'
            return


RULE = Rule("ST113", "crd-shared-ownership-downgrade", check)
