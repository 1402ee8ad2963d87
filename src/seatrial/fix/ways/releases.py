"""Ways out of the order of releases, and of what engines and their versions do differently."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way


def _versions(about: About) -> str:
    named = "Change {object} at {at} so that both versions accept it" if about.ref else "Change what the error names"
    return f"{named}, or pin the version of Helm in every pipeline."


WAYS: dict[str, Way] = {
    "cross-release-order": {
        "": "Deploy the release that has {object} ({there}) first, and wait for it: helm install --wait.",
        "argocd": "Sync the Application that has {object} ({there}) first, or give the later one syncPolicy.retry "
        "with a high limit.",
        "flux": "Name what contains {object} ({there}) in dependsOn at {at}. A HelmRelease waits for its objects; a "
        "Kustomization needs wait: true for that.",
    },
    "render-differs-by-engine": "Render {object} by a value that the user sets ({at}), not by .Capabilities, lookup or "
    ".Release.IsUpgrade. Or put its CRD into crds/.",
    "helm-version-differs": _versions,
    "engine-bug": "Deploy {object} with a version that has the fix.",
    "object-of-two-owners": {
        "": "Keep {object} in one of them ({at} or {there}), and let the other depend on that.",
        "argocd": "Keep {object} in one Application ({at} or {there}). Before you remove it from the other, add "
        "argocd.argoproj.io/sync-options: Prune=false to it in both, and sync.",
        "flux": "Keep {object} in one of them ({at} or {there}), and name that in dependsOn of the other. Before you "
        "remove it from a Kustomization, add kustomize.toolkit.fluxcd.io/prune: disabled to it in both.",
    },
}
