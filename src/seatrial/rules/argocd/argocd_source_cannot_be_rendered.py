"""Argo CD cannot render the source of an Application, so nothing of it is applied.

## What happens
A path that does not exist at this revision, a chart or version that is not published, a template that fails, an
annotation that is not a string: the repo server renders all or nothing. The Application shows a `ComparisonError` and
the sync status `Unknown`, which looks like a network problem. `Unknown` is not `OutOfSync`, so an automated sync does
not even start. What was deployed before stays, and nothing is pruned.

## Example
```yaml
kind: Application
spec:
  source:
    repoURL: https://git.example/shop.git
    path: deploy/production        # it is deploy/prod
```

## Instead
Use a path, chart and version that exist. Render the source in the pipeline that changes it.

## Fix safety
Once it renders, an automated sync applies all pending changes at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.faults import has_fault
from seatrial.evidence.moment import Moment, found
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.headline import fit_quote

SOURCES = ("path", "chart")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for step, app, words in _errors(rehearsal) if is_argocd(rehearsal) else ():
        if app not in reported:
            reported.add(app)
            yield _finding(Moment(rehearsal, case, step), app, words)


def _errors(rehearsal: Rehearsal) -> Iterator[tuple[int, Ref, str]]:
    """Applications that do not render, with Argo CD's error: from a requested sync, or from one that does not start."""
    for step, ended in enumerate(rehearsal.steps):
        for operation in ended.operations:
            if has_fault(operation.failure, "source-not-rendered"):
                yield step, Ref("Application", operation.namespace, operation.app, GROUP), operation.message
        for event in rehearsal.of_step(step):
            if event.effect == "said" and has_fault(event.failure, "source-not-rendered"):
                yield step, event.object, event.message


def _finding(moment: Moment, app: Ref, words: str) -> Finding:
    return found(
        RULE,
        moment,
        objects=[app],
        damage="failed-deploy",
        message=fit_quote(f"Argo CD cannot render the source of {app}: ", words.partition(" desc = ")[2] or words),
        details=(
            f'Argo CD reports: "{words}"',
            "Its sync status is Unknown, and no automated sync starts; what is deployed stays as it is.",
        ),
        places=[*_places(moment.case, moment.index, app)],
        confirm=f"argocd app get {app.name}  # its conditions",
    )


def _places(case: Case, step: int, app: Ref) -> Iterator[Pointer]:
    written = case.written(step, app)
    release = case.releases[step]
    if written is not None:
        source = dig(written.body, "spec", "source") or {}
        yield written.place("spec", "source", *[field for field in SOURCES if field in source][:1])
    elif release is not None and release.resources:
        yield release.resources[0].place()


RULE = Rule("ST821", "argocd-source-cannot-be-rendered", check)
