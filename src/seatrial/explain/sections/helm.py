"""Helm: hooks, the order of kinds, waits, and what differs between versions."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.helm.v3_objects import INSTALL_ORDER, UNINSTALL_ORDER
from seatrial.explain.section import Section
from seatrial.helm import hooks, kindorder
from seatrial.helm import versions as helm_versions
from seatrial.model.engine import EngineId
from seatrial.readiness import helm3, kstatus


def sections(chosen: EngineId) -> Iterator[Section]:
    is_3 = chosen.major == "3"
    order = INSTALL_ORDER if is_3 else kindorder.INSTALL_ORDER
    yield Section(
        "Hooks of each step, one after another, by weight and then by name", rows=(("step", "events"), *_events())
    )
    yield Section("Hooks are deleted", entries=(f"{hooks.BEFORE_CREATION} (default)", hooks.SUCCEEDED, hooks.FAILED))
    yield Section("Order of regular resources; other kinds follow by name", entries=order)
    if is_3:
        yield Section("Order of uninstall; other kinds follow by name", entries=UNINSTALL_ORDER)
    yield Section("Without --wait, Helm waits only for hooks", entries=("Job", "Pod"))
    checked, other = (helm3.CHECKED, "are ready at once") if is_3 else (kstatus.CHECKED, "by their condition Ready")
    yield Section(f"With --wait, Helm waits for these kinds; others {other}", entries=checked)
    yield Section(
        "Kinds that only one major version knows",
        rows=(
            ("", "only Helm 3", "only Helm 4"),
            ("listed in the order", *_differ(INSTALL_ORDER, kindorder.INSTALL_ORDER)),
            ("checked by --wait", *_differ(helm3.CHECKED, kstatus.CHECKED)),
        ),
    )
    for does in (True, False):
        found = [one for one in helm_versions.TABLE if (chosen.numbers in one.versions) is does]
        title = (
            f"What Helm {chosen.version} does and others do not" if does else f"What Helm {chosen.version} does not do"
        )
        yield Section(title, sentences=tuple(f"{one.about} ({one.versions}): {one.does}." for one in found))


def _events() -> Iterator[tuple[str, str]]:
    return ((step, ", ".join(events)) for step, events in hooks.EVENTS_OF.items())


def _differ(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, str]:
    """What only one of two lists has."""
    gone, added = [kind for kind in old if kind not in new], [kind for kind in new if kind not in old]
    return ", ".join(gone) or "-", ", ".join(added) or "-"
