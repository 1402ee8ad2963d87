"""Conflicts over the caBundle of a webhook configuration or of a CRD's conversion."""

from __future__ import annotations

from seatrial.evidence.webhooks.calls import CONFIGURATIONS
from seatrial.model.timeline import Event

KINDS = (*CONFIGURATIONS, "CustomResourceDefinition")
CA_BUNDLE = ".clientConfig.caBundle"


def is_bundle_conflict(event: Event) -> bool:
    """Whether an apply was refused because another manager owns a caBundle; of a CRD, only if that is all."""
    causes = event.refusal.causes if event.refusal and event.object.kind in KINDS else ()
    about = [cause.field.endswith(CA_BUNDLE) for cause in causes]
    return bool(about) and (all(about) if event.object.kind not in CONFIGURATIONS else any(about))
