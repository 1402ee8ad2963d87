"""Flux reconciliations: how they ended, what depends on what, and which one has an object."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.faults import has_fault, unserved_kinds
from seatrial.evidence.moment import moments
from seatrial.model.refusal import Failure
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Reconciled, Rehearsal, StepResult

FLUX = "flux"
GROUP = "kustomize.toolkit.fluxcd.io"


def is_flux(rehearsal: Rehearsal) -> bool:
    return rehearsal.engine.name == FLUX


def kustomizations(ended: StepResult) -> Iterator[Reconciled]:
    return (one for one in ended.reconciled if one.object.kind == "Kustomization")


def holder(ended: StepResult, ref: Ref) -> Ref | None:
    """The Kustomization or HelmRelease that has an object."""
    return next((one.object for one in ended.reconciled if ref in one.objects), None)


class Delayed(Struct, frozen=True):
    """A Kustomization or HelmRelease that failed at first and succeeded at a later attempt."""

    step: int
    release: Release
    own: Resource
    one: Reconciled
    first: Event
    """Its error when it failed."""


def delayed(rehearsal: Rehearsal, case: Case) -> Iterator[Delayed]:
    for moment in moments(rehearsal, case):
        release = moment.release
        for one in moment.ended.reconciled if release else ():
            own = release.find(one.object) if release else None
            if release is None or own is None or one.message or one.attempts < 2:
                continue
            said = (e for e in moment.events() if e.object == one.object and e.effect == "said")
            yield Delayed(moment.index, release, own, one, next(event for event in said if event.message != "Ready"))


def failed_release(ended: StepResult, ref: Ref | None = None) -> Reconciled | None:
    """The HelmRelease that failed in a step; `ref` picks the one that has the object."""
    failed = (one for one in ended.reconciled if one.message and one.acts)
    return next((one for one in failed if ref is None or ref in one.objects), None)


def failed_kustomization(ended: StepResult, ref: Ref) -> Reconciled | None:
    """The failed Kustomization that has an object."""
    return next((one for one in kustomizations(ended) if one.message and ref in one.objects), None)


def is_uninstalled(ended: StepResult, ref: Ref) -> bool:
    """Whether an object belongs to a HelmRelease that was uninstalled."""
    return any(ref in one.objects and one.acts == ("uninstall",) for one in ended.reconciled)


def failed_act(one: Reconciled) -> str:
    """The Helm action that failed: `upgrade`."""
    return one.failed or one.acts[-1]


def flux_says(one: Reconciled) -> str:
    """Flux's own words."""
    return f'Flux reports for {one.object}: "{one.message}"'


def by_hand(one: Reconciled) -> str:
    """The command that makes Flux retry."""
    force = " --force" if one.acts else ""
    return f"flux reconcile {one.object.kind.lower()} {one.object.name} -n {one.object.namespace}{force}"


def goes_on(one: Reconciled) -> str:
    """What Flux does after Helm failed."""
    if failed_act(one) == "uninstall":
        if has_fault(one.failure, "uninstall-incomplete"):  # Helm has deleted its records.
            return (
                "Helm has already deleted the release record: on its next attempt Flux finds no release and removes "
                "the HelmRelease."
            )
        return (
            f"The release stays, and {one.object} stays Terminating: Flux retries the uninstall on every "
            "reconciliation."
        )
    if has_fault(one.failure, "retries-exceeded"):
        return f"Flux does not retry until the chart or the values change. To retry by hand: {by_hand(one)}"
    return "Flux retries, and fails the same way until something else changes."


def missing_kind(failure: Failure) -> tuple[str, str] | None:
    """The group and kind that Flux did not find."""
    return next(((kind.group, kind.kind) for kind in unserved_kinds(failure)), None)


def dependencies(own: Resource) -> Iterator[tuple[int, Ref]]:
    """The dependencies of a Kustomization or HelmRelease, with their index in dependsOn."""
    for index, entry in enumerate(listed(own.body, "spec", "dependsOn")):
        if isinstance(entry, dict):
            namespace = str(entry.get("namespace") or own.ref.namespace)
            yield index, Ref(own.ref.kind, namespace, str(entry.get("name")), own.ref.group)


def is_checked(kustomization: Resource, ref: Ref | None = None) -> bool:
    """Whether it is Ready only when an object of it is; without an object, when any of them is."""
    spec: Body = kustomization.body.get("spec") or {}
    checks = listed(spec, "healthChecks")
    if spec.get("wait") or not checks or ref is None:
        return bool(spec.get("wait") or checks)
    return any((check.get("kind"), check.get("name")) == (ref.kind, ref.name) for check in checks)


def definition(case: Case, release: Release, one: Reconciled, wanted: tuple[str, str]) -> Resource | None:
    """The CRD of a kind among the objects of a HelmRelease or Kustomization, or that it is known to bring."""
    written = (release.find(ref) for ref in one.objects if ref.kind == "CustomResourceDefinition")
    for found in (*written, *case.brought_by(one.object)):
        spec = found.body.get("spec") if found else None
        if found and (dig(spec, "group"), dig(spec, "names", "kind")) == wanted:
            return found
    return None


def interval_of(kustomization: Resource) -> str:
    """The time after which a failed one is retried."""
    spec: Body = kustomization.body.get("spec") or {}
    return str(spec.get("retryInterval") or spec.get("interval") or "its interval")
