"""Where a real cluster differs from what was rehearsed: the measure of the model. Pure functions of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from seatrial.evidence.as_written import differences as fields_of
from seatrial.evidence.as_written import value_at
from seatrial.evidence.moment import Moment
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.model.masking import FIELDS, is_secret
from seatrial.model.resource import Body, Path, Ref, annotations_of, metadata
from seatrial.readiness import kstatus

About = Literal["outcome", "presence", "field", "readiness"]
SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
    "ownerReferences",
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
REVISION = "deployment.kubernetes.io/revision"
"""Counted by the controller: a rehearsal starts without old ReplicaSets."""
OF_NO_INTEREST = (LAST_APPLIED, REVISION, ANY_KEY)
GENERATED = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/")
"""Annotations of volume controllers."""
PRESENT = "cHJlc2VudA=="
"""In place of every value of a Secret."""
FIELDS_MAX = 20
"""Of one object."""


class LiveDifference(Struct, frozen=True, omit_defaults=True):
    """Something that a rehearsal says and a real cluster does not, or the other way round."""

    about: About
    object: str
    field: str = ""
    rehearsed: Any = None
    live: Any = None

    def __str__(self) -> str:
        where = f" {self.field}" if self.field else ""
        return f"{self.object}{where}: rehearsed {_shown(self.rehearsed)}, live {_shown(self.live)}"


def compare(moment: Moment, live: Mapping[Ref, Body | None], status: str) -> Iterator[LiveDifference]:
    """The end of a rehearsed step against the objects of a cluster; `status` is that of Helm's newest revision."""
    yield from _outcome(moment, status)
    for ref in sorted(live):
        yield from _object(ref, moment.live(ref), live[ref])


def compared(moment: Moment) -> list[Ref]:
    """The objects that a step is about: those of its release, and what it created or deleted."""
    release = moment.release
    own = [resource.ref for resource in (*release.resources, *release.crds)] if release else []
    ended = moment.ended
    return sorted({*own, *ended.created, *ended.deleted, *ended.recreated})


def _outcome(moment: Moment, status: str) -> Iterator[LiveDifference]:
    """Whether Helm's record says the same."""
    rehearsed = moment.ended.outcome
    if status and (rehearsed == "ok") != (status in ("deployed", "superseded")):
        yield LiveDifference("outcome", moment.act, "", rehearsed, status)


def _object(ref: Ref, rehearsed: Body | None, live: Body | None) -> Iterator[LiveDifference]:
    if rehearsed is None or live is None:
        if (rehearsed is None) != (live is None):
            yield LiveDifference("presence", str(ref), "", _presence(rehearsed), _presence(live))
        return
    if ANY_KEY in annotations_of(live):  # Its keys are not known.
        rehearsed, live = (
            {key: value for key, value in body.items() if key not in FIELDS} for body in (rehearsed, live)
        )
    one, other = _comparable(rehearsed), _comparable(live)
    paths = dict.fromkeys((*fields_of(one, other), *fields_of(other, one)))
    for path in list(paths)[:FIELDS_MAX]:
        found = value_at(one, path), value_at(other, path)
        if is_secret(live) and path[:1] and path[0] in FIELDS:
            found = _key(found[0]), _key(found[1])
        if found[0] != found[1]:
            yield LiveDifference("field", str(ref), _written(path), *found)
    if (before := kstatus.status(rehearsed)) != (now := kstatus.status(live)):
        yield LiveDifference("readiness", str(ref), "", before, now)


def _comparable(body: Body) -> Body:
    """An object without what differs between any two clusters; of a Secret, its keys."""
    meta = {key: value for key, value in metadata(body).items() if key not in SERVER_FIELDS}
    annotations = {key: value for key, value in annotations_of(body).items() if not _is_of_no_interest(key)}
    meta = (
        {**meta, "annotations": annotations} if annotations else {k: v for k, v in meta.items() if k != "annotations"}
    )
    rest = {key: value for key, value in body.items() if key not in ("metadata", "status")}
    if body.get("kind") == "PersistentVolumeClaim":  # The name of its volume is generated.
        rest["spec"] = {key: value for key, value in (body.get("spec") or {}).items() if key != "volumeName"}
    if is_secret(body):
        rest |= {field: dict.fromkeys(body[field], PRESENT) for field in FIELDS if isinstance(body.get(field), dict)}
    return {**rest, "metadata": meta}


def _is_of_no_interest(annotation: str) -> bool:
    return annotation in OF_NO_INTEREST or annotation.startswith(GENERATED)


def _key(value: Any) -> str | None:
    """Of a Secret only whether a key is there."""
    return None if value is None else "present"


def _presence(body: Body | None) -> str:
    return "absent" if body is None else "present"


def _written(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
