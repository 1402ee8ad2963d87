"""The error of a kind that the API server does not serve, as the library of kubectl and Helm words it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.model import lazy_re
from seatrial.model.refusal import During, Fault, GroupVersionKind
from seatrial.model.resource import Ref, group_of, version_of

# From the REST mapper of client-go, and from the resource builder of cli-runtime around it.
UNMAPPED = lazy_re.compile(
    r'(?:name: "(?P<name>[^"]*)" namespace: "(?P<namespace>[^"]*)" from "[^"]*": )?'
    r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<version>[^"]+)"'
)


def unserved_in(error: str, during: During = "") -> Iterator[Fault]:
    """The kinds that an error is about, each with its object where that is named."""
    return iter(dict.fromkeys(_fault(found, during) for found in UNMAPPED.finditer(error)))


def _fault(found: re.Match[str], during: During) -> Fault:
    kind = GroupVersionKind(group_of(found["version"]), version_of(found["version"]), found["kind"])
    named = found["name"] is not None
    ref = Ref(kind.kind, found["namespace"], found["name"], kind.group) if named else None
    return Fault("unserved", ref, kind, during=during)
