"""Every rendered line of a template, with the line that it came from: `=` exact, `~` near, `?` only the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chartfolder import CHART, write

from seatrial import helmsdk
from seatrial.sources.provenance import marked, provenance
from seatrial.text import Text

SIGNS = {"exact": "=", "near": "~", "file": "?"}

HELPERS = """\
{{- define "labels" -}}
app: x
tier: y
{{- end }}
{{- define "whole" -}}
kind: Whole
metadata: {}
{{- end }}
"""


def shown(template: str, values: dict[str, Any], tmp_path: Path) -> str:
    """The rendered text, each line after its origin."""
    write(tmp_path, {"Chart.yaml": CHART, "templates/_helpers.tpl": HELPERS, "templates/t.yaml": template})
    rendered = _render(tmp_path, values)
    again = marked(Text("t.yaml", template))
    assert again is not None
    write(tmp_path, {"templates/t.yaml": again.content})
    found = provenance(Text("t.yaml", rendered), _render(tmp_path, values))
    lines = []
    offset = 0
    for line in rendered.splitlines(keepends=True):
        origin = found.at(offset + len(line) - len(line.lstrip(" ")))
        lines.append(f"{origin.line}{SIGNS[origin.sure]} {line.rstrip()}" if line.strip() else "")
        offset += len(line)
    return "\n".join(lines).strip("\n")


def _render(folder: Path, values: dict[str, Any]) -> str:
    with helmsdk.Chart.load(folder) as chart:
        return helmsdk.render(chart, values, name="r", namespace="d")["demo/templates/t.yaml"]


def test_a_loop_gives_the_same_lines_again_and_again(tmp_path: Path) -> None:
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
def test_the_branch_that_was_taken_is_known_even_where_both_read_the_same(
    chosen: bool, line: int, tmp_path: Path
) -> None:
    template = "{{- if .Values.on }}\nkind: A\n{{- else }}\nkind: A\n{{- end }}\nname: b\n"
    assert shown(template, {"on": chosen}, tmp_path) == f"{line}= kind: A\n6= name: b"


def test_what_an_include_wrote_is_near_the_line_that_calls_it(tmp_path: Path) -> None:
    template = """\
labels:
  {{- include "labels" . | nindent 2 }}
annotations: {{ include "labels" . | quote }}
tier: {{ .Release.Name }}
"""
    assert (
        shown(template, {}, tmp_path)
        == """\
1= labels:
2~   app: x
2~   tier: y
3= annotations: "app: x\\ntier: y"
4= tier: r"""
    )


def test_a_whole_file_may_be_an_include(tmp_path: Path) -> None:
    assert shown('{{ include "whole" . }}\n', {}, tmp_path) == "1~ kind: Whole\n1~ metadata: {}"


def test_values_written_out_are_near_the_line_that_writes_them(tmp_path: Path) -> None:
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


def test_trimming_comments_variables_and_quotes_do_not_confuse(tmp_path: Path) -> None:
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


def test_a_loop_that_is_left_early(tmp_path: Path) -> None:
    template = (
        "{{- range .Values.n }}\na{{ . }}: 1\n{{- if eq . 2.0 }}{{ break }}{{ end }}\nb{{ . }}: 2\n{{- end }}\nc: 3\n"
    )
    assert shown(template, {"n": [1, 2, 3]}, tmp_path) == "2= a1: 1\n4= b1: 2\n2= a2: 1\n6= c: 3"


def test_what_differs_each_time_is_near_and_the_rest_is_exact(tmp_path: Path) -> None:
    template = 'kind: Secret\ndata:\n  password: {{ randAlphaNum 32 | b64enc }}\n  user: "me"\n'
    origins = [line.split(" ")[0] for line in shown(template, {}, tmp_path).splitlines()]
    assert origins == ["1=", "2=", "3~", "4="]


def test_a_template_that_uses_our_marks_is_left_alone() -> None:
    assert marked(Text("t.yaml", "kind: \ue000\n")) is None
    nowhere = provenance(Text("t.yaml", "kind: \ue000\n"), None).at(3)
    assert (nowhere.line, nowhere.sure) == (1, "file")


def test_lines_that_come_and_go_are_never_called_exact() -> None:
    once = "a: 1\nb: 2\nz: 9\n"
    template = Text("t.yaml", "a: 1\nb: 2\nc: {{ .x }}\nz: 9\n")
    again = marked(template)
    assert again is not None
    found = provenance(Text("t.yaml", once), again.content)
    assert [(o.line, o.sure) for o in map(found.at, (0, 5, 10))] == [(1, "near"), (2, "near"), (4, "near")]
