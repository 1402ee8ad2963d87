"""What a check rehearses again as if obstacles were repaired, and what it does not."""

from __future__ import annotations

from pathlib import Path

from seatrial.check import check
from seatrial.model.options import CheckOptions
from seatrial.model.result import Result

INVALID = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  labels: {{team: "not/valid"}}
  annotations: {{helm.sh/hook: pre-install}}
"""
FAILS = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{helm.sh/hook: pre-install}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: registry.example/main, command: [sh, -c, "exit 1"]}}]
"""


def _checked(folder: Path, namespace: str = "default", **templates: str) -> Result:
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text.format(name=name))
    return check(CheckOptions(inputs=(str(folder),), namespace=namespace))


def _rehearsed(result: Result) -> list[tuple[str, str, int]]:
    """Case, schedule and number of repairs."""
    return [(one.case, one.rehearsal.schedule, len(one.rehearsal.repaired)) for one in result.continued]


def test_what_is_invalid_everywhere_is_rehearsed_on_an_ordinary_cluster_only(tmp_path: Path) -> None:
    result = _checked(tmp_path, one=INVALID, two=INVALID)
    assert [(one.rule, one.certainty) for one in result.findings] == [("object-is-invalid", "will")] * 2
    assert _rehearsed(result) == [("", "ordinary", 1), ("", "ordinary", 2), ("--wait", "ordinary", 2)]


def test_how_certain_a_failing_script_is_takes_all_three_clusters(tmp_path: Path) -> None:
    result = _checked(tmp_path, one=FAILS, two=FAILS)
    assert [one.certainty for one in result.findings] == ["will", "will"]
    first, *others = _rehearsed(result)
    assert first == ("", "ordinary", 1)
    assert others[:2] == [("", "lazy", 1), ("", "eager", 1)]


def test_a_hook_that_is_refused_and_repaired_is_waited_for(tmp_path: Path) -> None:
    job = FAILS.replace("annotations:", 'labels: {{team: "not/valid"}}\n  annotations:').replace("exit 1", "exit 0")
    before = INVALID.replace('  labels: {{team: "not/valid"}}\n', "")
    result = _checked(tmp_path, a=before, job=job, last=INVALID.replace("pre-install", "post-install"))
    assert [one.objects[0].name for one in result.findings if one.rule == "object-is-invalid"] == ["job", "last"]
    assert all(step.outcome != "hung" for one in result.continued for step in one.rehearsal.steps)


def test_a_namespace_that_is_being_deleted_is_one_obstacle(tmp_path: Path) -> None:
    """Helm creates objects of a kind side by side, and reports them by their names."""
    hook = "annotations: {{helm.sh/hook: pre-install}}"
    own = f"apiVersion: v1\nkind: Namespace\nmetadata: {{{{name: shop, {hook}}}}}"
    plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}"
    result = _checked(tmp_path, "shop", own=own, a=plain, b=plain, c=plain)
    assert [one.rehearsal.repaired for one in result.continued][:1] == [("Namespace/shop",)]
    said = result.played[0].rehearsal.steps[0].error.splitlines()
    assert [line.partition("object ")[2].partition(" ")[0] for line in said] == ["shop/a", "shop/b", "shop/c"]
