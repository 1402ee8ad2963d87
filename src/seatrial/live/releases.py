"""Helm's release records in a cluster, decoded. The only Secrets whose data is read, and values of Secrets are masked.

A record holds the rendered manifests of a release, and so the values of the Secrets in it: they are replaced here.
Helm keeps records in Secrets; with HELM_DRIVER=configmap in ConfigMaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.helm import records
from seatrial.live.client import Client, denial_of, path_of
from seatrial.live.transport import LiveRequest, RefusedRequest
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.masking import Mask, hidden, is_secret, without_secrets
from seatrial.model.resource import Body, Place, labels_of, listed, metadata, name_of
from seatrial.sources.records import is_record, record_in
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

REVISIONS_MAX = 10
"""As Helm's default --history-max."""
RECORDS_MAX = 300
BYTES_MAX = 100 * 1024 * 1024
"""Of all records, decoded."""
SENSITIVE = lazy_re.compile(r"pass|secret|token|credential|api_?key|private_?key|auth$", re.I)
_SOURCE = lazy_re.compile(r"^# Source: \S+", re.MULTILINE)


class Stored(Struct, frozen=True):
    """A revision, as the labels of its record describe it."""

    namespace: str
    release: str
    revision: int
    status: str
    name: str
    kind: str = "Secret"


def stored(client: Client, namespace: str = "", release: str = "") -> Iterator[Stored]:
    """Revisions by metadata only; of all releases without a name, in all namespaces without one."""
    labels = f"owner=helm,name={release}" if release else "owner=helm"
    for name in records.KINDS:
        fields = f"type={records.TYPE}" if name == "Secret" else ""
        kind = client.served().find("", name)
        try:
            bodies = client.list(kind, namespace, labels=labels, fields=fields, metadata_only=True) if kind else ()
            yield from (one for body in bodies for one in _described(body, name))
        except RefusedRequest as refused:
            if refused.code != 403:
                raise


def are_hidden(client: Client, namespace: str) -> bool:
    """Whether a list of records was forbidden."""
    plurals = [f"{kind.lower()}s" for kind in records.KINDS]
    return any(
        "list" in one.verbs and not one.group and one.resource in plurals and one.namespace in ("", namespace)
        for one in client.denials
    )


def _described(body: Body, kind: str) -> Iterator[Stored]:
    found = labels_of(body)
    if str(found.get("version") or "").isdigit() and records.NAME.fullmatch(name_of(body)):
        home, number = str(metadata(body).get("namespace") or ""), int(found["version"])
        yield Stored(home, str(found.get("name")), number, str(found.get("status")), name_of(body), kind)


def newest(found: Iterable[Stored]) -> list[Stored]:
    """The last revisions of each release, oldest first."""
    by_release: dict[tuple[str, str], list[Stored]] = {}
    for one in found:
        by_release.setdefault((one.namespace, one.release), []).append(one)
    last = [sorted(each, key=lambda one: one.revision)[-REVISIONS_MAX:] for _, each in sorted(by_release.items())]
    return [one for each in last for one in each][:RECORDS_MAX]


def decoded(client: Client, revisions: Iterable[Stored]) -> Iterator[Body]:
    """The records of these revisions without values of Secrets."""
    left = BYTES_MAX
    for one in revisions:
        kind = client.served().find("", one.kind)
        assert kind is not None
        path = path_of(kind, one.namespace, one.name)
        try:
            body = client.transport.send(LiveRequest("GET", path, denial=denial_of("get", kind, one.namespace))).body
        except RefusedRequest as refused:
            if refused.code in (403, 404):
                continue
            raise
        if not is_record(body):
            continue
        try:
            record, used = record_in(body, Place(one.name, 1), left)
        except CannotContinue:
            continue
        left -= used
        yield masked(record)


def masked(record: Body) -> Body:
    """A record without values of Secrets, and without what a rehearsal does not read: templates, notes, other files."""
    manifests = [str(record.get("manifest") or ""), *(str(h.get("manifest") or "") for h in listed(record, "hooks"))]
    secrets = [body for text in manifests for _, body in _documents(text) if is_secret(body)]
    mask = Mask(secrets)
    chart = record.get("chart") or {}
    crds = [file for file in listed(chart, "files") if str(file.get("name") or "").startswith("crds/")]
    info = {key: value for key, value in (record.get("info") or {}).items() if key != "notes"}
    return {
        **{key: record[key] for key in ("name", "namespace", "version", "apply_method") if key in record},
        "info": {**info, "description": mask.text(str(info.get("description") or ""))},
        "config": _without_sensitive(mask.whole(record.get("config") or {})),
        "chart": {"metadata": chart.get("metadata") or {}, "files": crds},
        "manifest": _masked_text(manifests[0]),
        "hooks": [
            {**hook, "manifest": _masked_text(str(hook.get("manifest") or ""))} for hook in listed(record, "hooks")
        ],
    }


def _documents(text: str) -> Iterator[tuple[str, Any]]:
    """The objects of a manifest, each with the comment that names its template."""
    source = Text("manifest", text)
    for document in documents(source):
        comment = _SOURCE.search(source.within(document.span))
        yield (f"{comment[0]}\n" if comment else ""), document.body


def _masked_text(text: str) -> str:
    """A manifest whose objects are JSON, which is YAML as well."""
    try:
        found = [(comment, body) for comment, body in _documents(text) if body is not None]
    except CannotContinue:
        return ""
    return "".join(f"---\n{comment}{msgspec.json.encode(without_secrets(body)).decode()}\n" for comment, body in found)


def _without_sensitive(value: Any, key: str = "") -> Any:
    """User-supplied values without those whose key says that they are secret."""
    if isinstance(value, dict):
        return {name: _without_sensitive(one, str(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_sensitive(one, key) for one in value]
    return hidden(value) if isinstance(value, str) and value and SENSITIVE.search(key) else value
