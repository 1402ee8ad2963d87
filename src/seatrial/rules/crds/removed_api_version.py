"""An object is written in a version of a Kubernetes API that the cluster no longer serves, and Helm makes nothing.

## What happens
Kubernetes takes old versions of its APIs away: `policy/v1beta1` with 1.25, `autoscaling/v2beta2` with 1.26. Helm asks
the API server for the kind of every object before it sends the first one, and ends there: `no matches for kind
"PodDisruptionBudget" in version "policy/v1beta1"`. What it adds, `ensure CRDs are installed first`, is wrong here:
there is no definition to install. Only hooks are looked up one by one, when their turn comes: an object of a
post-install hook fails after all else was made.

A release that was installed before the cluster was upgraded cannot be upgraded either, not even to a chart that has the
new version: Helm also looks up what the revision before says (`unable to build kubernetes objects from current release
manifest`). The plugin `helm mapkubeapis` rewrites that record.

An object whose version is still served, and is known to go, is a `may`: it happens with the upgrade of the cluster.

## Example
```yaml
apiVersion: policy/v1beta1        # policy/v1 since Kubernetes 1.21
kind: PodDisruptionBudget
```

## Instead
Write the version that took its place. A chart for both old and new clusters asks the cluster:
`{{ if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}`. Deploy it before the cluster is upgraded.

## Fix safety
The new version may have other fields, and other defaults: an empty selector of a PodDisruptionBudget selects no pod in
`policy/v1beta1` and every pod in `policy/v1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import Unserved, unserved
from seatrial.helm import hooks
from seatrial.kinds.tables.removed import REMOVED, Removal
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import group_of, version_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import after_failure, helm_says, named_is

Removed = tuple[Unserved, Removal]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, _, kinds in unserved(rehearsal, case):
        gone = [(missing, removal) for missing in kinds if (removal := _removal(missing.api_version, missing.kind))]
        if gone:
            yield _refused(Moment(rehearsal, case, step), gone)
            return
    deployed = newest(rehearsal, case)
    if deployed is not None and deployed[0].ended.outcome == "ok":
        yield from _going(*deployed)


def _removal(api_version: str, kind: str) -> Removal | None:
    return REMOVED.get((group_of(api_version), version_of(api_version), kind))


def _refused(moment: Moment, gone: list[Removed]) -> Finding:
    ended = moment.ended
    users = [user for missing, _ in gone for user in missing.users]
    written = [resource for missing, _ in gone for resource in missing.written]
    return found(
        RULE,
        moment,
        objects=users,
        damage="failed-deploy",
        message=f"{moment.act} fails: {named_is(users)} written in "
        f"{_versions(gone)}, which Kubernetes no longer serves",
        details=(
            *(_since(missing.api_version, missing.kind, removal) for missing, removal in gone),
            helm_says(ended),
            "There is no definition to install: the kind is Kubernetes' own, and the version is gone.",
            "It is a hook, and those are looked up when their turn comes: all before it was made."
            if written and all(hooks.is_hook(resource.body) for resource in written)
            else "",
            after_failure(moment),
        ),
        places=[resource.place("apiVersion") for resource in written],
        confirm=f"kubectl explain {gone[0][0].kind.lower()} --api-version={gone[0][0].api_version}  # no such version",
    )


def _versions(gone: list[Removed]) -> str:
    return ", ".join(dict.fromkeys(missing.api_version for missing, _ in gone))


def _since(api_version: str, kind: str, removal: Removal) -> str:
    instead = f"write {removal.replacement}" if removal.replacement else "nothing took its place"
    return f"{kind} in {api_version} is served before Kubernetes {removal.minor} only: {instead}."


def _going(moment: Moment, release: Release) -> Iterator[Finding]:
    """What is served here and will not be by a later Kubernetes."""
    for resource in release.resources:
        removal = _removal(str(resource.body.get("apiVersion", "")), resource.ref.kind)
        if removal is not None:
            yield _later(moment, resource, removal)


def _later(moment: Moment, resource: Resource, removal: Removal) -> Finding:
    api_version = str(resource.body["apiVersion"])
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{resource.ref} is written in {api_version}, which Kubernetes {removal.minor} does not serve: on a "
        "cluster that has become so new, helm upgrade fails",
        details=(
            _since(api_version, resource.ref.kind, removal),
            "It happens when the cluster is upgraded first. Helm also looks up what the revision before says: "
            '"unable to build kubernetes objects from current release manifest".',
        ),
        places=[resource.place("apiVersion")],
        confirm="kubectl version  # and: kubectl get --raw /metrics | grep apiserver_requested_deprecated_apis",
    )


RULE = Rule("ST105", "removed-api-version", check)
