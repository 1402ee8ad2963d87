"""A custom resource needs a CRD that another chart installs, and the one in the cluster does not serve its version.

## What happens
Helm resolves the kind and version of every resource before it sends the first one, and stops at one that is not served:
`no matches for kind "ExternalSecret" in version "external-secrets.io/v1beta1"`. Its hint `ensure CRDs are installed
first` may be wrong: the CRD may exist and no longer serve that version. Operators remove old versions, and older charts
still use them.

kubectl also resolves all kinds first, and applies the objects that it can resolve. Pulumi creates the other resources,
retries this one for 63 seconds, and then fails.

Nothing else causes this error: Helm does not check here whether namespaces, SecretStores or Secrets exist. Making the
custom resource a hook only moves the failure: Helm resolves a hook's kind only when it runs the hook, so everything
before it has already been created. The error then mentions `deleting hook`, because Helm resolves the hook first to
delete a previous copy, even without a `helm.sh/hook-delete-policy`.

If nothing in the trial contains the CRD, seatrial assumes that the cluster has it, and lists it as a prerequisite. To
set the version, name the operator in a trial file: `assume: operators: [external-secrets@1.0.0]`. A lock file that pins
the chart of the operator does the same; if the values disable that chart, the failure is only `likely`. Without either,
a version that the newest known release of the operator no longer serves is reported as `may`.

## Example
```yaml
apiVersion: external-secrets.io/v1beta1     # served before external-secrets 0.17.0 only
kind: ExternalSecret
```

## Instead
Use a version that is served, and document which release of the operator the chart needs. If the kind is optional (a
ServiceMonitor), check first: `{{ if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" }}`.

## Fix safety
A newer version may have other fields. If both are served, changing the version changes nothing in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.faults import faults
from seatrial.evidence.flux.reconciliations import failed_kustomization
from seatrial.evidence.history import newest
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.pinned import installed_separately, is_assumed, pin_of
from seatrial.evidence.unserved import (
    Unserved,
    brought_late,
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
from seatrial.model.release import CHART, Brought, Case, Release, Resource
from seatrial.model.resource import Body, Ref, group_of, name_of, version_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.headline import HEADLINE_MAX
from seatrial.phrases.outcome import after_failure, first_named, named
from seatrial.phrases.pinned import is_installed_separately

KUBERNETES_GROUPS = frozenset(group for group, _ in CATALOGUE)
SERVED = "{range .spec.versions[*]}{.name}={.served} {end}"
NO_ORDERING = "This is not an ordering problem."
RESOLVED_BY = {
    "kubectl": f"{NO_ORDERING} kubectl resolves all kinds before it applies the first object, and applies the others.",
    "Pulumi": f"{NO_ORDERING} Pulumi retries such a creation for 63 seconds before it fails.",
}


class RemovedVersion(Struct, frozen=True):
    """The first release of an operator that no longer serves a version, and the replacement if it is known."""

    operator: str
    until: str
    instead: str


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, release, kinds in unserved(rehearsal, case):
        moment = Moment(rehearsal, case, step)
        foreign = [missing for missing in kinds if _is_foreign(missing) and not _comes_too_late(moment, missing)]
        if foreign:
            yield _refused(moment, release, foreign)
            return
    deployed = newest(rehearsal, case) or _applied(rehearsal, case)
    if deployed is not None:
        yield from _ending(*deployed)


def _applied(rehearsal: Rehearsal, case: Case) -> tuple[Moment, Release] | None:
    """The last deployment by kubectl or Pulumi, if that is the engine."""
    applied = [
        (m, m.release)
        for m in moments(rehearsal, case)
        if m.release and m.ended.explicit and m.ended.role == "replace" and m.speaker == rehearsal.label
    ]
    return applied[-1] if applied else None


def _is_foreign(missing: Unserved) -> bool:
    group, version = group_of(missing.api_version), version_of(missing.api_version)
    return group not in KUBERNETES_GROUPS and (group, version, missing.kind) not in REMOVED


def _comes_too_late(moment: Moment, missing: Unserved) -> bool:
    """Whether a release of the trial brings it: then the rules about ordering report it."""
    case = moment.case
    beside = failed_kustomization(moment.ended, missing.users[0])
    brought = brought_late(case, missing)
    in_it = beside is not None and brought is not None and brought.by in beside.objects
    defined = defined_by(list(case.all_resources()), missing) is not None
    return in_it or defined or generated_by(case, missing) is not None


def _refused(moment: Moment, release: Release, kinds: list[Unserved]) -> Finding:
    users = [user for missing in kinds for user in missing.users]
    written = [resource for missing in kinds for resource in missing.written]
    there = [(missing, definition_in_cluster(moment, missing)) for missing in kinds]
    first, *others = dict.fromkeys(missing.api_version for missing in kinds)
    versions = f"{first} and {len(others)} more" if others else first
    separate = [installed_separately(moment, missing.users[0]) for missing in kinds]
    late = [one for missing in kinds if (one := brought_late(moment.case, missing)) is not None]
    return found(
        RULE,
        moment,
        objects=users,
        damage="failed-deploy",
        certainty="likely" if all(separate) else "will",
        message=_headline(f"{moment.act} fails: the cluster lacks {versions} for", users),
        details=(
            *dict.fromkeys(_what_is_there(missing, crd) for missing, crd in there),
            *dict.fromkeys(_too_late(one) for one in late),
            *dict.fromkeys(_known(missing.api_version, missing.kind) for missing in kinds),
            *dict.fromkeys(_pinned(moment, missing) for missing in kinds),
            *dict.fromkeys(is_installed_separately(pin) for pin in separate if pin),
            *dict.fromkeys(_mixed(release, missing) for missing in kinds),
            moment.says,
            _not_ordering(moment, written) if any(crd for _, crd in there) else "",
            after_failure(moment),
        ),
        places=[resource.place("apiVersion") for resource in written]
        + [own.place("spec", "versions") for missing in kinds for own in _own(release, missing)],
        way_out=tuple(dict.fromkeys(_first(one) for one in late)),
        confirm=_look_at(*there[0]),
    )


def _too_late(brought: Brought) -> str:
    """Who of the release brings the CRD, and why that does not help."""
    resolves = "Helm resolves the kind of every resource before it sends the first one and before any hook runs"
    if brought.by.kind not in ("Job", CHART):
        return f"The CRD comes with {brought.source}, which is not installed yet."
    if brought.by.kind == "Job":
        return f"{brought.by} installs {brought.chart}, which contains the CRD, but {resolves}."
    return f"Chart {brought.chart}, a dependency, has the CRD in its templates, but {resolves}."


def _first(brought: Brought) -> str:
    if brought.by.kind not in ("Job", CHART):
        return f"Apply what needs the CRD after {brought.by}, with dependsOn."
    what = brought.chart if "://" in brought.chart else f"chart {brought.chart}"
    return f"Install {what} before this chart, in a step of its own."


def _headline(lacks: str, users: list[Ref]) -> str:
    """Names the only object if there is room, else counts: the version must not be cut."""
    short = f"{users[0].kind}/{users[0].name}"
    if len(users) == 1 and len(f"{lacks} {short}") <= HEADLINE_MAX:
        return f"{lacks} {users[0]}"
    kinds = {ref.kind for ref in users}
    kind = f"{kinds.pop()} object" if len(kinds) == 1 else "object"
    return f"{lacks} {len(users)} {kind}{'s' if len(users) > 1 else ''}"


def _what_is_there(missing: Unserved, crd: Body | None) -> str:
    if crd is None:
        return f"The cluster has no CRD for {missing.kind}."
    served = ", ".join(served_versions(crd)) or "no version"
    return f"The CRD of {missing.kind} is in the cluster, but serves only {served}."


def _known(api_version: str, kind: str) -> str:
    ending = _end_of(api_version, kind)
    if ending is None:
        return ""
    instead = f" Use {ending.instead}." if ending.instead else ""
    return f"{ending.operator} {ending.until} and later do not serve {kind} in {api_version}.{instead}"


def _pinned(moment: Moment, missing: Unserved) -> str:
    """Which release of the operator the input installs, and where it says so."""
    pin = pin_of(moment.case, missing.users[0], installed=True)
    return f"The input installs chart {pin.chart} {pin.version} ({pin.source})." if pin else ""


def _end_of(api_version: str, kind: str) -> RemovedVersion | None:
    """When a known operator stops serving a kind in a version."""
    group = group_of(api_version)
    if (group, kind) not in operator_kinds():
        return None
    operator, known = operator_kinds()[group, kind]
    last = release_number("", operator)
    until = next((v.until for v in known.versions if v.name == version_of(api_version) and v.until), None)
    if until is None or version_of(api_version) in known.served(last):
        return None
    # If a whole group was removed (traefik.containo.us), the kind continues in another one.
    successors = (known, *(other for other in operator.kinds if other.kind == kind))
    instead = next((f"{one.group}/{one.stored(last)}" for one in successors if one.served(last)), "")
    return RemovedVersion(operator.name, ".".join(map(str, until)), instead)


def _mixed(release: Release, missing: Unserved) -> str:
    """Other resources of the same group that use another version."""
    group = group_of(missing.api_version)
    others = [r for r in release.resources if r.ref.group == group and r.body.get("apiVersion") != missing.api_version]
    if not others:
        return ""
    versions = ", ".join(sorted({str(resource.body["apiVersion"]) for resource in others}))
    return f"The same chart uses {versions} for {named(resource.ref for resource in others)}."


def _not_ordering(moment: Moment, written: list[Resource]) -> str:
    if moment.speaker != "Helm":
        return RESOLVED_BY.get(moment.speaker, "")
    hook = bool(written) and all(hooks.is_hook(resource.body) for resource in written)
    if hook and any(fault.during == "hook-deletion" for fault in faults(moment.ended.failure, "unserved")):
        return (
            f"{NO_ORDERING} Helm resolves the hook's kind when it runs the hook (first to delete a previous copy). As "
            "a regular resource it would fail even earlier."
        )
    if hook:
        return f"{NO_ORDERING} Helm resolves the hook's kind when it runs the hook."
    return (
        f"{NO_ORDERING} As a hook it would fail too, only later. Helm only checks kinds and versions here, not "
        "namespaces, SecretStores or Secrets."
    )


def _own(release: Release, missing: Unserved) -> Iterator[Resource]:
    """A CRD of the release itself that lacks the version."""
    return (resource for resource in (*release.crds, *release.resources) if defines(resource.body, missing))


def _look_at(missing: Unserved, crd: Body | None) -> str:
    if crd is None:
        return f"kubectl api-resources --api-group={group_of(missing.api_version)}  # nothing"
    return f"kubectl get crd {name_of(crd)} -o jsonpath='{SERVED}'"


def _ending(moment: Moment, release: Release) -> Iterator[Finding]:
    """Versions that the newest release of their operator no longer serves, if the running release is unknown."""
    by_version: dict[tuple[str, RemovedVersion], list[Resource]] = {}
    for resource in release.resources:
        api_version = str(resource.body.get("apiVersion", ""))
        ending = _end_of(api_version, resource.ref.kind)
        pinned = pin_of(moment.case, resource.ref, installed=True)
        if ending is not None and pinned is None and is_assumed(moment, resource.ref):
            by_version.setdefault((api_version, ending), []).append(resource)
    for (api_version, ending), resources in by_version.items():
        yield _no_longer(moment, release, api_version, ending, resources)


def _no_longer(
    moment: Moment, release: Release, api_version: str, ending: RemovedVersion, resources: list[Resource]
) -> Finding:
    refs = [resource.ref for resource in resources]
    missing = Unserved(refs[0].kind, api_version, tuple(refs), tuple(resources))
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        certainty="may",
        message=f"{first_named(refs)} {'uses' if len(refs) == 1 else 'use'} {api_version}, removed in "
        f"{ending.operator} {ending.until}",
        details=(
            f'With {ending.until} or later {moment.speaker} fails: "no matches for kind "{refs[0].kind}" in version '
            f'"{api_version}"".',
            "The version in the cluster is not known, so it is assumed to be served.",
            _mixed(release, missing),
            f"If you know the version, set it in a trial file: assume: operators: [{ending.operator}@VERSION].",
        ),
        way_out=(f"Use {ending.instead} for {first_named(refs)}.",) if ending.instead else (),
        places=[resource.place("apiVersion") for resource in resources],
        confirm=f"kubectl api-resources --api-group={group_of(api_version)}  # which versions are served",
    )


RULE = Rule("ST104", "third-party-crd-absent", check, timeless=True)
