"""A real Helm is not asked twice: where the eager cluster tells it what the lazy one did, it need not play again."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_schedules import CONFIG, DEFINITION, DEPLOYMENT, JOB_HOOK, WIDGET

from seatrial.helm import sdk as helmsdk
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan, Played
from seatrial.play.rehearse import Heard, rehearse, rehearse_again

READY = DEPLOYMENT.replace("CONFIG", "there")
STUCK = DEPLOYMENT.replace("CONFIG", "nowhere")


class Chart:
    """A chart of these templates that is installed, upgraded and uninstalled; and how often it was loaded."""

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
        played = tuple(Played(step, "demo", "default", chart=self._load) for step in steps)
        self.plan = Plan(played, Case("", (None,) * len(played)))

    def _load(self) -> helmsdk.Chart:
        self.loaded += 1
        return helmsdk.Chart.load(self._folder)


def told(rehearsal: Rehearsal) -> list[str]:
    return [f"{e.step} {e.actor} {e.verb} {e.object} {e.effect} {e.message}" for e in rehearsal.timeline]


@pytest.mark.parametrize("flags", [(), ("--wait",)])
def test_what_was_told_before_is_played_without_helm_and_ends_as_with_it(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    chart, heard = Chart(tmp_path, READY, CONFIG, JOB_HOOK, flags=flags), Heard()
    lazy = rehearse(chart.plan, "helm", "lazy", keeps=heard)
    assert chart.loaded == 2
    eager = rehearse_again(chart.plan, "helm", "eager", heard)
    assert chart.loaded == 2
    real = rehearse(chart.plan, "helm", "eager")
    assert chart.loaded == 4
    assert (told(eager), eager.steps) == (told(real), real.steps)
    assert told(eager) != told(lazy)


def test_helm_plays_itself_where_it_is_told_something_else(tmp_path: Path) -> None:
    """The lazy cluster does not serve the kind of the template yet when it is needed; the install fails there alone."""
    chart, heard = Chart(tmp_path, WIDGET.replace("SIZE", "1"), crd=DEFINITION), Heard()
    lazy = rehearse(chart.plan, "helm", "lazy", keeps=heard)
    eager = rehearse_again(chart.plan, "helm", "eager", heard)
    assert (told(eager), eager.steps) == (told(real := rehearse(chart.plan, "helm", "eager")), real.steps)
    assert (lazy.steps[0].outcome, eager.steps[0].outcome) == ("failed", "ok")


def test_a_wait_that_did_not_end_is_waited_for_again(tmp_path: Path) -> None:
    chart, heard = Chart(tmp_path, STUCK, flags=("--wait",)), Heard()
    rehearse(chart.plan, "helm", "lazy", keeps=heard)
    loaded = chart.loaded
    eager = rehearse_again(chart.plan, "helm", "eager", heard)
    assert chart.loaded == 2 * loaded
    assert [step.outcome for step in eager.steps] == ["hung", "hung", "ok"]
