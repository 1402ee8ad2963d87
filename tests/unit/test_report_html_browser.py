"""The HTML report in a browser: it draws itself without errors, obeys the keyboard, and shows markup as text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import PROGRAM, Browser, browser
from msgspec.structs import replace
from rehearsed import CLEAN, CONFIG, FINDING, LAZY, RESULT, STEPS, TIMELINE

from seatrial.model.engine import EngineId
from seatrial.model.finding import Fix
from seatrial.model.resource import Ref
from seatrial.model.result import Played, Result
from seatrial.model.timeline import Event
from seatrial.report.html import render
from seatrial.report.page import Page

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed.")

SCRIPT = "<script>document.title='hacked'</script>"
SECOND = replace(FINDING, rule="object-lost", code="ST002", message="Deployment/default/web is lost", evidence=(8,))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def written(result: Result, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(render(result, Page()), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_every_width_without_errors(tab: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    tab.open(written(RESULT, tmp_path), width=width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.title") == "seatrial: 1 finding"
    assert tab.run("document.querySelectorAll('.layer .mark').length") > 5
    paper = tab.run("getComputedStyle(document.querySelector('nav')).backgroundColor")
    assert paper == ("rgb(20, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert tab.console == []


def test_markup_in_a_chart_shows_as_text(tab: Browser, tmp_path: Path) -> None:
    ref = Ref("ConfigMap", "default", SCRIPT)
    timeline = tuple(replace(e, object=ref if e.object == CONFIG else e.object, message=SCRIPT) for e in TIMELINE)
    odd = replace(FINDING, objects=(ref,), message=f"{SCRIPT} is deleted", details=(SCRIPT,), confirm=SCRIPT)
    played = (Played("", replace(LAZY, timeline=timeline)),)
    tab.open(written(replace(RESULT, findings=(odd,), played=played), tmp_path))
    assert tab.run("document.title") == "seatrial: 1 finding"
    assert tab.run("document.querySelectorAll('script').length") == 2
    assert tab.run("document.querySelector('.details h2').textContent") == f"{SCRIPT} is deleted"
    tab.press("ArrowRight")
    assert tab.run("document.querySelector('.details pre').textContent") == SCRIPT
    assert tab.console == []


def test_everything_can_be_done_with_the_keyboard(tab: Browser, tmp_path: Path) -> None:
    def heading() -> object:
        return tab.run("document.querySelector('.details h2').textContent")

    tab.open(written(replace(RESULT, findings=(FINDING, SECOND)), tmp_path))
    assert heading() == FINDING.message
    tab.press("j")
    assert heading() == SECOND.message
    tab.press("k", "ArrowRight", "ArrowRight")
    assert heading() == "helm apply ConfigMap/default/web-config"
    assert tab.run("location.hash").endswith("&finding=1&event=6")
    tab.press("ArrowDown")
    assert heading() == "Pod/default/web-5d9c7b"
    tab.press("Escape")
    assert heading() == FINDING.message
    tab.press("Escape", "/")
    assert tab.run("document.activeElement.type") == "search"
    tab.press("w", "e", "b", "-", "c", "Enter")
    assert heading() == "ConfigMap/default/web-config"
    assert tab.run("document.querySelector('.count').textContent") == "1 object"
    tab.press("s", "s")
    assert tab.run("document.querySelector('[aria-label=step]').value") == "1"
    tab.press("?")
    assert tab.run("document.querySelector('dialog').open") is True
    assert tab.console == []


def test_a_link_points_at_a_step(tab: Browser, tmp_path: Path) -> None:
    tab.open(written(RESULT, tmp_path), at="#schedule=eager&step=3")
    assert tab.run("document.querySelector('.details h2').textContent") == "step 3, upgrade ./v2"
    assert tab.run("document.querySelector('.details pre').textContent") == STEPS[2].error
    assert tab.run("document.querySelector('.panel h2').textContent") == "helm@4.2.3 eager schedule, default"
    tab.press("Escape")
    assert tab.run("document.querySelector('.details h2').textContent") == "Choose a finding, an event or an object"


@pytest.mark.parametrize("result", [CLEAN, replace(RESULT, played=()), replace(CLEAN, played=())])
def test_a_report_may_have_no_findings_and_no_rehearsals(tab: Browser, tmp_path: Path, result: Result) -> None:
    tab.open(written(result, tmp_path), at="#finding=7&step=x&event=y")
    tab.press("j", "k", "ArrowRight", "ArrowDown", "s", "d", "+", "0", "Escape")
    assert tab.run("document.querySelectorAll('.details h2').length") == 1
    assert tab.console == []


def test_an_event_shows_the_diff_and_a_fix_its_timeline(tab: Browser, tmp_path: Path) -> None:
    before, after = ({"kind": "ConfigMap", "data": {"colour": colour}} for colour in ("blue", "green"))
    last = max(event.index for event in TIMELINE)
    fix = Fix("keep it", safe=True, proven=True, diff="+ kept")
    changed = Event(last + 1, 1, "helm", "patch", CONFIG, "changed", before=before, after=after)
    result = replace(
        RESULT,
        findings=(replace(FINDING, evidence=(changed.index,), fix=fix),),
        played=(Played("", replace(LAZY, timeline=(*TIMELINE, changed))),),
        mended=replace(RESULT, findings=(), played=(Played("", replace(LAZY, schedule="ordinary")),)),
    )
    tab.open(written(result, tmp_path))
    tab.press("j")
    button = "[...document.querySelectorAll('.details button')].find(one => one.textContent.includes('with the fixes'))"
    assert tab.run("document.querySelector('.yaml .added').textContent") == "+ kept\n"
    tab.run(f"{button}.click()")
    assert tab.run("document.querySelector('[aria-label=case]').value") == "default, with the fixes"
    tab.open(written(result, tmp_path))
    tab.press("j", "ArrowRight")
    assert tab.run("[...document.querySelectorAll('.yaml .removed, .yaml .added')].map(one => one.textContent)") == [
        "-  colour: blue\n",
        "+  colour: green\n",
    ]
    assert tab.console == []


def test_engines_are_side_by_side(tab: Browser, tmp_path: Path) -> None:
    other = replace(LAZY, engine=EngineId("argocd", "3.1"), actors=("argocd",))
    tab.open(written(replace(RESULT, played=(*RESULT.played, Played("", other))), tmp_path))
    titles = "[...document.querySelectorAll('.panel h2 b')].map(one => one.textContent)"
    assert tab.run(titles) == ["helm@4.2.3", "argocd@3.1"]
    tab.open(written(replace(RESULT, played=(*RESULT.played, Played("", other))), tmp_path), width=390)
    assert tab.run(titles) == ["helm@4.2.3"]


def test_of_two_thousand_objects_only_the_visible_ones_are_drawn(tab: Browser, tmp_path: Path) -> None:
    effects = ("created", "changed", "deleted", "created")
    refs = [Ref("ConfigMap", "default", f"object-{number:04}") for number in range(2000)]
    timeline = tuple(
        Event(at * len(refs) + number, at, "helm", "apply", ref, effect)  # type: ignore[arg-type]
        for at, effect in enumerate(effects)
        for number, ref in enumerate(refs)
    )
    lost = replace(FINDING, objects=(refs[1999],), evidence=(5999,))
    played = (Played("", replace(LAZY, timeline=timeline, steps=(*STEPS[:1], *STEPS[1:]))),)
    tab.open(written(replace(RESULT, findings=(lost,), played=played), tmp_path))
    assert tab.run("document.querySelector('.count').textContent") == "2000 objects"
    assert tab.run("document.querySelector('.layer').textContent.includes('object-1999')") is True
    assert tab.run("document.querySelectorAll('*').length") < 3000
    tab.run("document.querySelector('.scroll').scrollTop = 24000")
    tab.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 1)")
    assert tab.run("document.querySelector('.layer').textContent.includes('object-1000')") is True
    assert tab.console == []
