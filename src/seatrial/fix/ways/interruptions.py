"""Ways out of steps that die half way."""

from __future__ import annotations

from seatrial.fix.ways.about import Way

WAYS: dict[str, Way] = {
    "interrupted-release-is-locked": {
        "": "Let the pipeline stop Helm with SIGTERM and wait until it has ended, and run deployments of one release "
        "one after another. Put the commands above into the runbook.",
        "pulumi": "Do not cancel an up while it creates a Release. Put the commands above into the runbook.",
    },
    "interrupted-step-cannot-be-repeated": {
        "": "Run the commands above. Give hooks before-hook-creation, and hooks of the uninstall objects of their "
        "own, so that every write up to {object} can be repeated.",
        "argocd": "Let the Application retry a sync that fails at {object}: spec.syncPolicy.retry.limit. Otherwise run "
        "the commands above.",
        "pulumi": "Run the commands above. If there are none, run pulumi refresh, and helm uninstall for a Release "
        "that the state of the stack does not have. Do not cancel an up while it creates {object}.",
    },
    "interrupted-step-loses-or-doubles": {
        "": "Look at {object} when the step was repeated: it may be missing, be there twice, or have fields of another "
        "revision.",
        "pulumi": "Set metadata.name of {object}, or the name of its Release, and run pulumi refresh after an up that "
        "was interrupted.",
    },
}
