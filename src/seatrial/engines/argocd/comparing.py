"""Whether a live object matches its target: what makes an Application OutOfSync, and which differences are ignored.

A stand-in for `gitops-engine/pkg/diff`: what is wanted must be there, and what was wanted before and no longer is must
not. Defaults that the API server adds are no difference.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.ignoring import carried, ignored, normalized
from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.script import DescribedObject
from seatrial.model.resource import Body, annotations_of, metadata

_OF_THE_SERVER = ("status", "apiVersion", "kind")


def is_modified(target: DescribedObject, live: Body, app: App, settings: Settings) -> bool:
    """Whether a sync would change the live object."""
    text = annotations_of(live).get(LAST_APPLIED)
    before = msgspec.json.decode(text) if text else {}
    wanted, there, applied = (
        _compared(normalized(target.ref, body, live, app, settings)) for body in (target.body, live, before)
    )
    return not _holds(there, wanted) or _kept(applied, wanted, there)


def respecting(target: DescribedObject, live: Body | None, app: App, settings: Settings) -> DescribedObject:
    """The target with the live values of the fields whose differences are ignored: `RespectIgnoreDifferences`."""
    if live is None:
        return target
    body = target.body
    for path in ignored(target.ref, live, app, settings):
        if path[:1] != ("status",):
            body = carried(body, live, path)
    return DescribedObject(target.ref, body)


def _compared(body: Body) -> Body:
    meta = metadata(body)
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k != LAST_APPLIED}
    kept = {key: value for key, value in body.items() if key not in _OF_THE_SERVER}
    return {**kept, "metadata": {"labels": meta.get("labels") or {}, "annotations": annotations}}


def _holds(there: Any, wanted: Any) -> bool:
    """Whether the live object contains everything in the target."""
    if isinstance(wanted, dict):
        if not isinstance(there, dict):
            return not wanted and there is None
        return all(_holds(there.get(key), value) for key, value in wanted.items() if value is not None)
    if isinstance(wanted, list):
        if not isinstance(there, list):
            return not wanted and there is None
        if wanted and None not in (named := _by_name(there), asked := _by_name(wanted)):
            return _holds(named, asked)
        return len(there) == len(wanted) and all(_holds(t, w) for t, w in zip(there, wanted, strict=True))
    return bool(there == wanted) or (there is None and wanted in ("", 0, False)) or str(there) == str(wanted)


def _by_name(entries: list[Any]) -> dict[str, Any] | None:
    """Entries that the API server merges by name: extra entries in such a list are no difference."""
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        return None
    return {entry["name"]: entry for entry in entries}


def _kept(before: Any, wanted: Any, there: Any) -> bool:
    """Whether the live object still has something that the target dropped."""
    if isinstance(before, list) and isinstance(wanted, list) and isinstance(there, list):
        before, wanted, there = _by_name(before), _by_name(wanted), _by_name(there)
    if not (isinstance(before, dict) and isinstance(wanted, dict) and isinstance(there, dict)):
        return False
    dropped = (key for key in before if key not in wanted and before[key] not in (None, {}, []))
    if any(key in there for key in dropped):
        return True
    return any(_kept(before[key], wanted[key], there.get(key)) for key in before if key in wanted)
