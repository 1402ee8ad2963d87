"""Field selectors in a query, and the fields that each kind supports.

The grammar and error texts follow apimachinery's `fields/selector.go`. The fields are those that each API group
registers with `AddFieldLabelConversionFunc` in Kubernetes 1.34.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from seatrial.cluster.refusal import bad_request
from seatrial.cluster.verbs.labelselector import Test, everything
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.model import lazy_re
from seatrial.model.resource import Body, dig
from seatrial.text.gotext import quoted

NAMES = ("metadata.name", "metadata.namespace")
"""The fields that every kind supports; most kinds support no others."""

Fields = dict[str, tuple[str, str]]
"""By the name in a selector: the path of the value, and its default."""

_POD = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
)
_EVENT = tuple(
    f"involvedObject.{part}"
    for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)


def _plain(*fields: str) -> Fields:
    return {field: (field, "") for field in fields}


SELECTABLE: dict[tuple[str, str], Fields] = {
    ("", "Event"): {**_plain(*_EVENT, "reason", "reportingComponent", "type"), "source": ("source.component", "")},
    ("", "Namespace"): _plain("status.phase"),
    ("", "Node"): {"spec.unschedulable": ("spec.unschedulable", "false")},
    ("", "Pod"): {**_plain(*_POD), "spec.hostNetwork": ("spec.hostNetwork", "false")},
    ("", "ReplicationController"): {"status.replicas": ("status.replicas", "0")},
    ("", "Secret"): _plain("type"),
    ("", "Service"): _plain("spec.clusterIP", "spec.type"),
    ("batch", "Job"): {"status.successful": ("status.succeeded", "0")},
    ("certificates.k8s.io", "CertificateSigningRequest"): _plain("spec.signerName"),
    ("events.k8s.io", "Event"): _plain(
        *(field.replace("involvedObject", "regarding") for field in _EVENT), "reason", "reportingController", "type"
    ),
}

_TERM = lazy_re.compile(r"(.*?)(!=|==|=)(.*)", re.S)
_COMMA = lazy_re.compile(r"((?:\\.|[^\\,])*\\?),?", re.S)


@lru_cache(maxsize=4096)
def field_test(selector: str, kind: ServedKind) -> Test:
    """Whether an object's fields match `metadata.name=web,status.phase!=Running`."""
    parsed = list(_terms(selector))
    terms = [(_field(name, kind), value, wanted) for name, value, wanted in parsed if name or value]
    if not terms:
        return everything
    return lambda body: all((shown(body) == value) is wanted for shown, value, wanted in terms)


def named(selector: str) -> str:
    """The name that a field selector requires, if any."""
    return next((value for name, value, wanted in _terms(selector) if name == "metadata.name" and wanted), "")


def _terms(selector: str) -> Iterator[tuple[str, str, bool]]:
    """(field, value, whether it must be equal) of each term."""
    for term in sorted(filter(None, _COMMA.findall(selector))):
        found = _TERM.fullmatch(term)
        if not found:
            raise bad_request(f"invalid selector: '{selector}'; can't understand '{term}'")
        name, operator, value = found.groups()
        yield name, _unescaped(value), operator != "!="


def _unescaped(value: str) -> str:
    """The value without the backslashes before `\\`, `,` and `=`, which must be escaped."""
    text = ""
    letters = iter(value)
    for letter in letters:
        escaped = next(letters, "") if letter == "\\" else letter
        if letter == "\\" and escaped not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{escaped}")
        if letter in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(letter)}")
        text += escaped
    return text


def _field(name: str, kind: ServedKind) -> Callable[[Body], str]:
    if name in NAMES:
        path, default = name, ""
    else:
        own = SELECTABLE.get((kind.group, kind.kind))
        if own is None or name not in own:
            raise bad_request(_unknown(name, kind))
        path, default = own[name]
    parts = path.split(".")
    return lambda body: _shown(dig(body, *parts), default)


def _unknown(name: str, kind: ServedKind) -> str:
    if (kind.group, kind.kind) == ("batch", "Job"):
        return f"field label {quoted(name)} not supported for Job"
    if (kind.group, kind.kind) in SELECTABLE or (kind.group, kind.kind) not in CATALOGUE:
        return f"field label not supported: {name}"
    return f'{quoted(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def _shown(value: object, default: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return default if value is None else str(value)
