"""An object is of a kind that an operator makes of another object, and Helm looks for it before the operator could.

## What happens
Some definitions are nobody's file. Gatekeeper makes one of each ConstraintTemplate, Crossplane of each
CompositeResourceDefinition and of each Provider that it installs, OLM of what a Subscription brings. A chart that
holds the template and an object of the new kind fails on every fresh cluster: Helm asks for the kind of every object
before it sends the first one, so the operator has had nothing to make a definition of: `no matches for kind
"K8sRequiredLabels"`. Neither order nor `--wait` changes that.

`kubectl apply` does the same and applies all else, so the second try finds the kind where the operator has been fast
enough, and a pipeline that gives the command once does not. Pulumi tries for 63 seconds.

As a post-install hook the object is looked up when its turn comes. The operator has then had a moment, and no more:
Helm waits for no template. On clusters where the template has been there for long, all of it works, which hides it.

Which kinds a Subscription or a Provider brings is in its package, and cannot be known here: an object whose group is
named like the package is a `may`.

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
Two releases: the templates first; then wait for the definition (`kubectl wait --for=condition=Established
crd/k8srequiredlabels.constraints.gatekeeper.sh`, after it has appeared); then what uses it. With Argo CD a later wave
and `SkipDryRunOnMissingResource=true`, with Flux a Kustomization of its own, with kubectl two commands and the wait
between them.

## Fix safety
Taking the objects out of the release deletes them with its next upgrade, unless they carry
`helm.sh/resource-policy: keep` in the revision before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import look_at_operation
from seatrial.evidence.argocd.unserved import Unknown, generator_of, unknown_kinds
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
from seatrial.kinds.operators.generated_crds import GENERATORS
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig, group_of
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.phrases.outcome import after_failure, named, named_is

# Where an object names the package that an operator installs with all its definitions.
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
"""Words in the names of packages and groups that say nothing."""
LOOKED_UP_BY = {
    "kubectl": "kubectl looks up the kind of every object before it applies the first one, the template included, and "
    "then applies all others.",
    "Pulumi": "Pulumi makes what nothing orders at once, and tries a creation whose kind is not there again for 63 "
    "seconds. It does not wait for what an operator makes of a template, with dependsOn neither.",
}


ALIKE = (
    "It is tried again for ever and fails alike: give the objects a Kustomization of their own, with dependsOn on the "
    "one that has the template, and wait: true there."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    brought = list(case.all_resources())
    for step, _, kinds in unserved(rehearsal, case):
        made = [(missing, generated_by(brought, missing)) for missing in kinds]
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
    definition = next(_definitions(moment, kinds), "")
    return found(
        RULE,
        moment,
        objects=[*templates, *users],
        damage="failed-deploy",
        message=f"{_fails(moment, users[0])}: {named_is(users)} of a kind that {_maker(templates[0])} "
        f"makes of {named(templates)}, and {who} looks for it before that is done",
        details=(
            moment.says,
            LOOKED_UP_BY.get(who) or _why(written, ended, users[0]),
            f"{definition} was made when {who} had failed." if definition else "",
            ALIKE if failed_kustomization(ended, users[0]) else after_failure(moment),
            "On a cluster where the template has been for long, the kind is there: that hides it.",
        ),
        places=[
            *(resource.place("kind") for resource in written),
            *(generator.place("metadata", "name") for generator in generators),
        ],
        confirm=f"kubectl api-resources --api-group={group_of(kinds[0].api_version)}  # before the {ended.action}",
    )


def _of_sync(rehearsal: Rehearsal, case: Case, unknown: Unknown, generator: Resource) -> Finding:
    """Argo CD looks up all kinds before its first wave, or where that is forgiven, in the wave of the object."""
    operation, users = unknown.operation, [resource.ref for resource in unknown.resources]
    when = "in its wave" if unknown.in_its_wave else "before its first wave"
    return found(
        RULE,
        Moment(rehearsal, case, unknown.step),
        objects=[generator.ref, *users],
        damage="failed-deploy",
        message=f"the sync of {operation.app} fails {when}: {named_is(users)} of a kind that {_maker(generator.ref)} "
        f"makes of {generator.ref}, and Argo CD looks for it before that is done",
        details=(
            f'Argo CD says: "{operation.message}"',
            "Kinds are looked up before the first wave, and nothing was applied, the template included: a later wave "
            "changes nothing without SkipDryRunOnMissingResource=true on the object."
            if not unknown.in_its_wave
            else "",
            "On a cluster where the template has been for long, the kind is there: that hides it.",
        ),
        places=[*(r.place("kind") for r in unknown.resources), generator.place("metadata", "name")],
        confirm=look_at_operation(operation),
    )


def _maker(template: Ref) -> str:
    return GENERATORS[template.group, template.kind][0]


def _definitions(moment: Moment, kinds: tuple[Unserved, ...]) -> Iterator[str]:
    for missing in kinds:
        if definition := definition_in_cluster(moment, missing):
            yield f"CustomResourceDefinition/{dig(definition, 'metadata', 'name')}"


def _fails(moment: Moment, user: Ref) -> str:
    own = failed_kustomization(moment.ended, user)
    return f"{own.object} can never be applied as a whole" if own else f"{helm_act(moment, user)} fails"


def _why(written: list[Resource], ended: StepResult, user: Ref) -> str:
    if failed_kustomization(ended, user):
        return (
            "Flux asks the server about every object of the Kustomization before it applies the first one, the "
            "template included; definitions, namespaces, cluster roles and classes alone come before."
        )
    if written and all(hooks.is_hook(resource.body) for resource in written):
        return "Helm looks a hook up when its turn comes, and does not wait until operators have done their work."
    return (
        "Helm looks up the kind of every object of the manifest before it sends the first one, the template included."
    )


def _packaged(moment: Moment, release: Release) -> Iterator[Finding]:
    """Objects whose kinds seem to come with a package that the same release asks for."""
    packages = [(r, words) for r in release.resources if (words := _words_of_package(r))]
    for resource in release.resources:
        missing = Unserved(resource.ref.kind, str(resource.body.get("apiVersion", "")), (resource.ref,), (resource,))
        brings = next((p for p, words in packages if words & _words(resource.ref.group)), None)
        own = (resource.ref.group, resource.ref.kind) in PACKAGES
        if brings is not None and not own and defined_by(moment.case.all_resources(), missing) is None:
            yield _with_package(moment, resource, brings)


def _words_of_package(resource: Resource) -> frozenset[str]:
    path = PACKAGES.get((resource.ref.group, resource.ref.kind))
    name = str(dig(resource.body, *path) or "") if path else ""
    return _words(name.rpartition("/")[2].partition(":")[0].partition("@")[0])


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z0-9]+", name.lower())) - NO_NAMES - {""}


def _with_package(moment: Moment, resource: Resource, package: Resource) -> Finding:
    asked = dig(package.body, *PACKAGES[package.ref.group, package.ref.kind])
    return found(
        RULE,
        moment,
        objects=[package.ref, resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{resource.ref} seems to be of a kind that comes with {package.ref} of the same chart, and Helm looks "
        "for it before that is made",
        details=(
            f"{package.ref} asks for the package {asked}; its definitions come when it was installed, minutes later. "
            f'On a cluster without them Helm fails first: "no matches for kind "{resource.ref.kind}"".',
            "Which definitions a package has cannot be known here: the kind was taken to be there.",
        ),
        places=[resource.place("kind"), package.place("metadata", "name")],
        confirm=f"kubectl api-resources --api-group={resource.ref.group}  # before the first install",
    )


RULE = Rule("ST106", "operator-generated-crd-race", check)
