"""Findings that say the same of several CRDs as one, and places in the revision that the user works on."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.evidence.moment import moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.helm import hooks
from seatrial.model.finding import Finding
from seatrial.model.fingerprint import without_names
from seatrial.model.release import Case, Release
from seatrial.model.resource import Pointer, Ref, dig
from seatrial.model.timeline import Rehearsal

NAMES_MAX = 3
DEPLOYS = ("install", "replace")


def once_for_crds(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all CRDs of which a rule says the same in the same step."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        about = finding.objects[0] if finding.objects else None
        is_crd = about is not None and about.kind == DEFINITION and len(finding.objects) == 1
        said = finding.message.replace(about.name, "") if is_crd and about else finding
        key = (finding.rule, finding.case, finding.step, finding.certainty, finding.damage, finding.after, said)
        groups.setdefault(key if is_crd else (id(finding),), []).append(finding)
    return [_one(alike) for alike in groups.values()]


def _one(alike: list[Finding]) -> Finding:
    first, *others = alike
    if not others:
        return first
    names = [finding.objects[0].name for finding in others]
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    count = f"{len(names)} more CRDs" if len(names) > 1 else "one more CRD"
    same = f"The same holds for {count}: {', '.join(names[:NAMES_MAX])}{more}."
    return replace(
        first,
        objects=tuple(ref for finding in alike for ref in finding.objects),
        details=(same, *first.details),
        pointers=tuple(dict.fromkeys(pointer for finding in alike for pointer in finding.pointers)),
        fingerprint=without_names(first.fingerprint),
    )


def in_newest(finding: Finding, rehearsal: Rehearsal, case: Case) -> Finding:
    """The finding with its places in the newest revision, where that has the same field and the same hooks.

    A rollback deploys the old revision on purpose, and the dependencies of a program are not in its objects.
    """
    begun, deployed = rehearsal.steps[finding.step], case.releases[finding.step]
    same = (begun.release, begun.namespace)
    later = (m for m in moments(rehearsal, case) if (m.ended.release, m.ended.namespace) == same)
    given = (m for m in reversed([*later]) if not m.ended.next_version and m.ended.role in DEPLOYS)
    release = next((m.release for m in given if m.release), None)
    if release is None or begun.role == "back" or release.program is not None:
        return finding
    old = {one.origin: one for one in case.all_resources() if one.origin.number}

    def moved(pointer: Pointer) -> Pointer:
        was = old.get(pointer.origin)
        now = release.find(was.ref) if was is not None else None
        if was is None or now is None or len(release.named(was.ref)) > 1:
            return pointer
        unchanged = dig(was.body, *pointer.path) == dig(now.body, *pointer.path)
        return now.place(*pointer.path) if unchanged else pointer

    if deployed is not None and not finding.timeless and _hooks_of(deployed) != _hooks_of(release):
        return finding  # A hook that was added may be the repair.
    return replace(finding, pointers=tuple(dict.fromkeys(map(moved, finding.pointers))))


def _hooks_of(release: Release) -> set[Ref]:
    return {resource.ref for resource in release.resources if hooks.is_hook(resource.body)}
