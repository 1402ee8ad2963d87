"""Every rendered line of a template with its source line: `=` exact, `~` near, `_` in a file of helpers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chartfolder import CHART, write

from seatrial.helm import sdk as helmsdk
from seatrial.model.resource import Place
from seatrial.sources.charts.provenance import copies, provenance
from seatrial.text.source import Text

SIGNS = {"exact": "=", "near": "~"}

HELPERS = """\
{{- define "labels" -}}
app: x
tier: y
{{- end }}
{{- define "whole" -}}
kind: Whole
metadata: {}
{{ include "labels" . }}
{{- end }}
{{- define "more" }}
more: yes
{{- toYaml .labels | nindent 0 }}
{{ end -}}
"""


def shown(template: str, values: dict[str, Any], tmp_path: Path) -> str:
    """The rendered text, each line with its source line."""
    texts = [Text("_helpers.tpl", HELPERS), Text("t.yaml", template)]
    write(tmp_path, {"Chart.yaml": CHART, **{f"templates/{text.path}": text.content for text in texts}})
    rendered = _render(tmp_path, values, "t.yaml")
    made = copies({"t": texts[1]}, texts)
    write(tmp_path, {"templates/_named.tpl": made.named, "templates/copy.yaml": made.templates["t"]})
    found = provenance(Text("t.yaml", rendered), _render(tmp_path, values, "copy.yaml"), made.files)
    lines = []
    offset = 0
    for line in rendered.splitlines(keepends=True):
        place = found.at(offset + len(line) - len(line.lstrip(" ")))
        helper = "_" if place.file == "_helpers.tpl" else ""
        lines.append(f"{helper}{place.line}{SIGNS[place.sure]} {line.rstrip()}" if line.strip() else "")
        offset += len(line)
    return "\n".join(lines).strip("\n")


def _render(folder: Path, values: dict[str, Any], template: str) -> str:
    with helmsdk.Chart.load(folder) as chart:
        return helmsdk.render(chart, values, name="r", namespace="d")[f"demo/templates/{template}"]


def test_a_loop_repeats_its_lines(tmp_path: Path) -> None:
    template = """\
kind: A
items:
  {{- range $key, $value := .Values.items }}
  - name: {{ $key }}
    {{ $key }}: {{ $value | quote }}
  {{- end }}
end: true
"""
    assert (
        shown(template, {"items": {"a": 1, "b": 2}}, tmp_path)
        == """\
1= kind: A
2= items:
4=   - name: a
5=     a: "1"
4=   - name: b
5=     b: "2"
7= end: true"""
    )


@pytest.mark.parametrize(("chosen", "line"), [(True, 2), (False, 4)])
def test_the_branch_is_known_even_if_both_have_the_same_text(chosen: bool, line: int, tmp_path: Path) -> None:
    template = "{{- if .Values.on }}\nkind: A\n{{- else }}\nkind: A\n{{- end }}\nname: b\n"
    assert shown(template, {"on": chosen}, tmp_path) == f"{line}= kind: A\n6= name: b"


def test_text_of_a_named_template_is_placed_in_it(tmp_path: Path) -> None:
    template = """\
labels:
  {{- include "labels" . | nindent 2 }}
  {{- include "more" (dict "labels" .Values.labels) | nindent 2 }}
annotations: {{ include "labels" . | quote }}
first: {{ include "labels" . | trunc 6 }}
{{ template "whole" . }}
tier: {{ .Release.Name }}
"""
    assert (
        shown(template, {"labels": {"a": 1, "b": 2}}, tmp_path)
        == """\
1= labels:
_2=   app: x
_3=   tier: y

_11=   more: yes
3~   a: 1
3~   b: 2

4= annotations: "app: x\\ntier: y"
5= first: app: x
_6= kind: Whole
_7= metadata: {}
_2= app: x
_3= tier: y
7= tier: r"""
    )


def test_a_template_defined_twice_is_placed_near_its_call(tmp_path: Path) -> None:
    template = '{{ define "labels" }}app: mine{{ end }}\nlabels:\n  {{- include "labels" . | nindent 2 }}\n'
    assert shown(template, {}, tmp_path) == "2= labels:\n3~   app: x\n3~   tier: y"


def test_values_of_several_lines_are_placed_near_their_action(tmp_path: Path) -> None:
    template = """\
spec:
  {{- with .Values.spec }}
  given:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  a: 1
  text: |
{{ .Values.lines | indent 4 }}
  b: 2
"""
    assert (
        shown(template, {"spec": {"a": 1, "b": {"c": 2}}, "lines": "a: 1\nb: 2"}, tmp_path)
        == """\
1= spec:
3=   given:
4~     a: 1
4~     b:
4~       c: 2
6=   a: 1
7=   text: |
8~     a: 1
8~     b: 2
9=   b: 2"""
    )


def test_an_action_of_one_line_is_exact_and_one_of_several_is_near(tmp_path: Path) -> None:
    template = "a:\n{{ .Values.one }}\n{{ .Values.two }}\nb: {{ tpl .Values.one $ }}\n"
    assert (
        shown(template, {"one": "  x: 1", "two": "  y: 2\n  z: 3"}, tmp_path)
        == """\
1= a:
2=   x: 1
3~   y: 2
3~   z: 3
4= b:   x: 1"""
    )


def test_trimming_comments_variables_and_quotes_do_not_shift_places(tmp_path: Path) -> None:
    template = """\
{{- /* kind: }} it's "not" this */ -}}
{{- $x := "a }} b" -}}
   {{- $y := `{{ raw }}` }}

kind: {{ $x -}}
   {{- "!" }}
raw: {{ $y }}
{{- define "inner" }}
kind: Hidden
{{- end }}
{{ if eq $x "a }} b" -}}
    name: in
{{- end }}
last: {{ '}' }}
"""
    assert (
        shown(template, {}, tmp_path)
        == """\
5= kind: a }} b!
7= raw: {{ raw }}
12= name: in
14= last: 125"""
    )


def test_documents_of_one_template_keep_their_lines_apart(tmp_path: Path) -> None:
    template = "{{ range .Values.names }}\n---\nkind: A\nname: {{ . }}\n{{ end }}\n---\nkind: A\nname: last\n"
    assert (
        shown(template, {"names": ["x", "y"]}, tmp_path)
        == """\
2= ---
3= kind: A
4= name: x

2= ---
3= kind: A
4= name: y

6= ---
7= kind: A
8= name: last"""
    )


def test_break_in_a_loop_keeps_places(tmp_path: Path) -> None:
    template = (
        "{{- range .Values.n }}\na{{ . }}: 1\n{{- if eq . 2.0 }}{{ break }}{{ end }}\nb{{ . }}: 2\n{{- end }}\nc: 3\n"
    )
    assert shown(template, {"n": [1, 2, 3]}, tmp_path) == "2= a1: 1\n4= b1: 2\n2= a2: 1\n6= c: 3"


def test_random_values_are_near_and_the_rest_is_exact(tmp_path: Path) -> None:
    template = 'kind: Secret\ndata:\n  password: {{ randAlphaNum 32 | b64enc }}\n  user: "me"\n'
    origins = [line.split(" ")[0] for line in shown(template, {}, tmp_path).splitlines()]
    assert origins == ["1=", "2=", "3~", "4="]


def test_a_template_that_contains_our_marks_is_not_marked() -> None:
    text = Text("t.yaml", "kind: \ue000\n")
    made = copies({"t": text}, [text])
    assert made.templates == {}
    assert provenance(text, "", made.files).at(3) == Place("t.yaml", 1, "file")


def test_lines_that_are_not_always_rendered_are_never_exact() -> None:
    text = Text("t.yaml", "a: 1\nb: 2\nc: 3\nz: 9\n")
    made = copies({"t": text}, [text])
    found = provenance(Text("t.yaml", "a: 1\nb: 2\nz: 9\n"), made.templates["t"], made.files)
    assert [found.at(offset) for offset in (0, 5, 10)] == [Place("t.yaml", line, "near") for line in (1, 2, 4)]


def test_a_library_that_several_subcharts_use_is_one_file() -> None:
    texts = [Text("_helpers.tpl", HELPERS), Text("_helpers.tpl", HELPERS), Text("t.yaml", "kind: x\n")]
    made = copies({"t": texts[2]}, texts)
    found = provenance(Text("t.yaml", "kind: x\n"), made.templates["t"], made.files)
    assert found.at(0) == Place("t.yaml", 1)
