"""Argo CD's kinds and what they refer to. The engine simulates Applications; this module does not."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind, Need
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.model.resource import Body, Ref, dig, listed

GROUP = "argoproj.io"
HERE = ("https://kubernetes.default.svc", "")
"""The cluster that Argo CD itself runs in."""
BUILT_IN = ("", "default")
"""Projects that Argo CD creates."""


def needs(application: Body) -> Iterator[Need]:
    project = str(dig(application, "spec", "project") or "")
    if project not in BUILT_IN:
        yield Need(Ref("AppProject", namespace_of(application), project, GROUP), "ready", ("spec", "project"))
    destination = dig(application, "spec", "destination") or {}
    here = str(destination.get("server") or "") in HERE and destination.get("name") in (None, "", "in-cluster")
    options = listed(application, "spec", "syncPolicy", "syncOptions")
    if here and destination.get("namespace") and "CreateNamespace=true" not in options:
        ref = Ref("Namespace", "", str(destination["namespace"]))
        yield Need(ref, "ready", ("spec", "destination", "namespace"))


KINDS = (
    Kind("Application", GROUP, needs=needs),
    Kind("AppProject", GROUP),
    Kind("ApplicationSet", GROUP),
)
