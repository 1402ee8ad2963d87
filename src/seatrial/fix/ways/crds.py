"""Ways out of what goes wrong with CRDs and API versions."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way

REMOVES = ("uninstall", "delete", "destroy")


def _beside_its_custom_resource(about: About) -> str:
    if about.engine == "kubectl":
        return (
            "Apply {object} first and wait for it: kubectl apply -f {file} && kubectl wait --for=condition=Established "
            "crd/{name}. Then apply the rest."
        )
    if about.finding.action == "upgrade":
        return "Use two upgrades: the first with the new version in {object} ({at}), the second with {others}."
    return (
        "Move {object} from {at} to crds/, or into a chart that is installed first. In an installed release add "
        "helm.sh/resource-policy: keep to it one revision earlier, or the upgrade deletes it."
    )


def _not_established(about: About) -> str:
    if about.engine == "kubectl":
        return "Wait between the two commands: kubectl wait --for=condition=Established crd/{name}."
    if "crds/" in about.file:
        return "Install with --wait, or with Helm 3 or 4.3.1 and later: these wait until {object} ({at}) is served."
    return (
        "Let {others} come after {object} is served: put the CRD ({at}) into crds/ and install with --wait, or run "
        "kubectl wait --for=condition=Established crd/{name} in a hook Job between the two."
    )


def _not_served(about: About) -> str:
    first = (
        "Use a version of {object} that the cluster serves at {at}, or install the operator that serves this one first."
    )
    if about.engine != "helm":
        return first
    return f"{first} If the kind is optional, render it only if .Capabilities.APIVersions.Has it."


def _deleted(about: About) -> str:
    if about.finding.action in REMOVES:
        return "Add helm.sh/resource-policy: keep to {object} at {at}."
    return (
        "Leave {object} in the templates; or first add helm.sh/resource-policy: keep to it there ({at}), deploy that, "
        "and only then move or remove it."
    )


WAYS: dict[str, Way] = {
    "crd-and-cr-in-same-templates": _beside_its_custom_resource,
    "crds-dir-not-upgraded": "Apply {object} before the upgrade: kubectl apply --server-side -f {file}",
    "crd-established-race": _not_established,
    "third-party-crd-absent": _not_served,
    "removed-api-version": "Use a served version for {object} at {at}.",
    "operator-generated-crd-race": {
        "": "Install {others} in a second release, when the CRD that {object} leads to is established: kubectl wait "
        "--for=condition=Established crd/NAME.",
        "argocd": "Put {others} ({at}) into a later wave than {object}, with argocd.argoproj.io/sync-options: "
        "SkipDryRunOnMissingResource=true.",
        "flux": "Move {others} ({at}) to a Kustomization of its own with dependsOn on the one that has {object}, and "
        "set wait: true there.",
        "kubectl": "Apply {object} first, wait for its CRD (kubectl wait --for=condition=Established crd/NAME), then "
        "apply {others} ({at}).",
        "pulumi": "Put {others} ({at}) into a second program (stack) that runs when the CRD of {object} is "
        "established.",
    },
    "operator-starts-before-its-crds": "Install the CRDs before {object} ({at}): in crds/, in a chart of their own, or "
    "with kubectl apply --server-side -f. If they are installed later, restart it.",
    "crd-moves-crds-to-templates": "Leave {object} in crds/, or upgrade once with --take-ownership.",
    "crd-in-templates-deleted-on-uninstall": _deleted,
    "crd-storedversions-block": "Serve a new version of {object} ({at}) one revision before you store it: then a "
    "rollback finds the version that it needs.",
    "crd-terminating-blocks-recreate": "Delete the custom resources of {object} and wait until they are gone, then "
    "uninstall. Add helm.sh/resource-policy: keep to it ({at}), so that no uninstall deletes it.",
    "helm-unknown-kind-installed-last": {
        "": "Put {other} ({there}) into a release that is installed first, or make it a pre-install hook.",
        "kubectl": "Put {other} ({there}) into a file that sorts before that of {object}.",
    },
    "crd-shared-ownership-downgrade": {
        "": "Let one release own {object}, in the newest version that is needed, and install the others with "
        "--skip-crds.",
        "kubectl": "Apply {object} from one place only, in the newest version that is needed: remove it from {file}.",
    },
    "apply-order-within-phase": {
        "": "Keep the name of {object}. Or add {other} ({at}) in one upgrade, wait until it is ready, and remove "
        "{object} in the next.",
        "argocd": "Keep the name of {object}, or set the sync option PruneLast=true: it is then deleted when {other} "
        "is healthy.",
    },
}
