"""Deployed releases as a `History`: from Helm's release records, `helm get all` output, or rendered YAML.

From text alone, the release record is reconstructed as Helm would have written it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import json
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.helm.history import SERVER_SIDE, History, Revision
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Place, annotations_of, dig, labels_of, listed, name_of
from seatrial.sources import disk
from seatrial.sources.files import read_text, shown
from seatrial.sources.manifests.objects import Found, defined_scopes, objects_in, resources
from seatrial.sources.records import BYTES_MAX, checked, is_record, record_in
from seatrial.text.source import Text
from seatrial.text.yamlfile import Document, documents

INSTANCE = "app.kubernetes.io/instance"
WHEN = "2026-01-01T00:00:00Z"
"""The deployment time of a release whose own is unknown."""
REVISIONS_MAX = 1000

_DOING = "read the stored release"
_ASKED = lazy_re.compile(r"(.+)@(\d+)")
_SECTION = lazy_re.compile(r"^(USER-SUPPLIED VALUES|COMPUTED VALUES|HOOKS|MANIFEST|NOTES):[ \t]*$", re.MULTILINE)
_FIELD = lazy_re.compile(r"^([A-Z][A-Z_ ]*): (.*)$", re.MULTILINE)
_SOURCE = lazy_re.compile(r"^# Source: (\S+)", re.MULTILINE)


def asked(path: str) -> tuple[str, int]:
    """The file and the revision of `FILE@REVISION`; 0 without a revision."""
    found = _ASKED.fullmatch(path)
    if found is None or disk.exists(Path(path)):
        return path, 0
    return found[1], int(found[2])


def read_history(path: str, *, name: str = "", namespace: str = "", usual: str = "") -> History:
    """The revisions of one release in a file; `name` and `namespace` choose if there are several releases.

    `usual` is the default name of the release: that of its chart.
    """
    file, number = asked(path)
    if disk.is_dir(Path(file)):
        raise CannotContinue(f"{shown(file)}: {_DOING}: this folder is not a chart; a stored release is a file")
    found = list(_revisions(read_text(file, _DOING), name, namespace, usual))
    chosen = _of_one_release(found, name, namespace, shown(file))
    return _history(path, _up_to(chosen, number, shown(file)))


def history_in(records: Iterable[Body], name: str, namespace: str, source: str) -> History | None:
    """The revisions of one release among decoded records, if it is there."""
    found = [_revision(checked(json.encode(record), f"{source}: {_DOING}"), source) for record in records]
    fitting = [one for one in found if (one.release.name, one.release.namespace) == (name, namespace)]
    return _history(source, sorted(fitting, key=lambda one: one.number)) if fitting else None


def recorded(body: Body) -> Release:
    """The release in a release record of Helm."""
    return stored_revision(body).release


def stored_revision(body: Body) -> Revision:
    """The revision in a release record of Helm."""
    record, _ = record_in(body, Place(name_of(body), 1))
    return _revision(record, name_of(body))


def _revisions(text: Text, name: str, namespace: str, usual: str) -> Iterator[Revision]:
    if _is_get_all(text.content):
        yield _get_all(text)
        return
    given = [(document, found) for document in documents(text) for found in _bodies(document)]
    records = [(document, found) for document, found in given if is_record(found.body)]
    if not records:
        yield _written(text, given, Release(name, namespace or "default", text.path, ()), usual)
        return
    left = BYTES_MAX
    for count, (document, found) in enumerate(records):
        if count == REVISIONS_MAX:
            raise CannotContinue(f"{text.path}: {_DOING}: more than {REVISIONS_MAX} revisions")
        place = document.place(*found.path, "data", "release")
        record, used = record_in(found.body, place, left)
        left -= used
        yield _revision(record, text.path)


def _bodies(document: Document) -> Iterator[Found]:
    body = document.body
    if isinstance(body, dict) and "manifest" in body and "kind" not in body:
        return iter((Found(body, document, (), document.text.path, _where),))
    return objects_in(document, document.text.path, _where)


def _where(document: Document, offset: int) -> Place:
    return Place(document.text.path, document.text.line(offset))


def _written(text: Text, given: list[tuple[Document, Found]], release: Release, usual: str) -> Revision:
    """A revision from Helm's JSON (`helm status -o json`) or from rendered YAML."""
    if not given:
        raise NothingToCheck(f"{text.path}: contains no release and no Kubernetes object")
    first = given[0][1].body
    if "kind" not in first:
        return _revision(checked(text.content.encode(), f"{text.path}: {_DOING}"), text.path)
    scopes = defined_scopes([found for _, found in given])
    objects = tuple(resources([found for _, found in given], release.namespace, scopes))
    called = release.name or _instance(objects) or usual
    return _reconstructed(replace(release, name=called, resources=objects), {}, [document for document, _ in given])


def _of_one_release(found: list[Revision], name: str, namespace: str, file: str) -> list[Revision]:
    """The revisions of the requested release."""
    by_release: dict[tuple[str, str], list[Revision]] = {}
    for revision in found:
        by_release.setdefault((revision.release.namespace, revision.release.name), []).append(revision)
    fitting = [key for key in by_release if key[1] == (name or key[1]) and key[0] == (namespace or key[0])]
    known = ", ".join(f"{of} in {within}" for within, of in sorted(by_release))
    if not fitting:
        wanted = " in ".join(filter(None, (name, namespace)))
        raise CannotContinue(f"{file}: {_DOING}: no release {wanted} in this file, only {known}")
    if len(fitting) > 1:
        raise CannotContinue(
            f"{file}: {_DOING}: the file contains {known}; choose one: --release-name NAME -n NAMESPACE"
        )
    return sorted(by_release[fitting[0]], key=lambda revision: revision.number)


def _up_to(revisions: list[Revision], number: int, file: str) -> list[Revision]:
    """All revisions, or those up to `number`, which then counts as deployed."""
    if not number:
        return revisions
    kept = [revision for revision in revisions if revision.number <= number]
    if not kept or kept[-1].number != number:
        there = ", ".join(str(revision.number) for revision in revisions)
        of = revisions[0].release.name
        raise CannotContinue(f"{file}: {_DOING}: no revision {number} of {of} in this file, only {there}")
    last = kept[-1]
    if last.status != "superseded":
        return kept
    record = {**last.record, "info": {**last.record["info"], "status": "deployed"}}
    return [*kept[:-1], replace(last, status="deployed", record=record)]


def _history(source: str, revisions: list[Revision]) -> History:
    first = revisions[0].release
    return History(source, first.name, first.namespace, tuple(revisions))


def _revision(record: Body, file: str) -> Revision:
    """A release record, with the objects of its manifest and hooks."""
    number = int(record["version"])
    namespace = str(record.get("namespace") or "default")
    named = f"{file}@{number}"
    texts = [Text(f"{named}:manifest", str(record.get("manifest") or ""))]
    for hook in record.get("hooks") or ():
        texts.append(Text(f"{named}:{hook.get('path')}", str(hook.get("manifest") or "")))
    found = list(_found(texts))
    crds = list(_found(_crd_texts(record, named)))
    scopes = defined_scopes((*found, *crds))
    release = Release(
        name=str(record["name"]),
        namespace=namespace,
        source=named,
        resources=tuple(sorted(resources(found, namespace, scopes), key=lambda r: not _runs_before(r.body))),
        crds=tuple(resources(crds, namespace, scopes)),
        values=record.get("config") or {},
    )
    status = str(dig(record, "info", "status") or "unknown")
    return Revision(number, status, {**record, "namespace": namespace, "info": record.get("info") or {}}, release)


def _found(texts: Iterable[Text]) -> Iterator[Found]:
    return (
        found for text in texts for document in documents(text) for found in objects_in(document, text.path, _where)
    )


def _runs_before(body: Body) -> bool:
    return any(event.startswith("pre-") for event in hooks.events_of(body))


def _crd_texts(record: Body, named: str) -> Iterator[Text]:
    """The files of crds/. A record contains those of the chart, but not those of its subcharts."""
    for file in listed(record, "chart", "files"):
        name = str(dig(file, "name") or "")
        if name.startswith("crds/") and name.endswith((".yaml", ".yml", ".json")):
            try:
                yield Text(f"{named}:{name}", base64.b64decode(str(file.get("data") or "")).decode())
            except (binascii.Error, UnicodeDecodeError):
                raise CannotContinue(f"{named}:{name}: {_DOING}: not base64-encoded UTF-8 text") from None


def _is_get_all(content: str) -> bool:
    sections = {found[1] for found in _SECTION.finditer(content)}
    return content.lstrip().startswith("NAME: ") and {"HOOKS", "MANIFEST"} <= sections


def _get_all(text: Text) -> Revision:
    """The output of `helm get all`: fields, then sections, padded with blank lines so that line numbers are right."""
    marks = list(_SECTION.finditer(text.content))
    fields = dict(_FIELD.findall(text.content[: marks[0].start()]))
    ends = [mark.start() for mark in marks[1:]] + [len(text.content)]
    parts = {mark[1]: (mark.end(), end) for mark, end in zip(marks, ends, strict=True)}
    given = []
    for section in ("HOOKS", "MANIFEST"):
        start, end = parts[section]
        given += list(documents(Text(text.path, "\n" * text.content.count("\n", 0, start) + text.content[start:end])))
    found = [one for document in given for one in objects_in(document, text.path, _where)]
    if not found:
        raise NothingToCheck(f"{text.path}: contains no Kubernetes object")
    namespace = fields.get("NAMESPACE", "default").strip()
    values = _section_values(text, parts.get("USER-SUPPLIED VALUES"))
    objects = tuple(resources(found, namespace, defined_scopes(found)))
    release = Release(fields["NAME"].strip(), namespace, text.path, objects, values=values)
    return _reconstructed(release, fields, given)


def _section_values(text: Text, part: tuple[int, int] | None) -> Body:
    if part is None:
        return {}
    values = next((d.body for d in documents(Text(text.path, text.content[part[0] : part[1]]))), None)
    return values if isinstance(values, dict) else {}


def _reconstructed(release: Release, fields: dict[str, str], given: Iterable[Document]) -> Revision:
    """The release record that Helm would have written for these objects."""
    texts = {id(document): document for document in given}.values()
    chart = fields.get("CHART") or next((s.partition("/")[0] for d in texts if (s := _source(d))), release.name)
    number = int(fields.get("REVISION") or 1)
    status = (fields.get("STATUS") or "deployed").strip()
    record = {
        "name": release.name,
        "namespace": release.namespace,
        "version": number,
        "info": {"status": status, "first_deployed": WHEN, "last_deployed": WHEN, "description": "Install complete"},
        "chart": {"metadata": {"name": chart, "version": fields.get("VERSION") or "0.0.0", "apiVersion": "v2"}},
        "config": release.values,
        "manifest": "".join(_manifest(d) for d in texts if not _is_hook(d.body)),
        "hooks": [_hook(d) for d in texts if _is_hook(d.body)],
        "apply_method": SERVER_SIDE,
    }
    ordered = tuple(sorted(release.resources, key=lambda r: not _runs_before(r.body)))
    return Revision(number, status, record, replace(release, resources=ordered))


def _instance(objects: Iterable[Resource]) -> str:
    """The release name in the labels of the objects, if all have the same."""
    names = {labels_of(r.body).get(INSTANCE) or labels_of(r.body).get("release") for r in objects} - {None}
    return str(names.pop()) if len(names) == 1 else ""


def _manifest(document: Document) -> str:
    content = document.text.within(document.span).strip().removeprefix("---").strip()
    return f"---\n{content}\n"


def _is_hook(body: Any) -> bool:
    return isinstance(body, dict) and hooks.is_hook(body)


def _source(document: Document) -> str:
    found = _SOURCE.search(document.text.within(document.span))
    return found[1] if found else ""


def _hook(document: Document) -> Body:
    body = document.body
    weight = str(annotations_of(body).get(hooks.WEIGHT) or "0").strip()
    entry = {
        "name": name_of(body),
        "kind": body.get("kind"),
        "path": _source(document),
        "manifest": _manifest(document).removeprefix("---\n"),
        "events": list(hooks.events_of(body)),
        "last_run": {"started_at": WHEN, "completed_at": WHEN, "phase": "Succeeded"},
        "weight": int(weight) if re.fullmatch(r"[-+]?\d+", weight) else 0,
    }
    if hooks.DELETE_POLICY in annotations_of(body):
        entry["delete_policies"] = list(hooks.delete_policies(body))
    return entry
