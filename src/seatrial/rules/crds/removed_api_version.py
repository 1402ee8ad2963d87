"""An object uses a version of a Kubernetes API that the cluster no longer serves, and Helm creates nothing.

## What happens
Kubernetes removes old API versions: `policy/v1beta1` in 1.25, `autoscaling/v2beta2` in 1.26. Helm resolves the kind of
every resource before it sends the first one, and stops: `no matches for kind "PodDisruptionBudget" in version
"policy/v1beta1"`. Its hint `ensure CRDs are installed first` is wrong here: there is no CRD to install. Hooks are
resolved one by one, when Helm runs them: a post-install hook fails after everything else has been created.

A release that was installed before the cluster was upgraded cannot be upgraded either, not even to a chart that uses
the new version: Helm also resolves the manifest of the previous revision (`unable to build kubernetes objects from
current release manifest`). The plugin `helm mapkubeapis` rewrites that manifest.

A version that is still served but will be removed is a `may`: it fails once the cluster is upgraded.

## Example
```yaml
apiVersion: policy/v1beta1        # policy/v1 since Kubernetes 1.21
kind: PodDisruptionBudget
```

## Instead
Use the replacement version. A chart for both old and new clusters checks the cluster:
`{{ if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}`. Deploy it before the cluster is upgraded.

## Fix safety
The new version may have other fields and other defaults: an empty selector of a PodDisruptionBudget selects no pod in
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
from seatrial.model.resource import Ref, group_of, version_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import after_failure, first_named, helm_says

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
    users = [user for missing, _ in gone for user in missing.users]
    written = [resource for missing, _ in gone for resource in missing.written]
    return found(
        RULE,
        moment,
        objects=users,
        damage="failed-deploy",
        message=f"{moment.act} fails: {first_named(users)} {'uses' if len(users) == 1 else 'use'} {_versions(gone)}",
        details=(
            *(_since(missing.api_version, missing.kind, removal) for missing, removal in gone),
            helm_says(moment.ended),
            "There is no CRD to install: the kind is built in, and this version was removed.",
            _when(moment, written),
            after_failure(moment),
        ),
        way_out=(_of_the_past(moment),)
        if _is_past(moment)
        else dict.fromkeys(_instead(missing.users[0], removal) for missing, removal in gone),
        places=[resource.place("apiVersion") for resource in written],
        confirm=f"kubectl explain {gone[0][0].kind.lower()} --api-version={gone[0][0].api_version}  # no such version",
    )


def _when(moment: Moment, written: list[Resource]) -> str:
    """Why Helm fails late, or before everything else."""
    crds = moment.release.crds if moment.release else ()
    if written and all(resource in crds for resource in written):
        return "Helm installs crds/ before everything else, so it creates nothing."
    if written and all(hooks.is_hook(resource.body) for resource in written):
        return (
            "Helm resolves a hook's kind only when it runs the hook, so everything before it has already been created."
        )
    return ""


def _versions(gone: list[Removed]) -> str:
    first, *others = dict.fromkeys(missing.api_version for missing, _ in gone)
    return "removed API versions" if others else f"the removed {first}"


def _since(api_version: str, kind: str, removal: Removal) -> str:
    return f"Kubernetes {removal.minor} removes {kind} in {api_version}."


def _instead(ref: Ref, removal: Removal) -> str:
    if not removal.replacement:
        return f"Remove {ref}: there is no replacement."
    return f"Use {removal.replacement} for {ref}, and adapt the fields that differ there."


def _is_past(moment: Moment) -> bool:
    """Whether only a revision that is replaced later uses the versions: its chart is published and stays as it is."""
    later = moment.rehearsal.steps[moment.index + 1 :]
    replaced = any(ended.action == "upgrade" and ended.source != moment.ended.source for ended in later)
    installs = [ended for ended in later if ended.action == "install" and ended.source != moment.ended.source]
    return replaced and any(ended.outcome == "ok" for ended in installs)


def _of_the_past(moment: Moment) -> str:
    ended = moment.ended
    return (
        f"Pass a later revision with --from: this Kubernetes cannot install {ended.source}. If a cluster has the "
        f"release from before its own upgrade, correct Helm's record first: helm mapkubeapis {ended.release} "
        "(a plugin)."
    )


def _going(moment: Moment, release: Release) -> Iterator[Finding]:
    """Resources in versions that a later Kubernetes no longer serves."""
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
        message=f"{resource.ref} uses {api_version}, which Kubernetes {removal.minor} does not serve: helm upgrade "
        "fails there",
        details=(
            _since(api_version, resource.ref.kind, removal),
            "If the cluster is upgraded first, even an upgrade to a fixed chart fails, because Helm also resolves the "
            'manifest of the previous revision: "unable to build kubernetes objects from current release manifest".',
        ),
        way_out=(_instead(resource.ref, removal),),
        places=[resource.place("apiVersion")],
        confirm="kubectl version  # and: kubectl get --raw /metrics | grep apiserver_requested_deprecated_apis",
    )


RULE = Rule("ST105", "removed-api-version", check, timeless=True)
