"""Trial files: their schema, those that are generated, and what must be so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from seatrial.check import run
from seatrial.engines.engine import load
from seatrial.evidence.expectations import unmet, unwanted
from seatrial.generate import trial as files
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Finding
from seatrial.model.options import CheckOptions
from seatrial.model.trial import Expectations, Expected, StepExpectation, Trial, parse
from seatrial.plan.plans import plans
from seatrial.plan.trial_schema import schema
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

DOCS = Path(__file__).parents[2] / "docs"
STORIES = Path(__file__).parents[1] / "scenarios"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"
WHOLE = """
engine: [helm, argocd@2.14]
namespace: shop
release: shop
assume:
  kubernetes: "1.33"
  only: false
  absent: [Secret/shop/token]
  operators: [cert-manager@1.16, {name: gates, kinds: [Gate.canal.example]}]
  crds: [crds.yaml]
  objects: [cluster.yaml]
  loadBalancers: none
  ingresses: none
  storageClasses: [{name: fast, binding: WaitForFirstConsumer, default: true}]
steps:
  - install: charts/v1
    values: [prod.yaml]
    set: [a=b]
    flags: [--wait]
    settle: false
    kill: Deployment/shop/web
    expect: {outcome: failed, exists: [ConfigMap/shop/web], absent: [Secret/shop/web]}
  - rollback: 1
  - rollback
  - uninstall: {}
  - apply: manual.yaml
  - delete: ConfigMap/shop/web
  - rebuild:
      - install: charts/v1
        needs: []
expect:
  neverDeleted: [PersistentVolumeClaim/shop/data]
  noFindings: [ST]
  allowFindings: [ST2]
"""


def read(text: str) -> Any:
    return next(documents(Text("trial.yaml", text))).body


def parsed(text: str) -> Trial:
    return parse(read(text), lambda name: load(name).actions, place="trial.yaml")


def test_the_published_schema_is_that_of_the_types() -> None:
    assert (DOCS / "trial.schema.json").read_text() == schema()


def test_a_file_that_says_everything_fits_the_schema_and_is_read() -> None:
    jsonschema.validate(read(WHOLE), json.loads(schema()))
    assert parsed(WHOLE).expect == Expectations(("PersistentVolumeClaim/shop/data",), ("ST",), ("ST2",))
    assert parsed(WHOLE).steps[0].expect.outcome == "failed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": []},
        {"steps": [{"instal": "x"}]},
        {"steps": [{"install": "x", "upgrade": "y"}]},
        {"steps": [{"install": "x", "expect": {"outcome": "well"}}]},
        {"steps": ["uninstall"], "expect": {"never": []}},
    ],
)
def test_what_the_schema_refuses_is_refused(wrong: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json.loads(schema()))
    with pytest.raises(CannotContinue):
        parse(wrong, lambda name: load(name).actions, place="trial.yaml")


def test_trial_files_of_stories_fit_the_schema() -> None:
    checked = 0
    for path in STORIES.glob("*.md"):
        for part in path.read_text().split("```yaml file=")[1:]:
            name, _, text = part.partition("```")[0].partition("\n")
            if name == "trial.yaml":
                jsonschema.validate(read(text), json.loads(schema()))
                checked += 1
    assert checked >= 10


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckOptions:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.yaml").write_text(CONFIG)
    return CheckOptions(inputs=("app.yaml",), engines=("argocd",), namespace="shop")


def test_a_generated_test_fits_the_schema_and_holds(options: CheckOptions, tmp_path: Path) -> None:
    done = run(options, "ordinary")
    text = files.test(next(plans(options)), options, done.rehearsal, ())
    jsonschema.validate(read(text), json.loads(schema()))
    (tmp_path / "trial.yaml").write_text(text)
    again = run(CheckOptions(inputs=("trial.yaml",)), "ordinary")
    assert again.expected.trial.never_deleted == ("ConfigMap/shop/shop",)
    assert again.expected.steps[0].exists == ("ConfigMap/shop/shop",)
    assert list(unmet(again.rehearsal, again.expected)) == []


def test_each_expectation_that_is_not_met_is_named(options: CheckOptions) -> None:
    rehearsal = run(options, "ordinary").rehearsal
    first = StepExpectation("failed", ("Secret/shop/gone",), ("ConfigMap/shop/shop",))
    never = Expectations(("Secret/shop/gone",))
    assert list(unmet(rehearsal, Expected((first,), never))) == [
        "step 1, sync: ok, not failed",
        "step 1, sync: Secret/shop/gone does not exist",
        "step 1, sync: ConfigMap/shop/shop exists",
        "Secret/shop/gone must never be deleted, and was never created",
    ]


def test_a_removal_may_delete_what_is_never_deleted(options: CheckOptions) -> None:
    rehearsal = run(options, "ordinary").rehearsal
    assert list(unmet(rehearsal, Expected((), Expectations(("ConfigMap/shop/shop",))))) == []


def test_findings_are_unwanted_by_name_code_or_beginning() -> None:
    finding = Finding(
        rule="object-lost", code="ST002", certainty="will", damage="outage", engines=(), action="upgrade",
        objects=(), message="it is lost", schedules=("lazy",),
    )  # fmt: skip

    def found(*no: str, allow: tuple[str, ...] = ()) -> list[str]:
        return list(unwanted([finding], Expectations((), no, allow)))

    assert found("object-lost") == found("ST002") == found("st") == ["object-lost: it is lost"]
    assert found("ST1") == found("ST", allow=("object-lost",)) == []
