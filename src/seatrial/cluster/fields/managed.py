"""Ownership of fields: metadata.managedFields after updates and server-side applies.

Follows apimachinery's `util/managedfields`. Bodies are passed as they will be stored: the caller has removed what the
endpoint resets (status on the main resource), and set defaults before an update is tracked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.fields import lastapplied
from seatrial.cluster.fields.fieldset import (
    ITSELF,
    MEMBER,
    Fields,
    fields_of,
    is_tree,
    shared_paths,
    union,
    without,
)
from seatrial.cluster.fields.merging import changes, merged, pruned
from seatrial.cluster.fields.shape import Shape, shape_of
from seatrial.cluster.fields.typed import UNDECLARED, in_words, misfits
from seatrial.cluster.refusal import Refused, bad_request
from seatrial.cluster.verbs.nulls import without_nulls
from seatrial.model.refusal import UNKNOWN_FIELD, FieldCause
from seatrial.model.resource import Body, group_of, metadata, version_of
from seatrial.text.gotext import quoted

Entry = dict[str, Any]
"""One element of metadata.managedFields."""

UNKNOWN = "unknown"
BEFORE_FIRST_APPLY = "before-first-apply"

# Fields without an owner (`stripmeta.go`).
UNOWNED: Fields = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {
        ITSELF: MEMBER,
        **dict.fromkeys(("f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid"), MEMBER),
        **dict.fromkeys(("f:clusterName", "f:generation", "f:managedFields", "f:resourceVersion"), MEMBER),
    },
}

SET_BY_SERVER = frozenset(("creationTimestamp", "generation", "managedFields"))


class Writer(Struct, frozen=True):
    """A manager, its operation, and the time."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str

    def wrote(self, entry: Entry) -> bool:
        """Whether an entry is this writer's. An applier has one entry, an updater one per version."""
        return (
            entry["manager"] == self.manager
            and entry["operation"] == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == "Apply" or entry["apiVersion"] == self.api_version)
        )

    def entry(self, fields: Fields, time: str | None) -> Entry:
        entry: Entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            "subresource": self.subresource,
        }
        return {key: value for key, value in entry.items() if value not in (None, "")}


def server_side_apply(
    live: Body | None,
    applied: Body,
    *,
    manager: str,
    force: bool,
    schema: Schema | None,
    time: str,
    subresource: str = "",
) -> Body:
    """The object after an apply, before defaults; the live object itself if nothing changes."""
    if metadata(applied).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    shape = shape_of(schema)
    if faults := misfits(applied, shape):
        message = f"failed to create typed patch object ({_described(applied)}): {in_words(faults)}"
        reasons = {UNDECLARED: UNKNOWN_FIELD}
        unlisted = tuple(FieldCause(path.lstrip("."), reasons.get(why, ""), why) for path, why in faults)
        unknown = any(why == UNDECLARED for _, why in faults)
        raise Refused(500, "", message, by="unknown-field" if unknown else "", unlisted=unlisted)
    before: Body = live or {}
    writer = Writer(manager or UNKNOWN, "Apply", str(applied.get("apiVersion")), subresource, time)
    entries = _valid(metadata(before).get("managedFields")) or _first_entries(before, writer, shape)
    mine = next((entry for entry in entries if writer.wrote(entry)), None)
    others = [entry for entry in entries if entry is not mine]
    fields = fields_of(applied, shape, containers=False)
    owned = without(fields, UNOWNED)
    after = merged(before, _unset(applied), shape)
    if mine is not None and mine["fieldsV1"] != owned:
        after = pruned(after, mine["fieldsV1"], _owned(fields, others), shape)
    others = _settled(before, after, others, writer, force, shape)
    if after is not before:
        after = without_nulls(after, schema, known=before)
    return lastapplied.with_annotation(_with_apply(before, after, mine, others, owned, writer), applied, manager)


def track_update(
    old: Body | None, new: Body, *, manager: str, schema: Schema | None, time: str, subresource: str = ""
) -> Body:
    """The new object of a create, update or patch, with its managedFields: the writer owns what it changed."""
    entries = _entries_of_update(old, new, subresource, custom=schema is None or not schema.defs)
    bare = _with_entries(new, [])
    if not entries and old is not None:
        # This object is not tracked; the first apply will start it.
        return bare
    writer = Writer(manager or UNKNOWN, "Update", str(new.get("apiVersion")), subresource, time)
    return _with_entries(bare, _updated(old or {}, bare, entries, writer, shape_of(schema)))


def same_but_for_times(old: Body, new: Body) -> bool:
    """Whether two states differ at most in the times of managedFields. Then the old one is kept."""
    if old.keys() != new.keys() or any(old[key] != new[key] for key in old if key != "metadata"):
        return False
    return _timeless(metadata(old)) == _timeless(metadata(new))


def _described(body: Body) -> str:
    meta, version = metadata(body), str(body.get("apiVersion"))
    group_version = f"{group_of(version)}/{version_of(version)}"
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {group_version}, Kind={body.get('kind')}"


def _unset(applied: Body) -> Body:
    """The applied object without server-side fields. Manifests often have `creationTimestamp: null`."""
    meta = metadata(applied)
    if SET_BY_SERVER.isdisjoint(meta):
        return applied
    return {**applied, "metadata": {key: value for key, value in meta.items() if key not in SET_BY_SERVER}}


def _valid(entries: Any) -> list[Entry]:
    """The entries, or none if one of them is invalid."""
    readable = isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and entry.get("apiVersion")
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1"), dict)
        for entry in entries
    )
    return [entry if "manager" in entry else {"manager": "", **entry} for entry in entries] if readable else []


def _first_entries(live: Body, applier: Writer, shape: Shape) -> list[Entry]:
    """Fields from before the first apply get an owner, so that applies can conflict."""
    writer = Writer(BEFORE_FIRST_APPLY, "Update", applier.api_version, "", applier.time)
    return _updated({}, live, [], writer, shape) if live else []


def _owned(fields: Fields, entries: Iterable[Entry]) -> Fields:
    for entry in entries:
        fields = union(fields, entry["fieldsV1"])
    return fields


def _settled(before: Body, after: Body, others: list[Entry], writer: Writer, force: bool, shape: Shape) -> list[Entry]:
    """The entries of the other managers after the apply; refused on conflicts."""
    if after is before or not others:
        return others
    changed, removed = changes(before, after, shape)
    if not force:
        conflicts = [(entry, path) for entry in others for path in shared_paths(entry["fieldsV1"], changed)]
        if conflicts:
            unconflicted = lastapplied.unconflicted_paths(before, writer.manager, shape)
            conflicts = [conflict for conflict in conflicts if conflict[1] not in unconflicted]
        if conflicts:
            raise _conflict(conflicts)
    return _reduced(_reduced(others, changed), removed)


def _reduced(entries: list[Entry], removed_fields: Fields) -> list[Entry]:
    """The entries without the removed fields. Empty entries are dropped."""
    result = []
    for entry in entries:
        fields = without(entry["fieldsV1"], removed_fields)
        if fields is entry["fieldsV1"]:
            result.append(entry)
        elif fields:
            result.append({**entry, "fieldsV1": fields})
    return result


def _conflict(conflicts: list[tuple[Entry, str]]) -> Refused:
    """The refusal, manager by manager."""
    conflicts.sort(key=lambda conflict: _identity(conflict[0]))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_named(entry)}", "field": path}
        for entry, path in conflicts
    ]
    if len(conflicts) == 1:
        entry, path = conflicts[0]
        message = f"Apply failed with 1 conflict: conflict with {_named(entry)}: {path}"
        return Refused(409, "Conflict", message, {"causes": causes})
    lines: dict[str, list[str]] = {}
    for entry, path in conflicts:
        lines.setdefault(_named(entry), []).append(f"- {path}")
    listed = "\n".join("\n".join((f"conflicts with {name}:", *paths)) for name, paths in lines.items())
    message = f"Apply failed with {len(conflicts)} conflicts: {listed}"
    return Refused(409, "Conflict", message, {"causes": causes})


def _identity(entry: Entry) -> tuple[str, str, str, str]:
    version = entry["apiVersion"] if entry["operation"] == "Update" else ""
    return entry["manager"], entry["operation"], version, entry.get("subresource", "")


def _named(entry: Entry) -> str:
    name = quoted(entry["manager"])
    if subresource := entry.get("subresource"):
        name += f" with subresource {quoted(subresource)}"
    return f"{name} using {entry['apiVersion']}" if entry["operation"] == "Update" else name


def _with_apply(
    before: Body, after: Body, mine: Entry | None, others: list[Entry], owned: Fields, writer: Writer
) -> Body:
    """The applied object with its managedFields. An apply that changes no value does not update its time."""
    changed = after is not before
    time = writer.time if changed else mine.get("time") if mine else None
    entries = [*others, writer.entry(owned, time)] if owned else others
    if not changed and sorted(entries, key=_order) == metadata(before).get("managedFields", []):
        return before
    return _with_entries(after, entries)


def _entries_of_update(old: Body | None, new: Body, subresource: str, custom: bool) -> list[Entry]:
    """The initial entries: the client's own if it sent some, none if it requested a reset."""
    given = metadata(new).get("managedFields")
    if not subresource:
        # An empty list is a reset too, but for custom resources it is decoded as not set.
        if given == [{}] or (given == [] and not custom):
            return []
        if entries := _valid(given):
            before = metadata(old or {}).get("managedFields")
            if given == before or all(is_tree(entry["fieldsV1"]) for entry in entries):
                return entries
    return _valid(metadata(old or {}).get("managedFields"))


def _updated(old: Body, new: Body, entries: list[Entry], writer: Writer, shape: Shape) -> list[Entry]:
    changed, removed = changes(old, new, shape)
    entries = _reduced(_reduced(entries, changed), removed)
    owned = without(changed, UNOWNED)
    if not owned:
        return entries
    mine = next((entry for entry in entries if writer.wrote(entry)), None)
    entry = writer.entry(union(mine["fieldsV1"], owned) if mine else owned, writer.time)
    return [*(other for other in entries if other is not mine), entry]


def _with_entries(body: Body, entries: list[Entry]) -> Body:
    """The body with these managedFields, in the API server's order; without the field if there are none."""
    meta = {key: value for key, value in metadata(body).items() if key != "managedFields"}
    if entries:
        meta["managedFields"] = sorted(entries, key=_order)
    return {**body, "metadata": meta}


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry["manager"],
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _timeless(meta: Body) -> Body:
    entries = [{**entry, "time": None} for entry in meta.get("managedFields") or ()]
    return {**meta, "managedFields": entries}
