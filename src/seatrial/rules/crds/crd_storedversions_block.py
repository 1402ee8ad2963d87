"""A CRD drops a version in which objects may still be stored, and the API server rejects the change.

## What happens
The API server records in `status.storedVersions` every version that was ever the storage version. A CRD without one of
them is rejected, even if no object of that version is left: `must remain in spec.versions until a storage migration`.
The usual cause is renaming the only version, for example v1alpha1 to v1. A rollback fails too, if the newer revision
made a new version the storage version.

## Example
```yaml
spec:
  versions:
    - name: v1            # v1alpha1, the previous storage version, is gone
      served: true
      storage: true
```

## Instead
Three releases. First add the new version and make it the storage version, but keep the old one. Then rewrite every
object (`kubectl get locks -A -o yaml | kubectl replace -f -`, or a StorageVersionMigration) and remove the old version
from `status.storedVersions` (`kubectl patch crd ... --subresource=status`). Then drop it. `served: false` hides a
version at once, without any of this. To be able to roll back, serve a new version one revision before you store it.

## Fix safety
Removing a version from `status.storedVersions` while objects are stored in it makes them unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure

STORED_VERSIONS = ("status", "storedVersions")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect != "refused" or event.step < 0 or event.object in seen:
            continue
        causes = event.refusal.causes if event.refusal else ()
        dropped = [cause.value for cause in causes if cause.path[:2] == STORED_VERSIONS and cause.value]
        if dropped:
            seen.add(event.object)
            yield _finding(Moment(rehearsal, case, event.step), event, dropped)


def _finding(moment: Moment, event: Event, dropped: list[str]) -> Finding:
    ref, action = event.object, moment.ended.action
    written = moment.case.written(event.step, ref)
    versions = ", ".join(dropped)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{event.actor} {action} fails: {ref} drops {versions}, in which objects may be stored",
        details=(
            f"status.storedVersions still lists {versions}, even if no object of that version is left. Only a storage "
            "migration removes it.",
            moment.says if event.actor == "helm" else f'The API server reports: "{event.message}"',
            after_failure(moment),
        ),
        way_out=_in_order(ref, versions) if action != "rollback" else (),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[event],
        confirm=f"kubectl get crd {ref.name} -o jsonpath='{{.status.storedVersions}}'",
    )


def _in_order(ref: Ref, versions: str) -> tuple[str, ...]:
    return (
        f"Drop {versions} of {ref} only after its objects are stored in another version:",
        f"Deploy a revision that keeps {versions} and stores another version.",
        f"Rewrite all objects: kubectl get {ref.name} -A -o json | kubectl replace -f -",
        f"Remove {versions} from status.storedVersions: kubectl edit crd {ref.name} --subresource=status",
        "Deploy this revision.",
    )


RULE = Rule("ST110", "crd-storedversions-block", check, before=("object-is-invalid",), timeless=True)
