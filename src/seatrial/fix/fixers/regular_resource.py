"""A hook that must not be one becomes a regular resource: its hook annotations go.

What holds data gets `resource-policy: keep` in their place.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import replaced_entry, without_annotations, without_entry
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.fix.unrendered import hook_left_out
from seatrial.graph import needs_of, products_of
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref, annotations_of, dig

ANNOTATIONS = (hooks.HOOK, hooks.WEIGHT, hooks.DELETE_POLICY)
HOLDS_DATA = ("Namespace", "PersistentVolumeClaim")
RUNS = ("Job", "Pod")
"""A hook of these kinds has work to do at its event."""
DEFINITION = "CustomResourceDefinition"
ADOPTION = "a release that is installed must adopt it once: helm upgrade --take-ownership"
REFUSES = "helm"
"""The engine that does not take over what exists."""
RECREATED = "before-hook-creation-deletes-live-resource"
MANY = 3
"""So many more of the same are changed at once, which saves a try for each."""
SECOND = ("post-hook-wait-deadlock", "argocd-postsync-health-deadlock")
"""Rules whose first object only needs the hook."""


def propose(problem: Problem) -> Iterator[Proposal]:
    resource = _hook(problem)
    if resource is None:
        return
    unsafe = "" if all(engine.name != REFUSES for engine in problem.finding.engines) else ADOPTION
    if problem.finding.rule == RECREATED and len(alike := _alike(problem, resource)) >= MANY:
        title = f"make {resource.ref} and {len(alike)} more regular resources"
        yield Proposal(title, joined(*(without_hook(problem, one) for one in (resource, *alike))), unsafe)
    yield Proposal(f"make {resource.ref} a regular resource", without_hook(problem, resource), unsafe)


def _hook(problem: Problem) -> Resource | None:
    named: tuple[Ref, ...] = problem.finding.objects
    ref = next(iter(named[1:] if problem.finding.rule in SECOND else named), None)
    resource = problem.newest(ref) if ref else None
    if resource is None or resource.ref.kind in RUNS or not hooks.is_hook(resource.body):
        return None
    return resource


def _alike(problem: Problem, first: Resource) -> list[Resource]:
    """Other hooks that run nothing, that no Job or Pod of a hook needs, and whose kind does not come with the release.

    Each upgrade recreates them as well.
    """
    release = problem.release_of(first)
    stay = for_runs(release)
    own = [one for one in release.resources if hooks.is_hook(one.body) and one != first and one.ref not in stay]
    free = [one for one in own if not _comes_with_its_crd(one, release)]
    return [one for one in free if _may_change(problem, without_hook(problem, one))]


def for_runs(release: Release) -> set[Ref]:
    """The Jobs and Pods of hooks, what they need, what produces it, and what is granted to their accounts."""
    own = [one for one in release.resources if hooks.is_hook(one.body)]
    found = {one.ref for one in own if one.ref.kind in RUNS}
    while True:
        needed = {need.object for one in own if one.ref in found for need in needs_of(one)}
        granted = {
            one.ref for one in own if one.ref.group == RBAC and any(need.object in found for need in needs_of(one))
        }
        producing = {one.ref for one in own if found.intersection(products_of(one))}
        if needed | granted | producing <= found:
            return found
        found |= needed | granted | producing


def _comes_with_its_crd(resource: Resource, release: Release) -> bool:
    """Whether its CRD is among the templates: Helm cannot build it as a regular resource of the same release."""
    crds = (one.body["spec"] for one in release.resources if one.ref.kind == DEFINITION)
    return any(
        (dig(spec, "names", "kind"), spec.get("group")) == (resource.ref.kind, resource.ref.group) for spec in crds
    )


def _may_change(problem: Problem, change: Edits | ByHand) -> bool:
    return not isinstance(change, ByHand) and not any(problem.why_not(edit.text.path) for edit in change)


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
        RECREATED,
        "hook-succeeded-deletes-needed-resource",
        "hook-install-only-not-updated",
        "argocd-helm-hook-recreated-every-sync",
        *SECOND,
    ),
    propose,
)
