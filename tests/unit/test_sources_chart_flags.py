"""The flags that a change between two revisions of a chart is about."""

from pathlib import Path
from textwrap import dedent

import pytest
from chartfolder import CHART, write

from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.flags import flags_of_change

VALUES = "a: {b: false, live: true, text: word, list: [], map: {}, none: null}\n"


def flags(tmp_path: Path, old: dict[str, str], new: dict[str, str], **values: object) -> list[str]:
    """The settings of the flags between two charts that share all other files."""
    for name, files in (("old", old), ("new", new)):
        write(tmp_path / name, {"Chart.yaml": CHART, "values.yaml": VALUES, **files})
    before, after = (open_chart(str(tmp_path / name)) for name in ("old", "new"))
    return [flag.setting for flag in flags_of_change(before.files, after.files, values)]


def of_template(tmp_path: Path, template: str, helpers: str = "") -> list[str]:
    """The flags of a template that is new."""
    return flags(tmp_path, {}, {"templates/x.yaml": dedent(template), "templates/_h.tpl": dedent(helpers)})


@pytest.mark.parametrize(
    "condition",
    [
        ".Values.a.b",
        "$.Values.a.b",
        "(.Values.a).b",
        "not .Values.a.b",
        "and .Release.IsInstall (or .Values.a.b (eq 1 2))",
        "eq .Values.a.b true",
        'eq (toString .Values.a.b) "true"',
        'get .Values.a "b"',
        'index .Values "a" "b"',
        'dig "b" false .Values.a',
        ".Values.a.b | default false",
        "default false .Values.a.b",
        "(.Values.a | default dict).b",
    ],
)
def test_a_condition_reads_a_boolean(tmp_path: Path, condition: str) -> None:
    assert of_template(tmp_path, f"{{{{ if {condition} }}}}x: 1{{{{ end }}}}\n") == ["a.b=true"]


@pytest.mark.parametrize(
    "condition", [".Values.a.text", ".Values.a.list", "gt (len .Values.a.map) 0", ".Release.IsInstall"]
)
def test_other_values_are_not_toggled(tmp_path: Path, condition: str) -> None:
    assert of_template(tmp_path, f"{{{{ if {condition} }}}}x: 1{{{{ end }}}}\n") == []


def test_a_flag_that_is_on_is_toggled_off(tmp_path: Path) -> None:
    assert of_template(tmp_path, "{{ if .Values.a.live }}x: 1{{ end }}\n") == ["a.live=false"]


def test_with_and_variables_say_which_value_is_meant(tmp_path: Path) -> None:
    inside = "{{ with .Values.a }}{{ if .b }}x: 1{{ end }}{{ end }}\n"
    assert of_template(tmp_path, inside) == ["a.b=true"]
    assert of_template(tmp_path, "{{ $a := .Values.a }}{{ if $a.b }}x: 1{{ end }}\n") == ["a.b=true"]
    both = "{{ $any := or .Values.a.b .Values.a.live }}{{ if $any }}x: 1{{ end }}\n"
    assert of_template(tmp_path, both) == ["a.b=true", "a.live=false"]


def test_an_element_of_a_list_is_no_flag(tmp_path: Path) -> None:
    assert of_template(tmp_path, "{{ range .Values.a.list }}{{ if .enabled }}x: 1{{ end }}{{ end }}\n") == []


def test_a_caller_says_what_the_dot_of_a_named_template_is(tmp_path: Path) -> None:
    helper = '{{ define "h" }}{{ if .flag }}{{ if .top.Values.a.live }}x: 1{{ end }}{{ end }}{{ end }}'
    call = '{{ include "h" (dict "top" $ "flag" .Values.a.b) }}\n'
    assert of_template(tmp_path, call, helper) == ["a.b=true", "a.live=false"]
    assert of_template(tmp_path, '{{ include "h" .Values.a }}\n', '{{ define "h" }}{{ if .b }}x{{ end }}{{ end }}') == [
        "a.b=true"
    ]


def test_a_condition_may_ask_a_named_template(tmp_path: Path) -> None:
    helper = '{{ define "h" }}{{ if .Values.a.b }}true{{ end }}{{ end }}'
    assert of_template(tmp_path, '{{ if include "h" . }}x: 1{{ end }}\n', helper) == ["a.b=true"]


def test_a_value_that_has_none_is_a_boolean_by_its_use(tmp_path: Path) -> None:
    assert of_template(tmp_path, "{{ if (.Values.new).flag }}x: 1{{ end }}\n") == ["new.flag=true"]
    assert of_template(tmp_path, "{{ if .Values.a.none }}x: {{ .Values.a.none }}{{ end }}\n") == []
    assert of_template(tmp_path, '{{ if eq .Values.mode "ha" }}x: 1{{ end }}\n') == []
    assert of_template(tmp_path, "{{ with .Values.a.none }}x: {{ . }}{{ end }}\n") == []


def test_only_changed_templates_and_named_templates_count(tmp_path: Path) -> None:
    same = {"templates/same.yaml": "{{ if .Values.a.live }}x: 1{{ end }}\n"}
    one = '{{ define "one" }}{{ if .Values.a.b }}X{{ end }}{{ end }}\n\n'
    helpers = one + '{{ define "two" }}{{ if .Values.a.live }}2{{ end }}{{ end }}\n'
    uses = {"templates/uses.yaml": '{{ include "one" . }}{{ include "two" . }}\n'}
    old = {**same, **uses, "templates/_h.tpl": helpers.replace("X", "0")}
    assert flags(tmp_path, old, {**same, **uses, "templates/_h.tpl": helpers}) == ["a.b=true"]


def test_a_condition_around_the_call_of_a_changed_named_template_counts(tmp_path: Path) -> None:
    uses = {"templates/uses.yaml": '{{ if .Values.a.b }}{{ include "h" . }}{{ end }}\n'}
    old, new = ({**uses, "templates/_h.tpl": f'{{{{ define "h" }}}}{text}{{{{ end }}}}\n'} for text in "12")
    assert flags(tmp_path, old, new) == ["a.b=true"]


def test_the_nearest_block_comes_first(tmp_path: Path) -> None:
    lines = [
        "{{ if .Values.a.live }}",
        "x: 1",
        "{{ end }}",
        "y: 1",
        "{{ if .Values.a.b }}",
        "z: 1",
        "w: 1",
        "{{ end }}",
    ]
    far = "\n".join(lines)
    assert flags(tmp_path, {"templates/x.yaml": far}, {"templates/x.yaml": far.replace("w: 1", "w: 2")}) == [
        "a.b=true",
        "a.live=false",
    ]


def test_a_flag_of_a_removed_template_counts(tmp_path: Path) -> None:
    assert flags(tmp_path, {"templates/x.yaml": "{{ if .Values.a.b }}x: 1{{ end }}\n"}, {}) == ["a.b=true"]


def test_a_value_that_the_user_gives_is_not_toggled(tmp_path: Path) -> None:
    new = {"templates/x.yaml": "{{ if .Values.a.b }}x: 1{{ end }}\n"}
    assert flags(tmp_path, {}, new, a={"b": True}) == []


def test_values_of_a_subchart_are_under_its_alias_and_its_condition_counts(tmp_path: Path) -> None:
    parent = CHART + "dependencies: [{name: sub, version: 1.0.0, alias: db, condition: db.enabled}]\n"
    sub = {
        "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
        "charts/sub/values.yaml": "x: {w: true}\n",
    }
    template = "{{ if .Values.x.w }}{{ if .Values.global.z }}1{{ end }}{{ end }}\n"
    shared = {"Chart.yaml": parent, **sub, "values.yaml": "db: {enabled: false}\nglobal: {z: false}\n"}
    new = {**shared, "charts/sub/templates/x.yaml": template}
    assert flags(tmp_path, shared, new) == ["db.x.w=false", "global.z=true", "db.enabled=true"]


def test_a_key_with_a_dot_is_escaped(tmp_path: Path) -> None:
    new = {"values.yaml": "a.b: {c: false}\n", "templates/x.yaml": '{{ if (index .Values "a.b").c }}x: 1{{ end }}\n'}
    assert flags(tmp_path, {"values.yaml": "a.b: {c: false}\n"}, new) == ["a\\.b.c=true"]
