"""Argo CD: phases, waves, what becomes of Helm hooks, health, and what differs between versions."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.argocd.tasks import KIND_ORDER
from seatrial.engines.argocd.versions import SINCE, parse, shown
from seatrial.explain.section import Section
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.engine import EngineId
from seatrial.readiness.argocd.builtin import CHECKED


def sections(chosen: EngineId) -> Iterator[Section]:
    mapped = [(event, _phase(event, parse(chosen.version))) for events in hooks.EVENTS_OF.values() for event in events]
    policies = tuple(argocd_hooks.POLICIES_FROM_HELM.items())
    yield Section("Phases of a sync; each waits for the one before", entries=argocd_hooks.PHASES)
    yield Section("Waves: lowest sync-wave first; the next one starts when all objects of this one are healthy")
    yield Section("Helm hooks become", rows=(("helm.sh/hook", "phase"), *mapped))
    yield Section("Their delete policies become", rows=(("helm.sh/hook-delete-policy", "policy"), *policies))
    yield Section("Order within a wave; other kinds follow by name", entries=KIND_ORDER)
    yield Section("Built-in health checks; kinds without any check are healthy at once", entries=CHECKED)
    since = sorted(SINCE.items(), key=lambda one: (one[1], one[0]))
    rows = [(name, shown(first), "yes" if parse(chosen.version) >= first else "no") for name, first in since]
    yield Section("What changed between versions", rows=(("behaviour", "since", f"in {chosen.version}"), *rows))


def _phase(event: str, version: tuple[int, int]) -> str:
    """What Argo CD makes of an event of Helm's."""
    since = {"PreDelete": SINCE["PreDelete hooks"], "PostDelete": SINCE["PostDelete hooks"]}
    for phase, deletes in argocd_hooks.ON_DELETION.items():
        if event == deletes and version >= since[phase]:
            return f"{phase}, when the Application is deleted"
    return argocd_hooks.FROM_HELM.get(event, "never runs")
