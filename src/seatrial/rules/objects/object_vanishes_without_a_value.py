"""A template renders nothing, because a value that can be set in several places is set in none.

## What happens
`{{ $url := .Values.a.url | default .Values.b.url | default "" }}` followed by `{{ if $url }}` looks safe. If the value
is not set, the object is not rendered, nor is anything else inside the same `if`: no error, no warning, a release that
is deployed or `Synced`, and a missing object that others wait for. The same happens to a user who sets the value in a
fourth place that is not in the chain.

The chain does not even help if the parent map is missing: `.Values.b.url` then fails with `nil pointer evaluating
interface {}.url`, whichever place comes first, and nothing is rendered at all. That is a render error, exit code 2.

The omission **may** be intended. The rule assumes that a value with several places is meant to be set. A template that
checks one value only, or a switch (`enabled`, a boolean), is not reported, nor is one inside an outer `if` that is off.

## Example
```yaml
{{- $url := .Values.build.repository | default .Values.git.url | default "" }}
{{- if $url }}
kind: BuildConfig
```

## Instead
`required`, with parentheses around each map that may be missing:

```yaml
{{- $url := (.Values.build).repository | default (.Values.git).url | required "give git.url" }}
kind: BuildConfig
```

## Fix safety
Users who worked without the object must now set the value.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Vanished
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for step, release in enumerate(case.releases):
        new = [one for one in release.vanished if one.place.file not in reported] if release else []
        if new:
            reported.update(one.place.file for one in new)
            yield _finding(Moment(rehearsal, case, step), new)


def _finding(moment: Moment, those: list[Vanished]) -> Finding:
    inside = f"templates/{those[0].place.file.partition('templates/')[2]}"
    return found(
        RULE,
        moment,
        objects=[],
        damage="nuisance",
        certainty="may",
        message=_headline(those[0]),
        details=(
            f"None of {', '.join(those[0].values)} is set." if len(those[0].values) > 1 else "",
            *(f"The same: {_in_words(one)}." for one in those[1:]),
            "There is no error and no warning. Objects that need it wait for it.",
        ),
        places=[one.place for one in those],
        confirm=f"helm template . --show-only {inside}  # could not find template {inside} in chart",
    )


def _headline(one: Vanished) -> str:
    values = f"{len(one.values)} values" if len(one.values) > 1 else one.values[0]
    return f"{one.place.file} renders no {' and '.join(one.kinds)}: none of {values} is set"


def _in_words(one: Vanished) -> str:
    kinds, values = " and ".join(one.kinds), ", ".join(one.values)
    return f"{one.place.file} renders no {kinds}: none of {values} is set"


RULE = Rule("ST706", "object-vanishes-without-a-value", check)
