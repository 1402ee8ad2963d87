"""The consumers of a library chart, and the templates that they call."""

from __future__ import annotations

import json as standard_json
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from gitcheckout import commit, git

from seatrial.check import check
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.plan.plans import plans
from seatrial.report import json
from seatrial.report.page import Page
from seatrial.sources.charts.cascade import moves
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


def test_consumers_are_charts_that_depend_on_the_library() -> None:
    assert list(consumers_of(open_any_chart("core"), ".")) == ["deep/er/app"]


def test_a_missing_consumers_folder_is_refused() -> None:
    with pytest.raises(CannotContinue, match=r"^--consumers nowhere: no such folder$"):
        list(consumers_of(open_any_chart("core"), "nowhere"))


def test_a_helper_may_be_called_through_another_but_not_in_a_comment() -> None:
    core = open_any_chart("core")
    assert helpers_called("deep/er/app", core) == {"core.outer", "core.inner"}
    write(Path(), {"deep/er/app/templates/cm.yaml": _calls("core.other")})
    assert helpers_called("deep/er/app", core) == {"core.other"}


def test_changed_helpers_are_those_changed_added_or_removed() -> None:
    write(Path(), {"core/templates/_new.tpl": '{{ define "core.new" }}{{ end }}'})
    assert helpers_changed(open_any_chart("old"), open_any_chart("core")) == {"core.inner", "core.new"}


def test_a_consumer_uses_the_given_library() -> None:
    write(Path(), {"deep/er/core/Chart.yaml": LIBRARY, "deep/er/core/templates/_all.tpl": "{{/* empty */}}"})
    chart = with_library("deep/er/app", open_any_chart("old"), "app with old")
    assert (chart.path, chart.missing_dependencies, list(chart.files.subcharts)) == ("app with old", (), ["core"])


def test_the_json_report_lists_consumers() -> None:
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


def test_matrix_does_not_work_with_consumers() -> None:
    with pytest.raises(CannotContinue, match=r"^--matrix does not work with --consumers"):
        check(CheckOptions(inputs=("core",), consumers="deep", matrix=("a=1,2",)))


def test_consumers_are_rehearsed_with_the_helm_that_is_asked_for() -> None:
    (plan,) = plans(CheckOptions(inputs=("core",), consumers="deep", engines=("helm@3.19.4",)))
    assert (str(plan.engine), plan.steps[0].act.simulated) == ("helm@3.19.4", True)


def test_a_chart_must_get_a_new_version_if_it_has_the_old_one(tmp_path: Path) -> None:
    """In a commit, and in a copy of the charts."""
    raised = {"charts/core/Chart.yaml": LIBRARY.replace("1.0.0", "1.1.0"), "charts/core/templates/_a.tpl": HELPERS}
    for name in ("app", "web"):
        raised[f"charts/{name}/Chart.yaml"] = USES.replace("demo", name)
    for folder in (tmp_path, tmp_path / "copy"):
        write(folder, {**raised, "charts/core/Chart.yaml": LIBRARY})
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "v1")
    write(tmp_path, {**raised, "charts/web/Chart.yaml": USES.replace("demo\nversion: 1.0.0", "web\nversion: 1.0.1")})
    library = open_any_chart("charts/core")
    for old in ("git:v1", "copy/charts/core"):
        said = list(moves(library, open_any_chart(old, "charts/core"), "charts"))
        assert [words.partition(" and ")[0] for words in said[1:]] == [
            f"app moves with core: version 1.0.0 (must be raised: it is the same with {old})",
            "web moves with core: version 1.0.1",
        ]
