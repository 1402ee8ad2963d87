"""Ways out of breaches that no rule explains, and of comments that ignore nothing."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way


def _failed(about: About) -> str:
    if about.ref is None:
        return "Start with the error above. If the step lacks only what your cluster has, pass that with --assume FILE."
    return (
        "Start with the error about {object} ({at}). If it lacks only what your cluster has, pass that with --assume "
        "FILE."
    )


def _ignored(about: About) -> str:
    return "Delete what ignores it at {at}, or correct the name of the rule there." + (
        " It is on {object}." if about.ref else ""
    )


WAYS: dict[str, Way] = {
    "step-fails": _failed,
    "object-lost": "Let the step update {object} ({at}) instead of deleting it, or move it out of the release. The "
    "events above lead from the request to the deletion.",
    "not-as-written": "Remove the field or the object {object} from {at}, or make the engine apply it: kubectl diff "
    "shows what differs.",
    "others-touched": "Give {object} one owner: remove it from {at} or from the other source, and only refer to it.",
    "not-idempotent": "Let {at} render the same {object} for the same values: no random value, time or revision "
    "number. To restart pods, use a checksum of their configuration.",
    "cannot-start": "Start with the error about {object} ({at}). If its pods lack only what your cluster has, pass "
    "that with --assume FILE.",
    "ignore-without-effect": _ignored,
}
