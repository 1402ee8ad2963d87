"""Who uses a library chart, and which of its templates."""

from __future__ import annotations

import json as standard_json
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.check import check
from seatrial.model.errors import CannotContinue
from seatrial.plan.plans import CheckOptions
from seatrial.report import json
from seatrial.report.page import Page
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.charts.consumers import (
    consumers_of,
    helpers_called,
    helpers_changed,
    with_library,
)

LIBRARY = "apiVersion: v2\nname: core\nversion: 1.0.0\ntype: library\n"
USES = CHART + "dependencies:\n- {name: core, version: 1.0.0, repository: 'file://../core'}\n"
HELPERS = """{{ define "core.outer" }}{{ include "core.inner" . }}{{ end }}
{{ define "core.inner" }}one{{ end }}
{{ define "core.other" }}{{/* include "core.inner" */}}other{{ end }}
"""


@pytest.fixture(autouse=True)
def charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"core/Chart.yaml": LIBRARY, "core/templates/_all.tpl": HELPERS})
    write(tmp_path, {"old/Chart.yaml": LIBRARY, "old/templates/_all.tpl": HELPERS.replace("}one{", "}two{")})
    write(tmp_path, {"deep/er/app/Chart.yaml": USES, "deep/er/app/templates/cm.yaml": _calls("core.outer")})
    write(tmp_path, {"plain/Chart.yaml": CHART, "plain/templates/cm.yaml": config_map("web")})


def _calls(name: str) -> str:
    return config_map("web") + f'data: {{say: {{{{ include "{name}" . }}}}}}\n'


def test_consumers_are_charts_that_list_the_library() -> None:
    assert list(consumers_of(open_any_chart("core"), ".")) == ["deep/er/app"]


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(CannotContinue, match=r"^--consumers nowhere: there is no such folder$"):
        list(consumers_of(open_any_chart("core"), "nowhere"))


def test_a_helper_is_called_also_through_another_but_not_in_a_comment() -> None:
    core = open_any_chart("core")
    assert helpers_called("deep/er/app", core) == {"core.outer", "core.inner"}
    write(Path(), {"deep/er/app/templates/cm.yaml": _calls("core.other")})
    assert helpers_called("deep/er/app", core) == {"core.other"}


def test_changed_helpers_are_those_that_read_otherwise_or_come_or_go() -> None:
    write(Path(), {"core/templates/_new.tpl": '{{ define "core.new" }}{{ end }}'})
    assert helpers_changed(open_any_chart("old"), open_any_chart("core")) == {"core.inner", "core.new"}


def test_a_consumer_takes_the_library_it_is_given() -> None:
    write(Path(), {"deep/er/core/Chart.yaml": LIBRARY, "deep/er/core/templates/_all.tpl": "{{/* empty */}}"})
    chart = with_library("deep/er/app", open_any_chart("old"), "app with old")
    assert (chart.path, chart.missing_dependencies, list(chart.files.subcharts)) == ("app with old", (), ["core"])


def test_the_report_for_programs_lists_consumers() -> None:
    result = check(CheckOptions(inputs=("core",), old="old", consumers="deep"))
    report = standard_json.loads(json.render(result, Page()))
    assert report["consumers"] == [
        {
            "chart": "deep/er/app",
            "helpers": ["core.inner"],
            "flipped": [],
            "changed": ["ConfigMap/default/web"],
        }
    ]
    assert [step["source"] for step in report["rehearsals"][0]["steps"]] == [
        "deep/er/app (core of old)",
        "deep/er/app",
        "deep/er/app",
    ]


def test_a_matrix_is_for_one_chart() -> None:
    with pytest.raises(CannotContinue, match=r"^--matrix and --consumers do not go together"):
        check(CheckOptions(inputs=("core",), consumers="deep", matrix=("a=1,2",)))
