"""A definition drops a version in which objects may still be stored, and the API server refuses it.

## What happens
The API server remembers in `status.storedVersions` every version that ever was the stored one. A definition without one
of them is refused, whether or not an object of it is left: `must remain in spec.versions until a storage migration`.
Renaming the only version, as between v1alpha1 and v1, is the usual way to get there. A rollback gets there too, where
the revision after it had made a new version the stored one.

## Example
```yaml
spec:
  versions:
    - name: v1            # v1alpha1, which was stored before, is gone
      served: true
      storage: true
```

## Instead
Three releases: add the new version and make it the stored one, keeping the old one; write every object once more
(`kubectl get locks -A -o yaml | kubectl replace -f -`, or a StorageVersionMigration) and take the old version out of
`status.storedVersions` (`kubectl patch crd ... --subresource=status`); then drop it. `served: false` hides a version
at once, without any of this. To keep a way back, serve a new version one revision before it is stored.

## Fix safety
Taking a version out of `status.storedVersions` while objects are stored in it makes them unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure

STILL_STORED = re.compile(r'status\.storedVersions\[[0-9]+\]: Invalid value: "(?P<version>[^"]+)"')


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect != "refused" or event.step < 0 or event.object in seen:
            continue
        dropped = STILL_STORED.findall(event.message)
        if dropped:
            seen.add(event.object)
            yield _finding(rehearsal, case, event, dropped)


def _finding(rehearsal: Rehearsal, case: Case, event: Event, dropped: list[str]) -> Finding:
    moment = Moment(rehearsal, case, event.step)
    ref, ended = event.object, rehearsal.steps[event.step]
    written = case.written(event.step, ref)
    versions = ", ".join(dropped)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{event.actor} {ended.action} is refused: its {ref} lacks {versions}, in which objects may be stored",
        details=(
            moment.says if event.actor == "helm" else f'The API server says: "{event.message}"',
            f"status.storedVersions still lists {versions}. It does not matter whether an object of that version is "
            "left: only a storage migration takes it off the list.",
            after_failure(moment),
            f"The way: a revision that still lists {versions} and stores another one; then every object written anew "
            f"(kubectl get {ref.name} -A -o json | kubectl replace -f -); then the list without it (kubectl patch crd "
            f"{ref.name} --subresource=status); then this one."
            if ended.action != "rollback"
            else "",
        ),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[event],
        confirm=f"kubectl get crd {ref.name} -o jsonpath='{{.status.storedVersions}}'",
    )


RULE = Rule("ST110", "crd-storedversions-block", check)
