"""Pods mount the Secret of a Certificate, which comes only when cert-manager runs and the Certificate is there.

## What happens
cert-manager makes the Secret that a Certificate names once its issuer is ready. Until then a pod that mounts it stays
in `ContainerCreating`: `MountVolume.SetUp failed for volume "..." : secret "..." not found`. The kubelet tries again,
and most often that is all: nothing is reported then. It is a deadlock where Helm waits for the pod and would make the
Certificate, its issuer or cert-manager only afterwards: the Certificate is a post-install hook and Helm is told to
`--wait`; or a pre-install hook mounts the Secret, and the Certificate or cert-manager are plain objects of the release.

The words name a Secret, and one looks for who forgot it. Nobody did. Where cert-manager is not part of the releases at
hand it is taken to run, and named as a prerequisite: a cluster without it shows the same words for ever.

## Example
```yaml
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  annotations: {helm.sh/hook: post-install,post-upgrade}    # so that cert-manager's webhook is up
spec: {secretName: hall-tls}                                # and a Deployment mounts it
```

## Instead
Certificate and issuer as plain objects, cert-manager in a release of its own that is installed first and waited for
(`helm install cert-manager ... --wait`).

## Fix safety
A Certificate that was a hook and becomes plain is a hook-to-release flip for those who have it: adopt it first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.produced import awaited, told_of

CERTIFICATE = "Certificate"
INSTEAD = "Make the Certificate and its issuer plain objects, and install cert-manager before, in a release of its own."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.producer.ref.kind == CERTIFICATE:
            yield told_of(RULE, rehearsal, case, one, INSTEAD)


RULE = Rule("ST605", "certificate-secret-needs-cert-manager", check)
