"""Ways out of changes that the API server rejects, and of volumes that one pod holds."""

from __future__ import annotations

from seatrial.fix.ways.about import Way

WAYS: dict[str, Way] = {
    "immutable-selector-change": "Select the pods of {object} by labels that never change: remove this one from the "
    "selector at {at}, and keep it on the pods. Releases that have it must delete {object} once.",
    "job-immutable-template": "Let the name of {object} change with its template, make it a hook, or keep the version "
    "out of its template ({at}).",
    "statefulset-immutable-field": (
        "Remove the version from the labels of the volumeClaimTemplates of {object} at {at}.",
        "Once, before the upgrade of a release that has it: kubectl delete {kubectl} --cascade=orphan",
    ),
    "pvc-immutable-spec": "Leave {object} as it is at {at}, or add a second PVC under another name and copy the data.",
    "other-immutable-field": "Keep the version out of {object} at {at}, or let its name change with its content.",
    "rwo-rollingupdate-deadlock": "Set maxSurge: 0 and maxUnavailable: 1 (strategy.rollingUpdate) on {object} at {at}, "
    "which means downtime at every update; or use a ReadWriteMany volume. Recreate does the same, but server-side "
    "apply (Helm 4, Flux) refuses it for a Deployment that exists.",
    "recreate-keeps-rollingupdate": "Remove rollingUpdate from the live {object} first; {at} can stay: kubectl patch "
    """{kubectl} --type merge -p '{{"spec":{{"strategy":{{"type":"Recreate","rollingUpdate":null}}}}}}'""",
}
