"""What an engine itself rendered and applied in a step, where that can differ from the source as it was read.

Helm renders a chart again when it deploys it: random values, `lookup` and `.Capabilities` may give another result.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment
from seatrial.evidence.records import last_record
from seatrial.helm import records
from seatrial.helm.ownership import RELEASE_NAME, RELEASE_NAMESPACE
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Ref, annotations_of, group_of, listed, metadata, name_of
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

HELM = "helm"


def applied(moment: Moment, resource: Resource) -> Body | None:
    """An object as the engine rendered it in this step; None if it did not, or if that is not known."""
    release = moment.release
    if HELM not in moment.rehearsal.actors or (release is not None and resource in release.crds):
        return resource.body  # Helm does not record what is in crds/.
    if moment.engine.name != HELM and not _is_of_helm(moment, resource.ref):
        return resource.body
    return next((body for body in _recorded(moment, resource.ref) if _is(body, resource.ref)), None)


def _is_of_helm(moment: Moment, ref: Ref) -> bool:
    """Whether an embedded Helm deploys the object, by its annotations or by those of what is already there."""
    live = moment.live(ref)
    return any(event.actor == HELM for event in moment.rehearsal.of_object(ref)) or (
        live is not None and RELEASE_NAME in annotations_of(live)
    )


def _recorded(moment: Moment, ref: Ref) -> Iterator[Body]:
    """The objects of the last revision that Helm recorded of the release, hooks included."""
    live = annotations_of(moment.live(ref) or {})
    release = live.get(RELEASE_NAME) or moment.ended.release
    namespace = live.get(RELEASE_NAMESPACE) or moment.ended.namespace
    last = last_record(moment.rehearsal, release, namespace, before_step=moment.index + 1)
    content = records.decode(last.written.after) if last and last.written.after else {}
    hooks = (hook.get("manifest") for hook in listed(content, "hooks"))
    for text in map(str, filter(None, (content.get("manifest"), *hooks))):
        try:
            yield from (one.body for one in documents(Text("", text)) if isinstance(one.body, dict))
        except BrokenYaml:
            return


def _is(body: Body, ref: Ref) -> bool:
    space = metadata(body).get("namespace")
    same = (str(body.get("kind")), name_of(body), group_of(str(body.get("apiVersion") or "")))
    return same == (ref.kind, ref.name, ref.group) and (not space or not ref.namespace or space == ref.namespace)
