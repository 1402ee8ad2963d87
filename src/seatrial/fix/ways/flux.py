"""Ways out of the order in which Flux reconciles."""

from __future__ import annotations

from seatrial.fix.ways.about import Way

WAYS: dict[str, Way] = {
    "flux-dependson-without-wait": "Set wait: true at {at}, on what {object} depends on.",
    "flux-retries-exhausted": "Name the HelmRelease that must be ready first in dependsOn of {object} ({at}), and set "
    "install.remediation.retries: -1 and upgrade.remediation.retries: 3.",
    "flux-cr-with-helmrelease-in-one-kustomization": "Move the custom resource at {at} into a Kustomization of its "
    "own, with dependsOn: [{{name: {name}}}], and set wait: true on {object}.",
    "flux-dependson-of-another-kind": "Name an object of the same kind in dependsOn of {object} at {at}: the "
    "Kustomization that contains the HelmRelease, with wait: true.",
}
