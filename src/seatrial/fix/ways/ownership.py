"""Ways out of what belongs to several owners or to none, and of what outlives its release."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way


def _held_by_a_finalizer(about: About) -> str:
    if len(about.finding.objects) == 1:
        return "Remove the finalizer from {object} at {at}, unless a controller removes it when the object is deleted."
    table = {
        "": "Put {others} ({at}) into another release and uninstall that first; or add a pre-delete hook Job that "
        "deletes what {object} cleans up, and waits until it is gone.",
        "flux": "Remove {others} ({at}) in one commit and {object} in a later one.",
        "kubectl": "Delete {others} ({at}) first and wait, then the folder with {object}.",
        "pulumi": "Let {others} ({at}) depend on {object} and on its role bindings: Pulumi then deletes them first.",
    }
    return table.get(about.engine) or table[""]


def _forced(about: About) -> str:
    if about.engine == "argocd":
        return "Remove Force=true,Replace=true from the sync options of {object} at {at}: they are meant for Jobs."
    if about.ref is None:
        return "Omit --force (Helm 4: --force-replace): a normal upgrade changes what differs and leaves the rest."
    if about.engine == "kubectl":
        return "Omit --force, and leave the immutable fields of {object} at {at} as they are."
    return "Omit --force: a normal upgrade changes what differs in {object} ({at}) and leaves the rest."


WAYS: dict[str, Way] = {
    "stateful-resource-renamed-or-dropped": {
        "": "Keep the name of {object} ({at}).",
        "helm": "Keep the name of {object} ({at}): set fullnameOverride or existingClaim to the old one. Or add "
        "helm.sh/resource-policy: keep to it one release before you remove it.",
        "argocd": "Keep the name of {object} ({at}), or add argocd.argoproj.io/sync-options: Prune=false to it one "
        "commit before you remove it.",
        "pulumi": "Keep the name of {object} ({at}), or set retainOnDelete: true on it one up before you remove it.",
        "kubectl": "Keep the name of {object} ({at}), or remove the label that --prune selects from the live object "
        "first.",
    },
    "release-pvc-deleted-on-uninstall": "Add helm.sh/resource-policy: keep to {object} at {at}. It counts from the "
    "next upgrade on, which stores it.",
    "pvc-orphan-on-uninstall": "Add helm.sh/resource-policy: keep to the Secret with the password of {object}, or "
    "delete its PVCs with it: persistentVolumeClaimRetentionPolicy.whenDeleted: Delete ({at}).",
    "chart-owned-namespace-deleted": {
        "": "Take {object} ({at}) out of what is deleted, and let its owner create it.",
        "helm": "Leave {object} to --create-namespace or to its owner; in the chart ({at}) add "
        "helm.sh/resource-policy: keep to it, one release before you remove it.",
        "argocd": "Add argocd.argoproj.io/sync-options: Prune=false,Delete=false to {object} at {at}, before you "
        "remove it.",
        "flux": "Add kustomize.toolkit.fluxcd.io/prune: disabled to {object} at {at}, before you remove it.",
        "pulumi": "Set retainOnDelete: true on {object} at {at}, one up before you remove it.",
    },
    "release-namespace-inside-chart": "Remove {object} from the chart ({at}) and install with --create-namespace. In "
    "an installed release add helm.sh/resource-policy: keep to it one release before.",
    "ownership-metadata-conflict": "Put the release name into the name of {object} at {at}, or adopt the one that "
    "exists with --take-ownership.",
    "reinstall-collides-with-leftovers": "Delete {object} before the install: kubectl delete {kubectl}",
    "rollback-readds-removed-resource": "Roll back with Helm 3.22, 4.2 or later. With an older one, delete {object} "
    "first (kubectl delete {kubectl}), or upgrade to the old chart instead.",
    "rollback-incompatible-state": "Let {object} ({at}) only add what the old version tolerates, and remove the rest "
    "in a later release. Otherwise fix the new version instead of rolling back.",
    "pending-release-lock": "Roll back to a revision that worked, or delete {object}.",
    "force-replace-side-effects": _forced,
    "uninstall-operator-before-crs": _held_by_a_finalizer,
}
