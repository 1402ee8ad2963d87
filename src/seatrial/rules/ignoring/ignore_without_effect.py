"""A comment, an annotation or an entry of seatrial.yaml ignores findings, and there is no such finding.

## What happens
`seatrial: ignore[rule]` is for a finding that was looked at and accepted. If the rule has no finding there, the hazard
is gone, the line has moved away from the comment, or the rule has another name. What is left silences the next finding
of this rule in the same place, which was never reviewed.

A name that no rule has is reported as well, with the name that is most like it.

A check with fewer steps, other values or another engine finds less. An entry of seatrial.yaml is reported only if its
path or its object is part of the check.

## Example
```yaml
metadata:
  annotations:
    # seatrial: ignore[release-to-hook-flip] the ConfigMap is recreated by the next sync
    example.com/owner: shop     # the hook annotation that the comment was about is gone
```

## Instead
Delete the comment, the annotation or the entry, or move it: a comment counts for its own line and, if nothing else is
on that line, for the line below. `seatrial explain` lists the names of all rules.

## Fix safety
Deleting it is safe: it ignores nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.model.acceptance import Audit, Idle
from seatrial.model.finding import Finding
from seatrial.model.fingerprint import fingerprint
from seatrial.model.release import Case
from seatrial.model.resource import line

ACTION = "ignore"
NOWHERE = Case("", ())
SOURCES = {"comment": "the comment", "annotation": "the annotation", "entry": "the entry"}
FORM = "seatrial: ignore[rule] reason"


def check(idle: Sequence[Idle]) -> Iterator[Finding]:
    """One finding for each; the caller knows the engines."""
    for one in idle:
        found = Finding(
            rule=AUDIT.name,
            code=AUDIT.code,
            certainty="will",
            damage="nuisance",
            engines=(),
            action=ACTION,
            objects=(one.by.object,) if one.by.object else (),
            message=_message(one),
            pointers=(line(one.by.place),),
            places=(one.by.place,),
            cause=one.by.rule,
        )
        yield replace(found, fingerprint=fingerprint(found, NOWHERE))


def _message(one: Idle) -> str:
    what = str(one.by.object) if one.by.object else SOURCES[one.by.source]
    if not one.by.rule:
        return f"{what} names no rule to ignore; write {FORM}"
    if one.known:
        return f"{what} ignores {one.by.rule}, which finds nothing there"
    meant = f"; did you mean {one.meant}?" if one.meant else ""
    return f"{what} ignores {one.by.rule}, which is not a rule{meant}"


AUDIT = Audit("ST006", "ignore-without-effect", check)
