"""A hook that must not be one becomes a regular resource: its hook annotations go.

What holds data gets `resource-policy: keep` in their place.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import replaced_entry, without_annotations, without_entry
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.fix.unrendered import hook_left_out
from seatrial.helm import hooks
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, annotations_of

ANNOTATIONS = (hooks.HOOK, hooks.WEIGHT, hooks.DELETE_POLICY)
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
RUNS = ("Job", "Pod")
"""A hook of these kinds has work to do at its event."""
ADOPTION = "a release that is installed must adopt it once: helm upgrade --take-ownership"
REFUSES = "helm"
"""The engine that does not take over what exists."""
SECOND = ("post-hook-wait-deadlock", "argocd-postsync-health-deadlock")
"""Rules whose first object only needs the hook."""


def propose(problem: Problem) -> Iterator[Proposal]:
    resource = _hook(problem)
    if resource is None:
        return
    adopts = all(engine.name != REFUSES for engine in problem.finding.engines)
    yield Proposal(
        f"make {resource.ref} a regular resource", without_hook(problem, resource), "" if adopts else ADOPTION
    )


def _hook(problem: Problem) -> Resource | None:
    named: tuple[Ref, ...] = problem.finding.objects
    ref = next(iter(named[1:] if problem.finding.rule in SECOND else named), None)
    resource = problem.newest(ref) if ref else None
    if resource is None or resource.ref.kind in RUNS or not hooks.is_hook(resource.body):
        return None
    return resource


def without_hook(problem: Problem, resource: Resource) -> Edits | ByHand:
    """The object without its hook annotations, unless a hook that is not rendered may need it."""
    if left_out := hook_left_out(problem, resource):
        return ByHand(f"{left_out} is a hook that these values leave out, and may need it")
    given = annotations_of(resource.body)
    own = [key for key in ANNOTATIONS if key in given]
    if resource.ref.kind in HOLDS_DATA and hooks.RESOURCE_POLICY not in given:
        keeps = replaced_entry(resource, ("metadata", "annotations", hooks.HOOK), f"{hooks.RESOURCE_POLICY}: keep")
        rest = [key for key in own if key != hooks.HOOK]
        return joined(keeps, *(without_entry(resource, ("metadata", "annotations", key)) for key in rest))
    if len(own) == len(given):
        return without_annotations(resource)
    return joined(*(without_entry(resource, ("metadata", "annotations", key)) for key in own))


FIXER = Fixer(
    (
        "before-hook-creation-deletes-live-resource",
        "hook-succeeded-deletes-needed-resource",
        "hook-install-only-not-updated",
        "argocd-helm-hook-recreated-every-sync",
        *SECOND,
    ),
    propose,
)
