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

from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.produced import awaited, finding_about

CERTIFICATE = "Certificate"
INSTEAD = "Make {} and its issuer regular resources, and install cert-manager first, in its own release with --wait."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.producer.ref.kind == CERTIFICATE:
            yield finding_about(RULE, rehearsal, case, one, INSTEAD.format(one.producer.ref))


RULE = Rule("ST605", "certificate-secret-needs-cert-manager", check)
