"""Ways out of the order in which Argo CD syncs, and of waits that never end."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way

COPIED = ("ConfigMap", "Secret", "ServiceAccount")


def _never_healthy(about: About) -> str:
    if about.engine == "flux" and about.is_about("HelmRelease"):
        return "Let {others} ({at}) become ready, or move it into a release that nothing depends on."
    if about.engine == "flux":
        return (
            "Let {others} ({at}) become ready, or move it into a Kustomization that nothing depends on. Or replace "
            "wait: true of {object} by healthChecks for what matters."
        )
    return (
        "Let {object} become healthy, or move it into the last wave or an Application of its own ({at}). Terminate the "
        "running operation first: argocd app terminate-op APP."
    )


def _too_early(about: About) -> str:
    words = "Make {object} a Sync hook in a wave after {other} ({at})"
    if len(about.finding.objects) > 1 and about.finding.objects[1].kind not in COPIED:
        return f"{words}."
    return f"{words}; or give it a copy of {{other}} in its own phase, with a lower wave."


def _after_sync(about: About) -> str:
    if len(about.finding.objects) > 1 and about.finding.objects[1].kind == "Job":
        return "Make {other} a Sync hook (argocd.argoproj.io/hook: Sync) in a wave before {object}, at {at}."
    return "Make {other} a regular resource: remove its hook annotations at {at}."


WAYS: dict[str, Way] = {
    "argocd-health-check-always-healthy": "Return Progressing until it is ready, at {at}: seatrial generate health.",
    "argocd-health-check-fails-without-status": "Ask for each level before reading it, at {at}, or take the check that "
    "seatrial generate health writes.",
    "argocd-health-check-too-broad": "Write one key for each kind that the script is about, at {at}.",
    "wave-blocked-by-never-healthy": _never_healthy,
    "argocd-helm-hook-recreated-every-sync": "Make {object} a regular resource: remove its hook annotations at {at}. A "
    "sync wave can order it, and a PreSync Job that needs it gets a copy.",
    "random-secret-rotates-on-resync": {
        "": "Take the value of {object} at {at} from .Values with required, or from an existing Secret. lookup does "
        "not help: it finds nothing here. If the chart cannot change: ignoreDifferences for /data, with "
        "RespectIgnoreDifferences=true.",
        "pulumi": "Take the value of {object} at {at} from .Values or from an existing Secret; or deploy the chart "
        "with "
        'helm.v3.Release, or set ignoreChanges: ["data", "stringData"] on it.',
    },
    "pvc-wffc-wave-deadlock": "Put {object} into the wave of its first consumer, at {at}.",
    "presync-needs-sync-phase-resource": _too_early,
    "argocd-postsync-health-deadlock": _after_sync,
    "argocd-app-of-apps-no-health": "Add the health check for Applications to argocd-cm "
    "(resource.customizations.health.argoproj.io_Application); or give {object} ({at}) syncPolicy.retry with a high "
    "limit.",
    "namespace-before-content": {
        "": "Create {object} before the release, or let the hook at {at} run in the namespace of the release.",
        "kubectl": "Put {object} into a file that sorts first (00-namespace.yaml), or use a kustomization, which "
        "sorts it first. What needs it is at {at}.",
        "argocd": "Add {object} to the Application of {at}, or sync the one that has it first.",
        "flux": "Put {object} into the same Kustomization as {at}, or into one that it depends on.",
    },
    "argocd-dryrun-missing-crd": "Sync the Application with the CRD first. Or add argocd.argoproj.io/sync-options: "
    "SkipDryRunOnMissingResource=true to {object} at {at}, in a wave after what brings the CRD.",
    "argocd-hook-skipped": "Let a regular resource change together with {object} ({at}), such as an image that both "
    "use; or run a full sync by hand.",
    "argocd-install-only-hook-runs-every-sync": "Let {object} ({at}) succeed when it runs again: kubectl create ... "
    "--dry-run=client -o yaml | kubectl apply -f -. Or make it a regular Job, which runs once.",
    "argocd-unsupported-helm-hook": "Add Argo CD's own annotation to {object} at {at}: argocd.argoproj.io/hook: "
    "SyncFail, PreSync or PostDelete.",
    "mixed-helm-and-argocd-hook-annotations": "Use the same phase in both annotations of {object} at {at}: PreSync is "
    "pre-install and pre-upgrade, PostSync is post-install and post-upgrade.",
    "hook-job-ttl-zero-lost-result": "Remove ttlSecondsAfterFinished from {object} at {at}, or set it to 3600.",
    "post-hook-hits-old-replicas": "Let {object} ({at}) retry until {other} answers with the new version, and give it "
    "activeDeadlineSeconds.",
    "argocd-excluded-kind-dropped": "Remove the kind of {object} from resource.exclusions in argocd-cm, or let a Job "
    "create the object ({at}).",
    "argocd-source-cannot-be-rendered": "Correct the source of {object} at {at}: path, chart and version must exist "
    "and render.",
    "argocd-applications-make-each-other": "Let one root Application create the others: take {object} out of the "
    "folder of {others} ({at}). Before that remove its finalizers, or it is pruned with all its objects.",
}
