"""A template writes an object only if the cluster already has something, so the first install leaves it out.

## What happens
`.Capabilities.APIVersions.Has`, `lookup` and `.Release.IsUpgrade` ask the cluster, or the act, and not the values.
The answer changes between an install and the next upgrade, although nobody changed anything: a chart that defines a
kind in `templates/` and guards its objects by `.Capabilities` does not write them on the install that brings the
definition, and does on the upgrade after it. Until then the install counts as deployed and the objects are silently
missing.

The same question has a third answer where there is no cluster: `helm template` knows only the built-in APIs and no
kinds unless `--api-versions` says otherwise, `lookup` is empty, and the act is always an install. Whoever deploys
rendered manifests (kustomize, Pulumi, a pipe into kubectl) gets that answer; Argo CD passes the APIs of its cluster,
but has no `lookup`. Which engine deploys a chart cannot be seen in it: here only what Helm itself does is told.

## Example
```yaml
{{- if .Capabilities.APIVersions.Has "canal.example/v1/Gate" }}    # defined by templates/definition.yaml
apiVersion: canal.example/v1
kind: Gate
{{- end }}
```

## Instead
Ask the values (`gates.enabled`) and let whoever installs say so. Or bring the definition in `crds/`: that is
installed before the templates are rendered.

## Fix safety
An object that is written from the first install on fails where its kind is not served: the guard was there for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.rotated import same_again
from seatrial.helm import hooks
from seatrial.helm import records as helmrecords
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Origin, Pointer, Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

SOURCE = re.compile(r"^# Source: [^/\n]+/(?P<path>\S+)\n(?P<text>.*?)(?=^---$|\Z)", re.M | re.S)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for earlier, step in same_again(rehearsal, case):
        if rehearsal.steps[earlier].action != "install" or rehearsal.steps[step].outcome != "ok":
            continue
        renamed = {e.object.kind for e in rehearsal.of_step(step) if e.actor == "helm" and e.effect in GOING}
        for event in rehearsal.of_step(step):
            # One that takes the place of another has the number of the revision in its name, or chance.
            if _is_new(rehearsal, event) and event.object.kind not in renamed:
                yield _finding(Moment(rehearsal, case, step), earlier, event)


def _is_new(rehearsal: Rehearsal, event: Event) -> bool:
    """Whether Helm makes a plain object here that it did not even try to make before."""
    if event.actor != "helm" or event.effect != "created" or dig(event.after, "type") == helmrecords.TYPE:
        return False
    if event.after is None or hooks.is_hook(event.after):
        return False
    return not any(e.object == event.object and e.actor == "helm" for e in rehearsal.timeline if e.step < event.step)


def _finding(moment: Moment, earlier: int, event: Event) -> Finding:
    ref = event.object
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        message=f"install leaves {ref} out, and the upgrade to the same chart and values makes it: its template asks "
        "what the cluster has",
        details=(
            f"Nothing changed between the two but the cluster: the {moment.at(earlier).ended.action} brought what the "
            "template asks for by .Capabilities, lookup or .Release.IsUpgrade. Until the next upgrade it is "
            "missing, and the release counts as deployed.",
            "helm template, and whoever deploys what it renders, leaves it out always, unless told by --api-versions.",
        ),
        places=list(_places(moment, ref)),
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(ref)}  # after helm install, and after helm upgrade to the same",
    )


def _places(moment: Moment, ref: Ref) -> Iterator[Pointer]:
    """Where it was written; rendered without a cluster it is not, and only Helm's own record tells."""
    if written := moment.case.written(moment.index, ref):
        yield written.place("kind")
        return
    release = moment.release
    for path, text in _recorded(moment):
        if release is not None and _names(text, ref):
            yield Pointer(Origin(f"{release.source.rstrip('/')}/{path}"))
            return


def _recorded(moment: Moment) -> Iterator[tuple[str, str]]:
    """The templates of the manifest that Helm recorded in a step, and what each gave."""
    records = [e.after for e in moment.events() if e.after and e.after.get("type") == helmrecords.TYPE]
    manifest = str(helmrecords.decode(records[-1]).get("manifest") or "") if records else ""
    for said in SOURCE.finditer(manifest):
        yield said["path"], said["text"]


def _names(text: str, ref: Ref) -> bool:
    kind = re.search(rf"^kind: *[\"']?{re.escape(ref.kind)}[\"']?\s*$", text, re.M)
    return kind is not None and re.search(rf"\bname: *[\"']?{re.escape(ref.name)}\b", text) is not None


RULE = Rule("ST702", "render-differs-by-engine", check)
