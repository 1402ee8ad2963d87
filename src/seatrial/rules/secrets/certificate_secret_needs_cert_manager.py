"""Pods mount the Secret of a Certificate, which exists only after cert-manager has issued the Certificate.

## What happens
cert-manager creates the Secret that a Certificate names once its issuer is ready. Until then a pod that mounts it stays
in `ContainerCreating`: `MountVolume.SetUp failed for volume "..." : secret "..." not found`. The kubelet retries, and
usually that is enough; nothing is reported then. It is a deadlock if Helm waits for the pod and creates the
Certificate, its issuer or cert-manager only afterwards: the Certificate is a post-install hook and Helm runs with
`--wait`; or a pre-install hook mounts the Secret, and the Certificate or cert-manager is a regular resource of the
release.

The error names a Secret, so users look for a missing Secret. If cert-manager is not part of the trial,
seatrial assumes that it runs and lists it as a prerequisite: a cluster without it shows the same error forever.

## Example
```yaml
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  annotations: {helm.sh/hook: post-install,post-upgrade}    # so that cert-manager's webhook is up
spec: {secretName: hall-tls}                                # and a Deployment mounts it
```

## Instead
Make the Certificate and the issuer regular resources, and install cert-manager first, in its own release, with `--wait`
(`helm install cert-manager ... --wait`).

## Fix safety
For existing releases, a Certificate that was a hook and becomes a regular resource is a hook-to-release flip: adopt it
first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.described import maker, products
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import said_of
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.produced import awaited, finding_about

CERTIFICATE = "Certificate"
INSTEAD = "Make {} and its issuer regular resources, and install cert-manager first, in its own release with --wait."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.producer.ref.kind == CERTIFICATE:
            yield finding_about(RULE, rehearsal, case, one, INSTEAD.format(one.producer.ref))
    if rehearsal.engine.name == "kubectl":
        yield from _never_issued(rehearsal, case)


def _never_issued(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Pods that wait forever behind an apply that succeeds: kubectl waits for none, and the operator is absent."""
    absent = {one.brought_by for one in case.absent if one.operator}
    sources = [r for r in case.all_resources() if r.ref.kind == CERTIFICATE and maker(case, r.ref) in absent]
    issued = {product: source for source in sources for product in products(case, source)}
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case) if issued else ():
        for user in moment.release.resources if moment.release and moment.ended.outcome == "ok" else ():
            needed = (n for n in needs_of(user) if n.object in issued and not n.optional and not n.guess)
            need = next(needed, None)
            if need is not None and user.ref not in reported and moment.live(need.object) is None:
                reported.add(user.ref)
                yield _waiting(moment, user, need, issued[need.object])


def _waiting(moment: Moment, user: Resource, need: Need, source: Resource) -> Finding:
    said = said_of(moment, need.object)
    return found(
        RULE,
        moment,
        objects=[user.ref, need.object],
        damage="failed-deploy",
        message=f"{user.ref} never starts after {moment.act}: no cert-manager issues {need.object}",
        details=(
            f"{need.object} is created by cert-manager from {source.ref}, and cert-manager is not in the cluster.",
            f'{said.object} reports: "{said.message}".' if said else "",
            f"{moment.speaker} waits for no pod and reports success.",
        ),
        way_out=(f"Install cert-manager before {user.ref}, and wait until its Deployments are available.",),
        places=[user.place(*need.field), source.place("metadata", "name")],
        evidence=[said] if said else [],
        confirm=f"kubectl get {in_kubectl(source.ref)}  # never becomes ready",
    )


RULE = Rule("ST605", "certificate-secret-needs-cert-manager", check)
