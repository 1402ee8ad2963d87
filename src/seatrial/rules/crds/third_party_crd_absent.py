"""An object is of a kind that somebody else's definition must bring, and the one in the cluster does not serve it.

## What happens
Helm asks the API server for the kind and the version of every object before it sends the first one, and ends where one
is not served: `no matches for kind "ExternalSecret" in version "external-secrets.io/v1beta1"`. What it adds, `ensure
CRDs are installed first`, is not always what is lacking: the definition may well be there and no longer serve that
version. Operators take old versions away; charts that were written for them go on naming them.

kubectl looks all kinds up first as well, and applies what it finds. Pulumi makes the others meanwhile, tries this one
again for 63 seconds, and then fails.

Nothing else is the cause of it: Helm does not look whether namespaces, stores or Secrets exist, and what hooks have
made is visible to all that follows. To make the object a hook moves the failure: a hook is looked up when its turn
comes, so that everything before it has been made. Helm then speaks of `deleting hook`, because it looks the hook up to
delete an old one; that is done without any `helm.sh/hook-delete-policy` as well.

Whether a kind that nobody in the trial defines will be in the cluster cannot be known: it is assumed, and named as a
prerequisite. A trial that says which operator runs there (`assume: operators: [external-secrets@1.0.0]`) decides it. A
version that the newest known release of its operator no longer serves is a `may`.

## Example
```yaml
apiVersion: external-secrets.io/v1beta1     # served before external-secrets 0.17.0 only
kind: ExternalSecret
```

## Instead
Write the version that is served, and say which release of the operator the chart needs. Where the kind is a matter of
taste (a ServiceMonitor), ask first: `{{ if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" }}`.

## Fix safety
A newer version may have other fields. Where both are served, changing the version changes nothing in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import newest
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import (
    Unserved,
    defined_by,
    defines,
    definition_in_cluster,
    generated_by,
    served_versions,
    unserved,
)
from seatrial.helm import hooks
from seatrial.kinds.operators.table import operator_kinds, release_number
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.tables.removed import REMOVED
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, group_of, name_of, ref_of, version_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import after_failure, named, named_is

KUBERNETES_GROUPS = frozenset(group for group, _ in CATALOGUE)
SERVED = "{range .spec.versions[*]}{.name}={.served} {end}"
LOOKED_UP_TO_DELETE = "for deleting hook"
LOOKED_UP_BY = {
    "kubectl": "The order is not at fault: kubectl looks up all kinds before it applies the first object, and applies "
    "the others.",
    "Pulumi": "The order is not at fault: Pulumi tries such a creation again for 63 seconds before it says so.",
}


class Ending(Struct, frozen=True):
    """Until when an operator serves a version, and what to write instead, as far as that is known."""

    operator: str
    until: str
    instead: str


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release, kinds in unserved(rehearsal, case):
        foreign = [missing for missing in kinds if _is_foreign(missing) and not _comes_too_late(case, missing)]
        if foreign:
            yield _refused(Moment(rehearsal, case, step), release, foreign)
            return
    deployed = newest(rehearsal, case) or _applied(rehearsal, case)
    if deployed is not None and deployed[0].ended.outcome == "ok":
        yield from _ending(*deployed)


def _applied(rehearsal: Rehearsal, case: Case) -> tuple[Moment, Release] | None:
    """The last thing that kubectl or Pulumi deploys, where it is the engine."""
    act = {"kubectl": "apply", "pulumi": "up"}.get(rehearsal.engine.name)
    applied = [(m, m.release) for m in moments(rehearsal, case) if m.release and m.ended.action == act]
    return applied[-1] if applied else None


def _is_foreign(missing: Unserved) -> bool:
    group, version = group_of(missing.api_version), version_of(missing.api_version)
    return group not in KUBERNETES_GROUPS and (group, version, missing.kind) not in REMOVED


def _comes_too_late(case: Case, missing: Unserved) -> bool:
    """Whether a release of the trial brings it: rules about the order tell that better."""
    operator_kinds = list(case.all_resources())
    return defined_by(operator_kinds, missing) is not None or generated_by(operator_kinds, missing) is not None


def _refused(moment: Moment, release: Release, kinds: list[Unserved]) -> Finding:
    ended = moment.ended
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    there = [(missing, definition_in_cluster(moment, missing)) for missing in kinds]
    return found(
        RULE,
        moment,
        objects=users,
        damage="failed-deploy",
        message=f"{moment.act} fails: {named_is(users)} written in "
        f"{', '.join(dict.fromkeys(missing.api_version for missing in kinds))}, which nobody serves",
        details=(
            *dict.fromkeys(_what_is_there(missing, definition) for missing, definition in there),
            *dict.fromkeys(_known(missing.api_version, missing.kind) for missing in kinds),
            *dict.fromkeys(_mixed(release, missing) for missing in kinds),
            moment.says,
            _not_the_order(moment.speaker, ended.error, written) if any(definition for _, definition in there) else "",
            after_failure(moment),
        ),
        places=[resource.place("apiVersion") for resource in written]
        + [own.place("spec", "versions") for missing in kinds for own in _own(release, missing)],
        confirm=_look_at(*there[0]),
    )


def _what_is_there(missing: Unserved, definition: Body | None) -> str:
    if definition is None:
        return f"The cluster has no definition of {missing.kind} at all."
    served = ", ".join(served_versions(definition)) or "no version"
    return f"The definition of {missing.kind} is in the cluster, and serves {served} only."


def _known(api_version: str, kind: str) -> str:
    ending = _end_of(api_version, kind)
    if ending is None:
        return ""
    instead = f": write {ending.instead}" if ending.instead else ""
    return f"{ending.operator} serves {kind} in {api_version} before {ending.until} only{instead}."


def _end_of(api_version: str, kind: str) -> Ending | None:
    """When an operator that is known stops serving a kind in a version."""
    group = group_of(api_version)
    if (group, kind) not in operator_kinds():
        return None
    operator, known = operator_kinds()[group, kind]
    last = release_number("", operator)
    until = next((v.until for v in known.versions if v.name == version_of(api_version) and v.until), None)
    if until is None or version_of(api_version) in known.served(last):
        return None
    # Where a whole group was given up (traefik.containo.us), the kind lives on under another one.
    heirs = (known, *(other for other in operator.kinds if other.kind == kind))
    instead = next((f"{heir.group}/{heir.stored(last)}" for heir in heirs if heir.served(last)), "")
    return Ending(operator.name, ".".join(map(str, until)), instead)


def _mixed(release: Release, missing: Unserved) -> str:
    """That the chart itself knows better elsewhere."""
    group = group_of(missing.api_version)
    others = [r for r in release.resources if r.ref.group == group and r.body.get("apiVersion") != missing.api_version]
    if not others:
        return ""
    versions = ", ".join(sorted({str(resource.body["apiVersion"]) for resource in others}))
    return f"The same chart writes {named(resource.ref for resource in others)} in {versions}."


def _not_the_order(who: str, error: str, written: list[Resource]) -> str:
    if who != "Helm":
        return LOOKED_UP_BY.get(who, "")
    hook = bool(written) and all(hooks.is_hook(resource.body) for resource in written)
    if hook and LOOKED_UP_TO_DELETE in error:
        return (
            "Neither the order nor the deletion is at fault: Helm looks a hook up when its turn comes, first to delete "
            "an old one, whether it has a delete policy or not. A plain object fails before anything is made."
        )
    if hook:
        return "The order is not at fault: Helm looks a hook up when its turn comes."
    return (
        "The order is not at fault: as a hook it would fail as well, only later. Helm looks at kinds and versions "
        "here, not at namespaces, stores or Secrets."
    )


def _own(release: Release, missing: Unserved) -> Iterator[Resource]:
    """A definition that the release itself brings, and that lacks the version."""
    return (resource for resource in (*release.crds, *release.resources) if defines(resource.body, missing))


def _look_at(missing: Unserved, definition: Body | None) -> str:
    if definition is None:
        return f"kubectl api-resources --api-group={group_of(missing.api_version)}  # nothing"
    return f"kubectl get crd {name_of(definition)} -o jsonpath='{SERVED}'"


def _ending(moment: Moment, release: Release) -> Iterator[Finding]:
    """Versions that the newest release of their operator no longer serves, where nothing says which one runs."""
    by_version: dict[tuple[str, Ending], list[Resource]] = {}
    for resource in release.resources:
        api_version = str(resource.body.get("apiVersion", ""))
        ending = _end_of(api_version, resource.ref.kind)
        if ending is not None and _is_assumed(moment, resource.ref):
            by_version.setdefault((api_version, ending), []).append(resource)
    for (api_version, ending), resources in by_version.items():
        yield _no_longer(moment, release, api_version, ending, resources)


def _is_assumed(moment: Moment, ref: Ref) -> bool:
    """Whether no release brings the CRD of this kind, so that one was created that serves what is used."""
    definition = definition_in_cluster(moment, Unserved(ref.kind, f"{ref.group}/", (), ()))
    if definition is None:
        return False
    crd = ref_of(definition, namespaced=False)
    return moment.case.is_assumed(crd) and all(resource.ref != crd for resource in moment.case.all_resources())


def _no_longer(
    moment: Moment, release: Release, api_version: str, ending: Ending, resources: list[Resource]
) -> Finding:
    refs = [resource.ref for resource in resources]
    missing = Unserved(refs[0].kind, api_version, tuple(refs), tuple(resources))
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        certainty="may",
        message=f"{named_is(refs)} written in {api_version}, which {ending.operator} serves before {ending.until} only",
        details=(
            f'Where a newer one runs, {moment.speaker} fails: "no matches for kind "{refs[0].kind}" in '
            f'version "{api_version}"". It was assumed to be served here, as nothing says which release runs.',
            f"Write {ending.instead}." if ending.instead else "",
            _mixed(release, missing),
            f"To decide it, say what runs in a trial file: assume: operators: [{ending.operator}@VERSION].",
        ),
        places=[resource.place("apiVersion") for resource in resources],
        confirm=f"kubectl api-resources --api-group={group_of(api_version)}  # which versions are served",
    )


RULE = Rule("ST104", "third-party-crd-absent", check)
