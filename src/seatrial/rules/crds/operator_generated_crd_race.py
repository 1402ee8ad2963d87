"""A custom resource is of a kind whose CRD an operator generates, and Helm resolves the kind before the CRD exists.

## What happens
Some CRDs are not in any file. Gatekeeper generates one for each ConstraintTemplate, Crossplane for each
CompositeResourceDefinition and each Provider that it installs, OLM for what a Subscription installs. Cilium's operator
and Crossplane create their own CRDs when they start; their charts do not contain them. A chart that contains the
template, or the operator, and a custom resource of the new kind fails on every new cluster. Helm resolves the kind of
every resource before it sends the first one, so the operator has not seen the template yet, and Helm reports `no
matches for kind "K8sRequiredLabels"`. Neither another order nor `--wait` changes that.

`kubectl apply` fails too, but applies everything else. The second run finds the kind if the operator was fast enough; a
pipeline that runs the command once fails. Pulumi retries for 63 seconds.

If the custom resource is a post-install hook, Helm resolves its kind when it runs the hook. That is still a race: Helm
does not wait until the operator has created the CRD. On clusters that already have the CRD everything works, which
hides the problem.

The CRDs that a Subscription or a Provider installs are in its package, which seatrial does not read. It knows those
of well-known packages of OLM. For others, a custom resource whose group has the name of the package is reported as
`may`.

## Example
```yaml
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
spec:
  crd: {spec: {names: {kind: K8sRequiredLabels}}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
```

## Instead
Two releases: install the templates; wait for the CRD (`kubectl wait --for=condition=Established
crd/k8srequiredlabels.constraints.gatekeeper.sh`, after it has appeared); then install what uses it. With Argo CD, use a
later wave and `SkipDryRunOnMissingResource=true`; with Flux, a separate Kustomization; with kubectl, two commands and
the wait between them.

## Fix safety
Moving the custom resources out of the release deletes them with its next upgrade, unless they have
`helm.sh/resource-policy: keep` in the revision before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import look_at_operation
from seatrial.evidence.argocd.unserved import Unknown, generator_of, unknown_kinds
from seatrial.evidence.described import maker
from seatrial.evidence.flux.reconciliations import failed_kustomization, failed_release
from seatrial.evidence.history import newest
from seatrial.evidence.hooks.runs import helm_act
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.unserved import (
    Unserved,
    defined_by,
    definition_in_cluster,
    generated_by,
    unserved,
)
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig, group_of
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.phrases.outcome import after_failure, first_named

# The field that names the package whose CRDs an operator installs.
PACKAGES: dict[tuple[str, str], tuple[str, ...]] = {
    ("operators.coreos.com", "Subscription"): ("spec", "name"),
    ("pkg.crossplane.io", "Provider"): ("spec", "package"),
}
NO_NAMES = frozenset(
    (
        *("app", "co", "com", "community", "contrib", "crossplane", "dev", "family", "io", "k8s", "net", "openshift"),
        *("operator", "operators", "org", "provider", "redhat", "sh", "upbound", "x"),
    )
)
"""Generic words in the names of packages and groups."""
RESOLVED_BY = {
    "kubectl": "kubectl resolves the kind of every object before it applies the first one, {it} included, and "
    "then applies all others.",
    "Pulumi": "Pulumi creates resources without dependencies concurrently, and retries a creation whose kind is "
    "missing for 63 seconds. It does not wait for the CRD that an operator generates, not even with dependsOn.",
}

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
RETRIES = "Every retry fails the same way."
EXISTING = "On a cluster where {it} already exists, the kind is served, which hides the problem."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for step, _, kinds in unserved(rehearsal, case):
        made = [(missing, generated_by(case, missing)) for missing in kinds]
        early = [(missing, generator) for missing, generator in made if generator is not None]
        if early:
            yield _finding(Moment(rehearsal, case, step), *zip(*early, strict=True))
            return
    for unknown in unknown_kinds(rehearsal, case):
        if generator := generator_of(case, unknown):
            yield _of_sync(rehearsal, case, unknown, generator)
    deployed = newest(rehearsal, case)
    if deployed is not None and deployed[0].ended.outcome == "ok":
        yield from _packaged(*deployed)


def _finding(moment: Moment, kinds: tuple[Unserved, ...], generators: tuple[Resource, ...]) -> Finding:
    ended = moment.ended
    users = [user for missing in kinds for user in missing.users]
    who = "Helm" if failed_release(ended, users[0]) else moment.speaker
    written = [resource for missing in kinds for resource in missing.written]
    templates = sorted({generator.ref for generator in generators})
    crd, it = next(_crds(moment, kinds), ""), _word(templates[0])
    return found(
        RULE,
        moment,
        objects=[*templates, *users],
        damage="failed-deploy",
        message=f"{_fails(moment, users[0])}: {first_named(users)} needs a CRD generated later",
        details=(
            _source(moment.case, templates[0], first_named(templates)),
            (RESOLVED_BY.get(who) or _why(written, ended, users[0])).replace("{it}", it),
            moment.says,
            f"{crd} is created after {who} has failed." if crd else "",
            RETRIES if failed_kustomization(ended, users[0]) else after_failure(moment),
            EXISTING.replace("{it}", it),
        ),
        places=[
            *(resource.place("kind") for resource in written),
            *(generator.place("metadata", "name") for generator in generators),
        ],
        confirm=f"kubectl api-resources --api-group={group_of(kinds[0].api_version)}  # before the {ended.action}",
    )


def _of_sync(rehearsal: Rehearsal, case: Case, unknown: Unknown, generator: Resource) -> Finding:
    """Argo CD resolves all kinds before its first wave, or with SkipDryRunOnMissingResource in the object's wave."""
    operation, users = unknown.operation, [resource.ref for resource in unknown.resources]
    when = "in its wave" if unknown.in_its_wave else "before its first wave"
    it = _word(generator.ref)
    return found(
        RULE,
        Moment(rehearsal, case, unknown.step),
        objects=[generator.ref, *users],
        damage="failed-deploy",
        message=f"the sync of {operation.app} fails: {first_named(users)} needs a CRD generated later",
        details=(
            f"{_source(case, generator.ref, str(generator.ref))} The sync fails {when}.",
            f"Argo CD resolves all kinds before the first wave, so nothing is applied, not even {it}. A later "
            "wave has no effect without SkipDryRunOnMissingResource=true on the object."
            if not unknown.in_its_wave
            else "",
            f'Argo CD reports: "{operation.message}"',
            EXISTING.replace("{it}", it),
        ),
        places=[*(r.place("kind") for r in unknown.resources), generator.place("metadata", "name")],
        confirm=look_at_operation(operation),
    )


def _source(case: Case, ref: Ref, named: str) -> str:
    if ref.kind in WORKLOADS:
        return f"{maker(case, ref)} creates the CRD by itself when {named} starts."
    if ref.kind == "Subscription":
        return f"OLM creates the CRD when it installs the package of {named}."
    return f"{maker(case, ref)} generates the CRD from {named}."


def _word(ref: Ref) -> str:
    if ref.kind == "Subscription":
        return "the Subscription"
    return "the operator" if ref.kind in WORKLOADS else "the template"


def _crds(moment: Moment, kinds: tuple[Unserved, ...]) -> Iterator[str]:
    for missing in kinds:
        if crd := definition_in_cluster(moment, missing):
            yield f"CustomResourceDefinition/{dig(crd, 'metadata', 'name')}"


def _fails(moment: Moment, user: Ref) -> str:
    own = failed_kustomization(moment.ended, user)
    return f"{own.object} keeps failing" if own else f"{helm_act(moment, user)} fails"


def _why(written: list[Resource], ended: StepResult, user: Ref) -> str:
    if failed_kustomization(ended, user):
        return (
            "Flux dry-runs every object of the Kustomization before it applies the first one, {it} included; "
            "only CRDs, Namespaces, ClusterRoles and classes are applied before."
        )
    if written and all(hooks.is_hook(resource.body) for resource in written):
        return "Helm resolves a hook's kind when it runs the hook, and does not wait for operators before that."
    return "Helm resolves the kind of every resource in the manifest before it sends the first one, {it} included."


def _packaged(moment: Moment, release: Release) -> Iterator[Finding]:
    """Custom resources whose CRD probably comes with a package that the same release installs."""
    packages = [(r, words) for r in release.resources if (words := _words_of_package(r))]
    for resource in release.resources:
        missing = Unserved(resource.ref.kind, str(resource.body.get("apiVersion", "")), (resource.ref,), (resource,))
        brings = next((p for p, words in packages if words & _words(resource.ref.group)), None)
        own = (resource.ref.group, resource.ref.kind) in PACKAGES
        known = defined_by(moment.case.all_resources(), missing) or generated_by(moment.case, missing)
        if brings is not None and not own and known is None:
            yield _with_package(moment, resource, brings)


def _words_of_package(resource: Resource) -> frozenset[str]:
    path = PACKAGES.get((resource.ref.group, resource.ref.kind))
    name = str(dig(resource.body, *path) or "") if path else ""
    return _words(name.rpartition("/")[2].partition(":")[0].partition("@")[0])


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name.lower())) - NO_NAMES - {""}


def _with_package(moment: Moment, resource: Resource, package: Resource) -> Finding:
    name = dig(package.body, *PACKAGES[package.ref.group, package.ref.kind])
    return found(
        RULE,
        moment,
        objects=[package.ref, resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"helm install fails if the CRD of {resource.ref} comes with {package.ref}",
        details=(
            f"{package.ref} of the same chart installs the package {name}, which creates its CRDs minutes later. On "
            "a cluster without "
            f'them Helm fails first: "no matches for kind "{resource.ref.kind}"".',
            "The CRDs of a package cannot be known here: the kind is assumed to be served.",
        ),
        places=[resource.place("kind"), package.place("metadata", "name")],
        confirm=f"kubectl api-resources --api-group={resource.ref.group}  # before the first install",
    )


RULE = Rule("ST106", "operator-generated-crd-race", check)
