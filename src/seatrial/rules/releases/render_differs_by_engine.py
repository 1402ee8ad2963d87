"""A template renders an object only if the cluster already has something, so the first install omits it.

## What happens
`.Capabilities.APIVersions.Has`, `lookup` and `.Release.IsUpgrade` depend on the cluster or the action, not on the
values. The result changes between an install and the next upgrade although nothing was changed: a chart that has a CRD
in `templates/` and guards its custom resources with `.Capabilities` omits them on the install that creates the CRD, and
renders them on the next upgrade. Until then the release counts as deployed and the objects are silently missing.

Without a cluster there is a third result: `helm template` knows only the built-in APIs unless `--api-versions` adds
more, `lookup` is empty, and the action is always an install. Engines that deploy rendered manifests (kustomize, Pulumi,
a pipe into kubectl) get that result; Argo CD passes the APIs of its cluster, but has no `lookup`: it never renders an
object whose template wants `lookup` to find something. This is reported as a *may*: only the cluster has what is looked
up.

## Example
```yaml
{{- if .Capabilities.APIVersions.Has "canal.example/v1/Gate" }}    # its CRD is templates/definition.yaml
apiVersion: canal.example/v1
kind: Gate
{{- end }}
```

## Instead
Use a value (`gates.enabled`) that the user sets. Or put the CRD into `crds/`: Helm installs that before it renders the
templates.

## Fix safety
An object that is always rendered fails where its kind is not served: that is what the guard was for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_again
from seatrial.helm import hooks
from seatrial.helm import records as helmrecords
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Origin, Pointer, Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

SOURCE = lazy_re.compile(r"^# Source: [^/\n]+/(?P<path>\S+)\n(?P<text>.*?)(?=^---$|\Z)", re.M | re.S)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_argocd(rehearsal):
        yield from _never_rendered(rehearsal, case)
        return
    for earlier, step in same_again(rehearsal, case):
        if rehearsal.steps[earlier].action != "install" or rehearsal.steps[step].outcome != "ok":
            continue
        renamed = {e.object.kind for e in rehearsal.of_step(step) if e.actor == "helm" and e.effect in GOING}
        for event in rehearsal.of_step(step):
            # An object that replaces another of its kind has the revision number or a random part in its name.
            if _is_new(rehearsal, event) and event.object.kind not in renamed:
                yield _finding(Moment(rehearsal, case, step), earlier, event)


def _never_rendered(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Objects that Argo CD never renders, because `lookup` finds nothing there; once each."""
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for resource in moment.release.behind_lookup if moment.release else ():
            if resource.ref in seen or moment.live(resource.ref) is not None:
                continue
            seen.add(resource.ref)
            yield found(
                RULE,
                moment,
                objects=[resource.ref],
                damage="failed-deploy",
                certainty="may",
                message=f"Argo CD never renders {resource.ref}: its template uses lookup, which finds nothing there",
                details=(
                    "Argo CD runs helm template, without a cluster. The template renders the object only if lookup "
                    "finds something, as it may under helm install or helm upgrade.",
                    "The Application is Synced and Healthy without it.",
                ),
                places=[resource.place("kind")],
                confirm=f"kubectl get {in_kubectl(resource.ref)}",
                way_out=(f"Let a value decide whether {resource.ref} is rendered, in place of lookup.",),
            )


def _is_new(rehearsal: Rehearsal, event: Event) -> bool:
    """Whether Helm creates a regular resource here that it did not try to create before."""
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
        message=f"helm install omits {ref}, and the next upgrade creates it: its template depends on the cluster",
        details=(
            "The chart and the values are the same. Only the cluster changed: the "
            f"{moment.at(earlier).ended.action} created what the template checks with "
            ".Capabilities, lookup or .Release.IsUpgrade. Until the next upgrade the object is missing, and the "
            "release counts as deployed.",
            "helm template, and every engine that deploys its output, always omits it, unless --api-versions is given.",
        ),
        places=list(_places(moment, ref)),
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(ref)}  # after helm install, and after helm upgrade to the same chart",
    )


def _places(moment: Moment, ref: Ref) -> Iterator[Pointer]:
    """Where the object is written; a render without a cluster omits it, and only Helm's release record has it."""
    if written := moment.case.written(moment.index, ref):
        yield written.place("kind")
        return
    release = moment.release
    for path, text in _recorded(moment):
        if release is not None and _names(text, ref):
            yield Pointer(Origin(f"{release.source.rstrip('/')}/{path}"))
            return


def _recorded(moment: Moment) -> Iterator[tuple[str, str]]:
    """The templates in the manifest that Helm recorded in a step, with their output."""
    records = [e.after for e in moment.events() if e.after and e.after.get("type") == helmrecords.TYPE]
    manifest = str(helmrecords.decode(records[-1]).get("manifest") or "") if records else ""
    for said in SOURCE.finditer(manifest):
        yield said["path"], said["text"]


def _names(text: str, ref: Ref) -> bool:
    kind = re.search(rf"^kind: *[\"']?{re.escape(ref.kind)}[\"']?\s*$", text, re.M)
    return kind is not None and re.search(rf"\bname: *[\"']?{re.escape(ref.name)}\b", text) is not None


RULE = Rule("ST702", "render-differs-by-engine", check)
