"""Two installers bring the same definition, and the one with the older text takes versions or fields away.

## What happens
A CustomResourceDefinition has one name for the whole cluster. Two charts that both carry it (the Gateway API, the
definitions of an operator that is bundled twice) do not know of each other. `kubectl apply` of the older text, and
`helm install` of Helm 4, which applies `crds/` over what is there, replace the list of versions: a version that others
use is no longer served, a field that others set is dropped with the next write. Whoever did it reports success. The
other release finds out at its next upgrade (`no matches for kind`), its controller at once.

Where the definition was brought by another tool (kubectl, Argo CD, Flux), Helm 4 does not take it over: with another
text it is refused, and with it the install (`Apply failed with 1 conflict: ... .spec.versions`). `--force-conflicts`
gets past that, and does the same harm.

Helm 3 leaves a definition of `crds/` that exists as it is: there the second chart gets the text of the first, in either
order. A definition among the templates belongs to one release: the second install is refused.

## Example
```
charts/mesh/crds/routes.yaml       serves v1beta1 and v1
charts/gateway/crds/routes.yaml    serves v1beta1
```

## Instead
One owner: install the definitions once, by a chart or an `apply` of their own, in the newest text that anybody needs,
and install the others with `--skip-crds`.

## Fix safety
`--skip-crds` changes nothing for definitions that are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.crds import losses
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import DEFINITION, Unserved, defines, served_versions
from seatrial.evidence.writers import writer_of, wrote_before
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, group_of, version_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import after_failure, named

LOSSES_MAX = 6
CONFLICT = "Apply failed with"
SHARED = (DEFINITION, "Namespace")


class Downgrade(Struct, frozen=True):
    """A change of a definition, by another than who had written it before."""

    event: Event
    before: Event
    lost: tuple[str, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for downgrade in _downgrades(rehearsal, case):
        if downgrade.event.object not in told:
            told.add(downgrade.event.object)
            yield _finding(rehearsal, case, downgrade)
    for event in rehearsal.timeline:
        if event.object.kind == DEFINITION and event.object not in told and _is_conflict(event):
            told.add(event.object)
            yield _refused(rehearsal, case, event)


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
    """Whether steps apply revisions of one thing, one in the place of the other: they share more than definitions.

    Two installers that know nothing of each other share no Deployment and no account.
    """
    releases = [case.releases[step] if step >= 0 else None for step in steps]
    own = [{r.ref for r in release.resources if r.ref.kind not in SHARED} for release in releases if release]
    return len(own) == len(steps) and bool(set.intersection(*own))


def _is_conflict(event: Event) -> bool:
    return event.effect == "refused" and event.step >= 0 and CONFLICT in event.message


def _refused(rehearsal: Rehearsal, case: Case, event: Event) -> Finding:
    moment = Moment(rehearsal, case, event.step)
    ended, written = rehearsal.steps[event.step], case.written(event.step, event.object)
    live = moment.was(event.object)
    lost = losses(live, written.body) if live and written else []
    return found(
        RULE,
        moment,
        objects=[event.object],
        damage="failed-deploy",
        message=f"helm {ended.action} is refused: {event.object} is there in another text, and somebody else's",
        details=(
            f'The API server says: "{event.message}"',
            f"Helm would take away: {', '.join(lost[:LOSSES_MAX])}." if lost else "",
            after_failure(moment),
            "Helm 3 leaves a definition of crds/ that exists as it is, and goes on.",
            "--skip-crds leaves it as it is; --force-conflicts replaces it, for all who use it.",
        ),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[event],
        confirm=f"kubectl get crd {event.object.name} --show-managed-fields -o yaml  # who wrote spec.versions",
    )


def _finding(rehearsal: Rehearsal, case: Case, downgrade: Downgrade) -> Finding:
    event = downgrade.event
    ended, written = rehearsal.steps[event.step], case.written(event.step, event.object)
    users = _users(case, event)
    more = f" and {len(downgrade.lost) - LOSSES_MAX} more" if len(downgrade.lost) > LOSSES_MAX else ""
    return found(
        RULE,
        Moment(rehearsal, case, event.step),
        objects=[event.object],
        damage="outage" if users else "failed-deploy",
        message=f"{event.actor} {ended.action} of {ended.release or ended.source} takes away from {event.object} what "
        f"{_named(rehearsal, downgrade.before)} had brought: {', '.join(downgrade.lost[:LOSSES_MAX])}{more}",
        details=(
            f"{named(users)} {'needs' if len(users) == 1 else 'need'} it." if users else "",
            "The command reports success." if ended.outcome == "ok" else "",
            "Helm 4 applies crds/ over what is there when it installs; Helm 3 leaves it as it is."
            if event.actor == "helm"
            else "",
            *_next(rehearsal, event),
            "One owner for the definition, and --skip-crds for all others." if event.actor == "helm" else "",
        ),
        places=[written.place("spec", "versions")] if written else [],
        evidence=[downgrade.before, event] if downgrade.before.step >= 0 else [event],
        confirm=f"kubectl get crd {event.object.name} --show-managed-fields -o yaml  # who wrote spec.versions",
    )


def _users(case: Case, event: Event) -> list[Ref]:
    """Objects of the trial in a version that was served before and is no longer."""
    assert event.before is not None and event.after is not None
    gone = set(served_versions(event.before)) - set(served_versions(event.after))
    found: dict[Ref, None] = {}
    for resource in case.all_resources():
        api_version = str(resource.body.get("apiVersion", ""))
        kind = Unserved(resource.ref.kind, api_version, (), ())
        if defines(event.before, kind) and version_of(api_version) in gone and group_of(api_version):
            found[resource.ref] = None
    return list(found)


def _named(rehearsal: Rehearsal, event: Event) -> str:
    if event.step < 0:
        return "somebody else"
    ended = rehearsal.steps[event.step]
    return f"{ended.action} of {ended.release or ended.source}"


def _next(rehearsal: Rehearsal, event: Event) -> Iterator[str]:
    """The first later step that fails for want of the kind."""
    for ended in rehearsal.steps[event.step + 1 :]:
        if ended.outcome == "failed" and "no matches for kind" in ended.error:
            yield f'The next {ended.action} of {ended.release or ended.source} fails: "{ended.error.strip()}"'
            return


RULE = Rule("ST113", "crd-shared-ownership-downgrade", check)
