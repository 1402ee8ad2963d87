"""`--matrix`: combinations of values, transitions between them, and the objects that differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.check import check
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref
from seatrial.model.timeline import SCHEDULES
from seatrial.plan.matrix import (
    TRANSITIONS_MAX,
    Cell,
    Transition,
    cells,
    differences,
    not_chosen,
    transitions,
    without_difference,
)
from seatrial.report import full, json
from seatrial.report.page import Page


def release(**objects: str) -> Release:
    return Release("r", "default", "chart", tuple(_resource(name, what) for name, what in objects.items()))


def _resource(name: str, what: str) -> Resource:
    annotations = {"helm.sh/hook": "pre-install"} if what == "hook" else {}
    body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}}
    body["data"] = {"what": what}
    return Resource(Ref("ConfigMap", "default", name), body, Origin("cm.yaml"))


def test_cells_are_all_combinations_in_the_order_given() -> None:
    assert [cell.name for cell in cells(["a.b=1,2", "tls=true,false"])] == [
        "a.b=1, tls=true",
        "a.b=1, tls=false",
        "a.b=2, tls=true",
        "a.b=2, tls=false",
    ]


@pytest.mark.parametrize("given", ["tls", "tls=", "=true"])
def test_matrix_needs_a_key_and_values(given: str) -> None:
    with pytest.raises(CannotContinue) as why:
        cells([given])
    assert str(why.value) == f"--matrix {given}: needs a key and its values, such as --matrix feature.hooks=false,true"


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(CannotContinue) as why:
        cells(["a=1,2,3,4,5,6", "b=1,2,3,4,5,6"])
    assert str(why.value) == "--matrix: 36 combinations, more than the maximum of 32; give fewer keys or values"


def test_a_transition_is_named_after_what_changes() -> None:
    old, new = Cell(("a=1", "tls=false", "b=2")), Cell(("a=1", "tls=true", "b=3"))
    assert Transition(old, new).name == "tls: false -> true, b: 2 -> 3"
    assert Transition(old, old).name == "a=1, tls=false, b=2"


def test_transitions_that_change_objects_are_chosen_and_hook_flips_come_first() -> None:
    known = {
        Cell(("x=a",)): release(one="plain"),
        Cell(("x=b",)): release(one="plain"),
        Cell(("x=c",)): release(one="plain", two="plain"),
        Cell(("x=d",)): release(one="hook"),
    }
    chosen, left = transitions(known, known)
    assert left == []
    assert [transition.name for transition in chosen] == [
        *("x=a", "x=b", "x=c", "x=d"),
        *("x: a -> d", "x: b -> d", "x: c -> d", "x: d -> a", "x: d -> b", "x: d -> c"),
        *("x: a -> c", "x: b -> c", "x: c -> a", "x: c -> b"),
    ]


def test_a_transition_that_only_changes_content_comes_last() -> None:
    known = {
        Cell(("x=a",)): release(one="plain"),
        Cell(("x=b",)): release(one="an image"),
        Cell(("x=c",)): release(one="plain", two="plain"),
    }
    chosen, _ = transitions(known, known)
    assert [transition.name for transition in chosen[3:]] == [
        *("x: a -> c", "x: b -> c", "x: c -> a", "x: c -> b"),
        *("x: a -> b", "x: b -> a"),
    ]


def test_transitions_beyond_the_limit_are_named() -> None:
    known = {Cell((f"x={number}",)): release(**{f"only-{number}": "plain"}) for number in range(6)}
    chosen, left = transitions(known, known)
    assert (len(chosen), len(left)) == (TRANSITIONS_MAX, 36 - TRANSITIONS_MAX)
    (part,) = not_chosen(left, chosen)
    assert str(part) == "--matrix: 12 of 36 upgrades: x: 3 -> 4; x: 3 -> 5; x: 4 -> 0; and 9 more"


def test_many_cells_leave_room_for_upgrades_between_them() -> None:
    known = {Cell((f"x={number}",)): release(**{f"only-{number}": "plain"}) for number in range(30)}
    chosen, left = transitions(known, known)
    assert sum(transition.old != transition.new for transition in chosen) == TRANSITIONS_MAX // 2
    assert len(left) == 900 - TRANSITIONS_MAX


def test_cells_without_a_difference_are_named() -> None:
    known = {Cell((f"x={number}",)): release(one="plain") for number in range(3)}
    (note,) = without_difference(known)
    assert note == ("--matrix: no upgrade between x=0 and x=1 (and 2 more like it) is rehearsed: no object differs")


def test_only_objects_that_differ_between_cells_are_reported() -> None:
    found = list(
        differences(
            {"tls=on": release(one="plain", two="hook", three="plain"), "tls=off": release(one="plain", two="plain")}
        )
    )
    assert [(one.object, one.states) for one in found] == [
        ("ConfigMap/default/three", (("tls=on", "regular"), ("tls=off", "absent"))),
        ("ConfigMap/default/two", (("tls=on", "a hook"), ("tls=off", "regular"))),
    ]


GATED = "{{ if .Values.tls }}\n" + config_map("certs") + "{{ end }}\n---\n" + config_map("web")


def test_the_report_lists_objects_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"chart/Chart.yaml": CHART, "chart/templates/web.yaml": GATED, "old/Chart.yaml": CHART})
    write(tmp_path, {"old/templates/web.yaml": config_map("web")})
    result = check(CheckOptions(inputs=("chart",), old="old", matrix=("tls=true,false",)))
    assert [(played.case, len(played.rehearsal.steps)) for played in result.played[:: len(SCHEDULES)]] == [
        *(("", 6), ("--wait", 2)),
        *(("tls=true", 3), ("tls=false", 3), ("tls: false -> true", 3)),
    ]
    assert "ConfigMap/default/certs: regular with tls=true, absent with tls=false (chart/templates/web.yaml:5)" in (
        full.render(result, Page())
    )
    assert '"differences": [' in json.render(result, Page())


@pytest.mark.parametrize(
    ("template", "asked"),
    [
        ("{{ if .Release.IsUpgrade }}\n" + config_map("late") + "{{ end }}", "late.yaml:1 .Release.IsUpgrade"),
        (config_map("late-{{ randAlphaNum 4 | lower }}"), "late.yaml:4 randAlphaNum"),
        ("{{/* lookup */}}\n" + config_map("late{{ include `when` . }}"), "_w.tpl:2 .Release.IsInstall"),
        (
            config_map("late-{{ .Release.IsInstall }}") + "{{ if .Release.Revision }}{{ end }}",
            "late.yaml:5 .Release.Revision",
        ),
    ],
    ids=["if", "chance", "in a helper", "what decides comes first"],
)
def test_the_condition_in_the_template_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, asked: str
) -> None:
    monkeypatch.chdir(tmp_path)
    helper = "{{ define `when` }}\n{{- if .Release.IsInstall }}-once{{ end }}\n{{- end }}"
    write(tmp_path, {"chart/Chart.yaml": CHART, "chart/templates/web.yaml": config_map("web")})
    write(tmp_path, {"chart/templates/late.yaml": template, "chart/templates/_w.tpl": helper})
    result = check(CheckOptions(inputs=("chart",)))
    assert {f"{d.asked} {d.asks}" for d in result.differences} == {f"chart/templates/{asked}"}


def test_an_error_names_the_cell_that_does_not_render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"chart/Chart.yaml": CHART, "chart/values.yaml": "size: 1\n"})
    write(tmp_path, {"chart/templates/web.yaml": config_map('{{ required "say" .Values.size }}')})
    with pytest.raises(CannotContinue, match=r"^with size=null: chart/templates/web.yaml:4:11: "):
        check(CheckOptions(inputs=("chart",), matrix=("size=1,null",)))
