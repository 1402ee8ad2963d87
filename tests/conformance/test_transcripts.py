"""Replay: if a cluster responds as one under another schedule did, Helm need not run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_schedules import CONFIG, DEFINITION, DEPLOYMENT, JOB_HOOK, WIDGET

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.helm import sdk as helmsdk
from seatrial.model.engine import EngineId
from seatrial.model.release import Case
from seatrial.model.timeline import SCHEDULES, Rehearsal, Schedule
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse

READY = DEPLOYMENT.replace("CONFIG", "there")
LATE = JOB_HOOK.replace("}]", ', command: [sh, -c, "sleep 20"]}]')
STUCK = DEPLOYMENT.replace("CONFIG", "nowhere")


class Chart:
    """A chart that is installed, upgraded and uninstalled, and how often it was loaded."""

    def __init__(self, folder: Path, *templates: str, crd: str = "", flags: tuple[str, ...] = ()) -> None:
        for name in ("templates", "crds"):
            (folder / name).mkdir()
        if crd:
            (folder / "crds" / "crd.yaml").write_text(crd)
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
        for number, text in enumerate(templates):
            (folder / "templates" / f"{number}.yaml").write_text(text)
        self.loaded = 0
        self._folder = folder
        steps = (Step("install", flags=flags), Step("upgrade", flags=flags), Step("uninstall"))
        self.plan = Plan(EngineId("helm"), tuple(map(self._planned, steps)), Case("", (None,) * len(steps)))

    def _planned(self, step: Step) -> PlannedStep[HelmAct]:
        act = HelmAct(step.action, "demo", "default", self._load, flags=step.flags)
        return PlannedStep(step, "helm", "demo", "default", act)

    def _load(self) -> helmsdk.Chart:
        self.loaded += 1
        return helmsdk.Chart.load(self._folder)


def lines(rehearsal: Rehearsal) -> list[str]:
    return [f"{e.step} {e.actor} {e.verb} {e.object} {e.effect} {e.message}" for e in rehearsal.timeline]


@pytest.mark.parametrize("flags", [(), ("--wait",)])
@pytest.mark.parametrize("first", ["ordinary", "lazy"])
def test_equal_responses_are_replayed_without_helm(tmp_path: Path, first: Schedule, flags: tuple[str, ...]) -> None:
    chart, heard = Chart(tmp_path, READY, CONFIG, JOB_HOOK, flags=flags), Heard()
    recorded = rehearse(chart.plan, first, heard=heard)
    for schedule in (schedule for schedule in SCHEDULES if schedule != first):
        chart.loaded = 0
        replayed = rehearse(chart.plan, schedule, heard=heard)
        assert chart.loaded == 0
        real = rehearse(chart.plan, schedule)
        assert chart.loaded == 2
        assert (lines(replayed), replayed.steps) == (lines(real), real.steps)
        assert lines(replayed) != lines(recorded)


def test_only_the_steps_with_another_response_run_again(tmp_path: Path) -> None:
    """The kind of the template is served at once, except in the slow cluster: only its install needs Helm."""
    chart, heard = Chart(tmp_path, WIDGET.replace("SIZE", "1"), crd=DEFINITION), Heard()
    ordinary = rehearse(chart.plan, "ordinary", heard=heard)
    assert [step.outcome for step in ordinary.steps] == ["ok", "ok", "ok"]
    chart.loaded = 0
    lazy = rehearse(chart.plan, "lazy", heard=heard)
    assert lazy.steps[0].outcome == "failed"
    assert chart.loaded == 1, "repeated, the install goes as in the ordinary cluster"
    assert (lines(lazy), lazy.steps) == (lines(real := rehearse(chart.plan, "lazy")), real.steps)
    chart.loaded = 0
    rehearse(chart.plan, "eager", heard=heard)
    assert chart.loaded == 0


def test_discovery_of_a_wait_matters_for_what_is_watched_alone(tmp_path: Path) -> None:
    """In the slow cluster, the new kind is not served when Helm begins to wait for its CRD."""
    chart, heard = Chart(tmp_path, WIDGET.replace("SIZE", "1"), crd=DEFINITION, flags=("--wait",)), Heard()
    rehearse(chart.plan, "ordinary", heard=heard)
    chart.loaded = 0
    lazy = rehearse(chart.plan, "lazy", heard=heard)
    assert chart.loaded == 0
    assert (lines(lazy), lazy.steps) == (lines(real := rehearse(chart.plan, "lazy")), real.steps)


def test_records_are_compared_without_their_times(tmp_path: Path) -> None:
    """The install runs again on the slow cluster. Its record has other times, and the upgrade is the same."""
    chart, heard = Chart(tmp_path, READY, CONFIG), Heard()
    rehearse(chart.plan, "ordinary", heard=heard)
    heard.acts = {place: acts for place, acts in heard.acts.items() if place[1] != "install"}
    chart.loaded = 0
    lazy = rehearse(chart.plan, "lazy", heard=heard)
    assert chart.loaded == 1
    assert (lines(lazy), lazy.steps) == (lines(real := rehearse(chart.plan, "lazy")), real.steps)


def test_helm_runs_again_if_a_response_differs(tmp_path: Path) -> None:
    """In the slow cluster the kind of the template is not served yet, so only there the install fails."""
    chart, heard = Chart(tmp_path, WIDGET.replace("SIZE", "1"), crd=DEFINITION), Heard()
    lazy = rehearse(chart.plan, "lazy", heard=heard)
    eager = rehearse(chart.plan, "eager", heard=heard)
    assert (lines(eager), eager.steps) == (lines(real := rehearse(chart.plan, "eager")), real.steps)
    assert (lazy.steps[0].outcome, eager.steps[0].outcome) == ("failed", "ok")


@pytest.mark.parametrize("first", ["ordinary", "lazy"])
def test_a_hang_and_what_follows_it_are_replayed(tmp_path: Path, first: Schedule) -> None:
    chart, heard = Chart(tmp_path, STUCK, flags=("--wait",)), Heard()
    rehearse(chart.plan, first, heard=heard)
    chart.loaded = 0
    for schedule in (schedule for schedule in SCHEDULES if schedule != first):
        replayed = rehearse(chart.plan, schedule, heard=heard)
        assert chart.loaded == 0
        assert [step.outcome for step in replayed.steps] == ["hung", "hung", "ok"]
        real = rehearse(chart.plan, schedule)
        assert (lines(replayed), replayed.steps) == (lines(real), real.steps)
        chart.loaded = 0


def test_a_deadline_that_passes_is_replayed(tmp_path: Path) -> None:
    chart, heard = Chart(tmp_path, LATE), Heard()
    rehearse(chart.plan, "ordinary", heard=heard)
    chart.loaded = 0
    for schedule in ("lazy", "eager"):
        replayed = rehearse(chart.plan, schedule, heard=heard)
        assert chart.loaded == 0
        assert [step.outcome for step in replayed.steps] == ["ok", "ok", "ok"]
        real = rehearse(chart.plan, schedule)
        assert (lines(replayed), replayed.steps) == (lines(real), real.steps)
        chart.loaded = 0
