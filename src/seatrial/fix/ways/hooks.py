"""Ways out of what Helm does to hooks."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way

JOBS = ("Job", "Pod")


def _own_copy(about: About) -> str:
    if len(about.finding.objects) > 1 and about.finding.objects[1].kind == "PersistentVolumeClaim":
        return "Give {object} a volume of its own at {at}: an emptyDir, or a PVC that is a hook with a lower weight."
    return (
        "Give {object} its own copy of {other} under another name, a hook for the same events with a lower weight, and "
        "name it at {at}. Do not make {other} itself a hook: upgrades would delete it."
    )


def _awaited_by_pods(about: About) -> str:
    if len(about.finding.objects) > 1 and about.finding.objects[1].kind in JOBS:
        return (
            "Make {other} a regular Job with another name for each revision (remove the hook annotations at {at}); the "
            "pods of {object} can wait for that."
        )
    return "Make {other} a regular resource: remove its hook annotations at {at}."


WAYS: dict[str, Way] = {
    "release-to-hook-flip": "Keep {object} a regular resource (remove the hook annotations at {at}), or add "
    "helm.sh/resource-policy: keep to it in the same upgrade.",
    "hook-to-release-flip": "Give {object} another name at {at}, or upgrade once with --take-ownership.",
    "before-hook-creation-deletes-live-resource": "Make {object} a regular resource: remove its hook annotations at "
    "{at}. A release that is installed must adopt it once: helm upgrade --take-ownership.",
    "pre-hook-needs-release-serviceaccount": "Give {object} its own ServiceAccount, a hook for the same events with a "
    "lower weight, and name it at {at}. Do not make {other} a hook: every upgrade would delete it.",
    "pre-hook-needs-release-secret-or-configmap": _own_copy,
    "pre-hook-needs-release-priorityclass": "Remove priorityClassName from {object} ({at}), or install {other} with "
    "the platform.",
    "pre-hook-needs-release-database": "Run {object} as post-install,pre-upgrade, or install {other} ({there}) in a "
    "release of its own before.",
    "pre-upgrade-hook-needs-newly-added-resource": "Give {object} its own copy of {other} under another name, a "
    "pre-upgrade hook with a lower weight. Or add {other} in one revision, and use it at {at} from the next one on.",
    "same-weight-hook-kind-order": "Give {other} a lower helm.sh/hook-weight than {object}, at {at}.",
    "hook-succeeded-deletes-needed-resource": "Make {object} a regular resource: remove its hook annotations at {at}, "
    "and give hooks that need it a copy. Removing only hook-succeeded is not enough: upgrades would still recreate it.",
    "hook-resource-already-exists": (
        "Set helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded on {object} at {at}.",
        "If a run is stuck now: kubectl delete {kubectl}",
    ),
    "hook-install-only-not-updated": "Make {object} a regular resource: remove its hook annotations at {at}. If it "
    "exists, upgrade once with --take-ownership; keep a generated value with lookup.",
    "hook-annotation-misplaced-or-misspelled": "Correct the annotation of {object} at {at}: known events only, under "
    "metadata.annotations of the object itself, a weight as a quoted integer.",
    "hook-pod-matches-service-selector": "Change a label of the pod of {object} at {at} that {other} selects by, such "
    "as app.kubernetes.io/component.",
    "hook-recreate-races-finalizer": "Set helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded on {object} "
    "({at}) and on the hook that uses it; or make it a regular resource, or an emptyDir.",
    "hook-orphan-on-uninstall": "Add hook-succeeded to helm.sh/hook-delete-policy of {object} at {at} if only hooks "
    "need it; otherwise make it a regular resource, or delete it in a pre-delete Job.",
    "networkpolicy-blocks-hook": "Give the pod of {object} a label that {other} allows, or allow its labels there "
    "({at}). A policy for a pre-install hook must be a hook itself, with a lower weight.",
    "dual-identity-hook-copy": "Give the hook copy of {object} at {at} another name, and use that in the hooks.",
    "post-hook-wait-deadlock": _awaited_by_pods,
    "pre-delete-hook-needs-release-resource": (
        "Give {object} its own copy of {other}, a pre-delete hook with a lower weight, and name it at {at}.",
        "If the release is stuck: helm uninstall {release} -n {namespace} --no-hooks",
    ),
    "pre-delete-hook-blocks-uninstall": (
        "Let {object} ({at}) succeed in every case: command || true, activeDeadlineSeconds, and before-hook-creation "
        "in its delete policy.",
        "If the release is stuck: helm uninstall {release} -n {namespace} --no-hooks",
    ),
    "post-delete-hook-cannot-run": "Run {object} as pre-delete, while {other} exists; or give it a copy, a post-delete "
    "hook with a lower weight, and name it at {at}.",
    "hook-job-missing-imagepullsecrets": "Add the imagePullSecrets of the app's pods to {object} at {at}.",
    "hook-job-missing-rbac": "Grant the ServiceAccount of {object} every verb that the command needs, in a role and a "
    "binding ({at}). If {object} is a hook, make both hooks of the same event with a lower weight.",
    "job-script-fault": "Correct the script of {object} at {at}: set variables before they are compared, give every "
    "loop an end, and begin with set -eu.",
    "hook-credentials-deleted-before-job": "Use the same helm.sh/hook-delete-policy on {object} and on {others} "
    "({at}), or only before-hook-creation on what the Job runs with.",
    "null-means-no-limit": "Give the limit of {object} at {at} a number, or leave the line out if the value is empty: "
    "{{{{- with }}}} around it.",
    "hooks-one-after-another": "Use one hook Job instead of {object} and its like ({at}): with the list in a "
    "ConfigMap, or with completionMode: Indexed and parallelism.",
}
