"""A step that succeeds with one major version of Helm fails with the other.

## What happens
Helm 4 is no faster Helm 3. It lets the server merge what it writes, where Helm 3 creates and patches; it knows the
kinds of webhook configurations and makes them before custom resources, where Helm 3 sorts both by name; it no longer
waits for the definitions of `crds/` or until a hook that it deletes is gone; and `--wait` asks for the `Ready`
condition of custom resources. So there are charts that only one of them can deploy, and a fleet that still has both, or
a pipeline that moves from one to the other, meets the difference where nobody changed anything.

The trial is played a second time, on a cluster of its own, by the rules of the version that is not at hand: Helm 3
where the Helm 4 that is built in plays, Helm 4 itself where `--helm-binary` names a Helm 3. Told is the first step that
succeeds with one and fails with the other; what comes after it cannot be compared. It is always a `may`: whether
anyone deploys with the other version is not written in a chart. [The differences](../helm-3-and-4.md), one by one.

## Example
```yaml
kind: Deployment
metadata:
  name: gate
spec:
  replicas: 2        # and someone applies 5: Helm 3 goes back to 2, Helm 4 says "Apply failed with 1 conflict"
```

## Instead
Write what both do alike: hooks with `before-hook-creation`, objects that are either a hook or plain, custom resources
that come after the webhook that judges them by a release or a hook of their own, no field that a controller writes too.
Or pin the version: `helm version` in the pipeline, and the same one for everybody.

## Fix safety
There is no fix by itself: the finding says which of the two would fail, and the page of the hazard behind it how.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.copies import unlike_copies
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref
from seatrial.model.timeline import Rehearsal, StepResult

POSTS = "Helm 3 creates, and what is there already is an error; Helm 4 lets the server merge what it sends"
WHY: dict[str, tuple[tuple[str, str], ...]] = {
    "3": (
        (r"already exists", f"{POSTS}."),
        (
            r"Invalid value: null: field is immutable",
            "Helm 3 takes what it did not write for what the chart said before, and wants to take it away again.",
        ),
        (
            r"failed calling webhook|failed to delete release",
            "Helm 3 does not know webhook configurations: it sorts them among the custom kinds, which go last.",
        ),
    ),
    "4": (
        (
            r"conflict occurred",
            "Helm 3 writes over what others have changed; Helm 4 does so only with --force-conflicts.",
        ),
        (
            r"^install: (?s:.*)no matches for kind",
            "Helm 3 waits until the definitions of crds/ are served; Helm 4 only does with --wait.",
        ),
        (
            r"failed calling webhook",
            "Helm 4 makes webhook configurations before custom resources; Helm 3 sorts both by the names of kinds.",
        ),
        (
            r"being terminated|being deleted",
            "Helm 3 waits until a hook that it deletes is gone; Helm 4 goes on at once unless it is told to --wait.",
        ),
        (r"field not declared|unknown field", "Helm 4 has the server refuse unknown fields; Helm 3 lets it drop them."),
        (
            r"failed to install CRD",
            "Helm 3 leaves definitions of crds/ that are there as they are; Helm 4 writes them anew.",
        ),
    ),
}
"""By the version that fails: what its words tell of the difference."""
WORDS_MAX = 400


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    other = rehearsal.otherwise
    if other is None:
        return
    for step, (ended, otherwise) in enumerate(zip(rehearsal.steps, other.steps, strict=False)):
        if _is_well(ended) != _is_well(otherwise):
            fails = other if _is_well(ended) else rehearsal
            objects = list(dict.fromkeys(_to_blame(Moment(fails, case, step))))
            if not _is_told_elsewhere(case, step, fails, objects):
                yield _finding(Moment(rehearsal, case, step), other, objects)
            return


def _is_told_elsewhere(case: Case, step: int, fails: Rehearsal, objects: list[Ref]) -> bool:
    """By rules for hooks that are there already and for objects that are written twice, which know Helm 3's part."""
    release = case.releases[step]
    if release is None or _major(fails) != "3" or "already exists" not in fails.steps[step].error:
        return False
    made = {resource.ref for resource in release.resources if hooks.is_hook(resource.body)}
    return not {*made, *unlike_copies(release)}.isdisjoint(objects)


def _is_well(ended: StepResult) -> bool:
    return "ok" in (ended.outcome, ended.again)


def _finding(moment: Moment, other: Rehearsal, objects: list[Ref]) -> Finding:
    fails, works = (other, moment.rehearsal) if _is_well(moment.ended) else (moment.rehearsal, other)
    ended = fails.steps[moment.index]
    bad, good = _major(fails), _major(works)
    about = f" at {objects[0]}" if objects else ""
    act = " ".join((ended.action, *ended.flags))
    well = "works" if works.steps[moment.index].outcome == "ok" else "works at the second try"
    return found(
        RULE,
        moment,
        objects=objects,
        damage="failed-deploy",
        certainty="may",
        message=f"helm {act} {well} with Helm {good} and fails with Helm {bad}{about}",
        details=(
            f"Helm {bad} {'waits in vain' if ended.outcome == 'hung' else 'says'}: {_shortened(ended.error)}",
            _refusal(Moment(fails, moment.case, moment.index)),
            _why(bad, ended),
        ),
        places=_places(moment.case, moment.index, objects),
        confirm="helm version --short  # wherever this release is deployed from",
    )


def _major(rehearsal: Rehearsal) -> str:
    return rehearsal.engine.major


def _to_blame(moment: Moment) -> Iterator[Ref]:
    """What it waits for in vain, or what the API server last refused."""
    ended = moment.ended
    yield from ended.waits_for
    refused = [e for e in moment.events() if e.actor == "helm" and e.effect == "refused"]
    named = [e for e in refused if e.message and e.message in ended.error]
    yield from (event.object for event in (named or refused)[-1:])


def _refusal(moment: Moment) -> str:
    """The API server's words, where Helm keeps them to itself."""
    refused = [e.message for e in moment.events() if e.actor == "helm" and e.effect == "refused"]
    if not refused or any(words in moment.ended.error for words in refused):
        return ""
    return f"The API server says: {_shortened(refused[-1])}"


def _shortened(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= WORDS_MAX else line[:WORDS_MAX] + "..."


def _why(version: str, ended: StepResult) -> str:
    return next((why for pattern, why in WHY[version] if re.search(pattern, f"{ended.action}: {ended.error}")), "")


def _places(case: Case, step: int, objects: list[Ref]) -> list[Pointer]:
    written = (case.written(step, ref) for ref in objects)
    return [resource.place("kind") for resource in written if resource]


RULE = Rule("ST703", "helm-version-differs", check)
