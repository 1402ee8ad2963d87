"""Ways out of webhooks and APIServices that do not answer."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way


def _not_converted(about: About) -> str:
    if about.finding.removes:
        return "Delete the custom resources of {object} before its conversion backend is removed ({at})."
    return (
        "Use two releases: first the conversion backend, then {object}. Or use the storage version in "
        "manifests: then nothing is converted."
    )


WAYS: dict[str, Way] = {
    "webhook-not-ready-race": {
        "": "Put what {object} is called for ({at}) into a release that is installed after this one with --wait; or "
        "make it a post-install hook after a hook Job that waits until the webhook answers.",
        "argocd": "Put what {object} is called for ({at}) into a later wave than the Deployment behind the webhook.",
        "flux": "Put what {object} is called for ({at}) into a Kustomization or HelmRelease with dependsOn on the one "
        "that has the webhook, and set wait: true there.",
        "kubectl": "Apply what {object} is called for ({at}) with a second command, after kubectl rollout status of "
        "the Deployment behind the webhook.",
        "pulumi": "Let what {object} is called for ({at}) depend on the Deployment behind the webhook (dependsOn).",
    },
    "webhook-tls-not-injected": "Leave caBundle of {object} out, let its Job run after upgrades too, and create what "
    "the webhook is called for in a later release or after that Job.",
    "webhook-fail-policy-self-block": "Exclude the backend from {object} at {at}: a namespaceSelector on "
    "kubernetes.io/metadata.name with NotIn its namespace and kube-system.",
    "webhook-bootstraps-through-itself": "Exclude {other} or its namespace from {object} at {at} (namespaceSelector or "
    "objectSelector), or let the backend create its certificate itself.",
    "webhook-backend-rolled-in-same-upgrade": "Keep a pod behind {object} running: RollingUpdate with maxUnavailable: "
    "0, or two replicas ({at}). Or upgrade the objects in a release of their own, afterwards.",
    "stale-webhook-after-uninstall": "Make {object} a regular resource, or delete it in a hook Job of the uninstall.",
    "mutation-webhook-not-registered-yet": {
        "": "Install the injector in a release of its own, with --wait, before {object} ({at}).",
        "flux": "Move the injector into a Kustomization or HelmRelease of its own, with wait: true, and let that of "
        "{object} ({at}) depend on it.",
    },
    "conversion-webhook-order": _not_converted,
    "apiservice-unavailable-breaks-discovery": {
        "": "Make {object} a regular resource that names a Service and a port of the release ({at}): Helm then "
        "deletes it before its backend.",
        "kubectl": "Delete {object} ({at}) before its namespace and its Service.",
    },
}
