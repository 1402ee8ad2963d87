"""What becomes of objects when nothing happens for a long time: deadlines that only the clock brings about.

The embedded cluster has no clock. An operation of Argo CD has no timeout either, so all deadlines are met.
"""

from __future__ import annotations

from seatrial.resource import Body, dig, listed

FOREVER = 0x7FFFFFFF
"""`progressDeadlineSeconds` of who does not want one."""
PROGRESS_SECONDS = 600
"""Its default."""


def deadline_seconds(body: Body) -> int | None:
    """After how many seconds without progress the controller of an object gives up; None where it never does."""
    match body.get("apiVersion"), body.get("kind"):
        case "apps/v1", "Deployment":
            found = dig(body, "spec", "progressDeadlineSeconds")
            seconds = found if isinstance(found, int) else PROGRESS_SECONDS
            return None if seconds == FOREVER or dig(body, "spec", "paused") else seconds
        case "batch/v1", "Job":
            found = dig(body, "spec", "activeDeadlineSeconds")
            return found if isinstance(found, int) and not dig(body, "spec", "suspend") else None
    return None


def late(body: Body) -> Body:
    """The object as it is when its deadline has passed."""
    if body.get("kind") == "Deployment":
        words = f'ReplicaSet of "{dig(body, "metadata", "name")}" has timed out progressing.'
        condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": words}
    else:
        words = "Job was active longer than specified deadline"
        condition = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": words}
    others = [c for c in listed(body, "status", "conditions") if c.get("type") != condition["type"]]
    return {**body, "status": {**(body.get("status") or {}), "conditions": [*others, condition]}}
