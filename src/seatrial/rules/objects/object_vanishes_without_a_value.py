"""A template writes nothing, because a value that may be given in several places is given in none.

## What happens
`{{ $url := .Values.a.url | default .Values.b.url | default "" }}` and then `{{ if $url }}` reads as if nothing could go
wrong. Where nobody gives the value, the object is not written, and with it all that stands behind the same question: no
error, no warning, a release that is deployed or `Synced`, and something missing that others wait for. The next who
gives the value in a fourth place, which is not in the chain, gets the same.

The chain does not even help where the map of one place is missing: `.Values.b.url` fails with `nil pointer evaluating
interface {}.url` then, whichever place comes first, and nothing is rendered at all. That is an error, and told as one.

It **may** be meant: of a value that is looked for in several places it is taken that somebody should give it. What asks
about one value only, or about `enabled`, is left alone.

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
Whoever has got along without the object has to give the value now.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Vanished
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    for step, release in enumerate(case.releases):
        new = [one for one in release.vanished if one.place.file not in told] if release else []
        if new:
            told.update(one.place.file for one in new)
            yield _finding(Moment(rehearsal, case, step), new)


def _finding(moment: Moment, those: list[Vanished]) -> Finding:
    inside = f"templates/{those[0].place.file.partition('templates/')[2]}"
    return found(
        RULE,
        moment,
        objects=[],
        damage="nuisance",
        certainty="may",
        message=_in_words(those[0]),
        details=(
            *(f"Likewise {_in_words(one)}." for one in those[1:]),
            "Nothing fails, and nothing says so: who needs what it would bring waits for it.",
        ),
        places=[one.place for one in those],
        confirm=f"helm template . --show-only {inside}  # could not find template {inside} in chart",
    )


def _in_words(one: Vanished) -> str:
    kinds, values = " and ".join(one.kinds), ", ".join(one.values)
    return f"{one.place.file} writes no {kinds}: the value it asks for is given in none of {values}"


RULE = Rule("ST706", "object-vanishes-without-a-value", check)
