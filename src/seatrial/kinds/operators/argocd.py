"""Argo CD's kinds, as far as they refer to others. What becomes of an Application is told by the engine, not here."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind, Need
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.model.resource import Body, Ref, dig, listed

GROUP = "argoproj.io"
HERE = ("https://kubernetes.default.svc", "")
"""The cluster that Argo CD itself runs in."""
ALWAYS_THERE = ("", "default")
"""Projects that Argo CD makes for itself."""


def needs(application: Body) -> Iterator[Need]:
    project = str(dig(application, "spec", "project") or "")
    if project not in ALWAYS_THERE:
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
