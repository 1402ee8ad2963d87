"""Findings that say the same of several CRDs as one, and places in the revision that the user works on."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.evidence.moment import moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.model.finding import Finding
from seatrial.model.fingerprint import without_names
from seatrial.model.release import Case
from seatrial.model.resource import Origin, Place, Pointer, Ref, dig
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
    """The finding with its places in the newest revision, where that has the same object with the same field.

    A rollback deploys the old revision on purpose.
    """
    begun = rehearsal.steps[finding.step]
    same = (begun.release, begun.namespace)
    later = (m for m in moments(rehearsal, case) if (m.ended.release, m.ended.namespace) == same)
    release = next((m.release for m in reversed([*later]) if m.release and m.ended.role in DEPLOYS), None)
    if release is None or begun.role == "back" or release is case.releases[finding.step]:
        return finding
    old = _written(case)

    def moved(pointer: Pointer | Place) -> Pointer | Place:
        was = old.get(pointer.origin) if isinstance(pointer, Pointer) else None
        now = release.find(was[0]) if was is not None else None
        if was is None or now is None or isinstance(pointer, Place) or len(release.named(was[0])) > 1:
            return pointer
        unchanged = dig(was[1], *pointer.path) == dig(now.body, *pointer.path)
        return now.place(*pointer.path) if unchanged else pointer

    return replace(finding, pointers=tuple(dict.fromkeys(map(moved, finding.pointers))))


def _written(case: Case) -> dict[Origin, tuple[Ref, object]]:
    """The object that each origin belongs to."""
    return {one.origin: (one.ref, one.body) for one in case.all_resources() if one.origin.number}
