"""Cases of a chart that cannot be rehearsed: which ones end the check, and which ones are named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.result import NotRehearsed
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
NEEDS_NAME = f'{CONFIG}data: {{name: {{{{ required "set name" .Values.name }}}}}}\n'
OPTIONS = CheckOptions(inputs=("new",))


def chart(folder: str, template: str, ci: Mapping[str, str] = {}, values: str = "") -> None:
    for name, text in {
        "Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
        "values.yaml": values,
        "templates/config.yaml": template,
        **{f"ci/{name}-values.yaml": text for name, text in ci.items()},
    }.items():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(options: CheckOptions = OPTIONS) -> list[Plan]:
    return list(plans(options))


def names(found: list[Plan]) -> list[str]:
    return [plan.case.name for plan in found]


def notes(found: list[Plan]) -> list[str]:
    return [note for plan in found for note in plan.case.notes]


def parts(found: list[Plan]) -> list[NotRehearsed]:
    return [part for plan in found for part in plan.case.not_rehearsed]


def test_default_values_that_do_not_render_are_a_note_if_those_in_ci_do() -> None:
    chart("new", NEEDS_NAME, {"named": "name: a"})
    found = planned()
    assert names(found) == ["ci/named-values.yaml", "ci/named-values.yaml, --wait"]
    assert [note.partition(": execution")[0] for note in notes(found)] == [
        "default values: not rehearsed: new/templates/config.yaml:4:16"
    ]
    assert parts(found) == []
    waits = found[1].steps[0]
    assert waits.step.flags == ("--wait",)
    assert waits.release is not None and waits.release.values == {"name": "a"}


def test_default_values_that_render_nothing_are_a_note_if_those_in_ci_render_something() -> None:
    chart("new", "{{ if .Values.enabled }}\n" + CONFIG + "{{ end }}", {"off": "enabled: false", "on": "enabled: true"})
    found = planned()
    assert names(found) == ["ci/on-values.yaml", "ci/on-values.yaml, --wait"]
    assert notes(found) == [
        "default values: not rehearsed: new: renders no Kubernetes objects",
        "ci/off-values.yaml: not rehearsed: new: renders no Kubernetes objects",
    ]


def test_charts_without_a_case_that_renders_end_the_check() -> None:
    chart("new", NEEDS_NAME, {"other": "size: 1"})
    with pytest.raises(CannotContinue, match=r"with ci/other-values.yaml: .*set name"):
        planned()
    chart("new", "{{ if .Values.enabled }}\n" + CONFIG + "{{ end }}", {"other": "size: 1"})
    with pytest.raises(NothingToCheck, match="renders no Kubernetes objects"):
        planned()


def test_values_of_the_user_are_the_only_case() -> None:
    chart("new", NEEDS_NAME, {"named": "name: a"})
    with pytest.raises(CannotContinue, match="set name"):
        planned(replace(OPTIONS, values=replace(OPTIONS.values, set=("size=1",))))


def test_an_upgrade_that_stops_to_render_with_default_values_ends_the_check() -> None:
    chart("old", CONFIG)
    chart("new", NEEDS_NAME, {"named": "name: a"})
    with pytest.raises(CannotContinue, match=r"^new/.*set name"):
        planned(replace(OPTIONS, old="old"))


@pytest.mark.parametrize("engine", ["helm", "argocd"])
def test_the_old_chart_is_left_out_where_it_does_not_render(engine: str) -> None:
    chart("old", NEEDS_NAME)
    chart("new", CONFIG, {"a": "name: a", "b": "size: 1"})
    found = planned(replace(OPTIONS, old="old", engines=(engine,)))
    sources = {plan.case.name: [step.step.source for step in plan.steps if step.step.source] for plan in found}
    assert sources[""][0] == "new"
    assert sources["ci/a-values.yaml"][:2] == ["old", "new"]
    assert set(sources["ci/b-values.yaml"]) == {"new"}
    assert [(part.case, part.step) for part in parts(found)] == [
        ("default values", "upgrade from old"),
        ("ci/b-values.yaml", "upgrade from old"),
    ]
    if engine == "helm":
        assert sources["ci/a-values.yaml, --wait"] == ["old", "new"]


def test_an_old_chart_that_does_not_render_ends_the_check_if_there_is_no_other_case() -> None:
    chart("old", NEEDS_NAME)
    chart("new", CONFIG)
    with pytest.raises(CannotContinue, match=r"^old/.*set name"):
        planned(replace(OPTIONS, old="old"))


def test_yaml_of_the_old_chart_that_is_broken_with_new_values_is_left_out() -> None:
    chart("old", CONFIG + "data: {{ .Values.data }}\n", values="data: {}")
    chart("new", CONFIG, {"a": "data: '{{'"})
    found = planned(replace(OPTIONS, old="old"))
    assert [(part.case, part.step) for part in parts(found)] == [("ci/a-values.yaml", "upgrade from old")]


def test_a_part_is_about_its_case_and_a_chart_about_all_of_its_cases() -> None:
    part = NotRehearsed("why", "charts/app")
    assert part.is_about("charts/app") and part.is_about("charts/app (ci/a-values.yaml)")
    assert not part.is_about("charts/application")
    default = NotRehearsed("why", "default values", "upgrade from old")
    assert default.is_about("") and not default.is_about("ci/a-values.yaml")
    of_folder = replace(default, case="charts/app (default values)")
    assert of_folder.is_about("charts/app") and not of_folder.is_about("charts/app (--wait)")
