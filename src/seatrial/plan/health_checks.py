"""The health checks for Argo CD that releases configure. Loads what runs them only if there are any."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.release import Release, TriedHealthCheck


def tried_health_checks(releases: Sequence[Release]) -> tuple[TriedHealthCheck, ...]:
    """Each with what it returns for example states."""
    refs = (resource.ref for release in releases for resource in release.resources)
    configures = any(ref.name == "argocd-cm" or (ref.kind, ref.group) == ("ArgoCD", GROUP) for ref in refs)
    if not configures:
        return ()
    from seatrial.engines.argocd.trying import tried_health_checks as tried

    return tuple(tried(releases))
