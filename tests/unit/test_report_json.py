"""The JSON report and its published schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace
from rehearsed import CLEAN, CONFIG, FINDING, FIXED, LAZY, RESULT, STEPS

from seatrial.model.resource import Place, Ref
from seatrial.model.result import NotRehearsed, Played, Result
from seatrial.model.timeline import Operation, SyncTask
from seatrial.report.contract import schema
from seatrial.report.json import render
from seatrial.report.page import Page

SCHEMA = Path(__file__).parents[2] / "docs" / "output.schema.json"


def written(result: Result) -> Any:
    return json.loads(render(result, Page()))


def test_a_report_has_exactly_the_keys_of_the_contract() -> None:
    result = replace(RESULT, played=(Played("", replace(LAZY, steps=STEPS[:2])),), findings=(FIXED,))
    assert (
        render(result, Page())
        == """\
{
  "version": 2,
  "rehearsals": [
    {
      "engine": "helm@4.2.3",
      "schedule": "lazy",
      "steps": [
        {
          "action": "install",
          "release": "web",
          "source": "./v1",
          "outcome": "ok",
          "error": "",
          "created": [
            "ConfigMap/default/web-config",
            "Deployment/default/web"
          ],
          "deleted": [],
          "recreated": [],
          "missing": [],
          "orphans": []
        },
        {
          "action": "upgrade",
          "release": "web",
          "source": "./v2",
          "outcome": "ok",
          "error": "",
          "created": [],
          "deleted": [
            "ConfigMap/default/web-config"
          ],
          "recreated": [],
          "missing": [
            "ConfigMap/default/web-config"
          ],
          "orphans": []
        }
      ]
    }
  ],
  "findings": [
    {
      "rule": "release-to-hook-flip",
      "code": "ST201",
      "fingerprint": "0f1e2d3c4b5a6978",
      "certainty": "will",
      "damage": "outage",
      "engines": [
        "helm@4.2.3"
      ],
      "action": "upgrade",
      "objects": [
        "ConfigMap/default/web-config"
      ],
      "message": "ConfigMap/default/web-config became a hook, and the upgrade that makes it one leaves it deleted",
      "locations": [
        {
          "file": "v2/templates/configmap.yaml",
          "line": 7,
          "sure": "exact"
        }
      ],
      "evidence": [
        5,
        6,
        10,
        11
      ],
      "fix": {
        "title": "keep the object: helm.sh/resource-policy: keep",
        "safe": true,
        "proven": true,
        "why_unsafe": "",
        "edits": [],
        "steps": [],
        "rejected": []
      },
      "shown_by": {
        "engine": "helm@4.2.3",
        "schedule": "lazy"
      },
      "events": [
        {
          "index": 5,
          "step": 1,
          "actor": "helm",
          "verb": "delete",
          "object": "ConfigMap/default/web-config",
          "effect": "deleted"
        },
        {
          "index": 6,
          "step": 1,
          "actor": "helm",
          "verb": "apply",
          "object": "ConfigMap/default/web-config",
          "effect": "created"
        },
        {
          "index": 10,
          "step": 1,
          "actor": "kubelet",
          "verb": "say",
          "object": "Pod/default/web-5d9c7b",
          "effect": "said",
          "message": "MountVolume.SetUp failed for volume \\"config\\" : configmap \\"web-config\\" not found"
        },
        {
          "index": 11,
          "step": 1,
          "actor": "helm",
          "verb": "delete",
          "object": "ConfigMap/default/web-config",
          "effect": "deleted"
        }
      ],
      "details": [
        "Helm deleted it by the hook's delete policy, made it as a hook, deleted it, because the new manifest no \
longer lists it. It reported success.",
        "Deployment/default/web mounts it."
      ],
      "confirm": "helm get hooks web --namespace default",
      "schedules": [
        "lazy",
        "eager"
      ]
    }
  ],
  "prerequisites": [
    {
      "object": "Secret/default/registry",
      "why": "Deployment/default/web pulls its image with it"
    }
  ],
  "not_modelled": [
    "Widget.example.com"
  ],
  "summary": {
    "objects": 3,
    "rehearsals": 1,
    "findings": 1
  }
}
"""
    )


def test_keys_with_a_default_are_omitted_when_empty() -> None:
    bare = replace(FINDING, details=(), confirm="", schedules=(), fix=None)
    report = written(replace(RESULT, findings=(bare,)))
    contract = "rule code fingerprint certainty damage engines action objects message locations evidence fix"
    assert list(report["findings"][0]) == [*contract.split(), "shown_by", "events"]
    assert report["findings"][0]["fix"] is None
    case = "ci/ha-values.yaml"
    with_case = replace(
        RESULT, findings=(replace(bare, case=case),), played=(Played(case, LAZY),), missing_dependencies=("redis",)
    )
    assert written(with_case)["findings"][0]["case"] == case
    assert written(with_case)["rehearsals"][0]["case"] == case
    assert written(with_case)["missing_dependencies"] == ["redis"]


def test_parts_that_were_not_rehearsed_are_data() -> None:
    parts = (NotRehearsed("not on disk"), NotRehearsed("OLD does not render", "ci/ha-values.yaml", "upgrade from v1"))
    assert written(replace(CLEAN, not_rehearsed=parts))["not_rehearsed"] == [
        {"case": "", "step": "", "reason": "not on disk"},
        {"case": "ci/ha-values.yaml", "step": "upgrade from v1", "reason": "OLD does not render"},
    ]


def test_a_finding_of_a_rehearsal_with_repairs_names_the_repairs() -> None:
    after = ("Job/default/migrate",)
    repaired = replace(LAZY, repaired=after)
    found = replace(FINDING, after=after)
    report = written(replace(RESULT, findings=(found,), continued=(Played("", repaired),)))
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert report["findings"][0]["shown_by"] == {"engine": "helm@4.2.3", "schedule": "lazy", "after": [*after]}
    assert [event["index"] for event in report["findings"][0]["events"]] == report["findings"][0]["evidence"]


def test_a_finding_without_a_rehearsal_has_no_events() -> None:
    report = written(replace(RESULT, findings=(FINDING,), played=()))
    assert (report["findings"][0]["shown_by"], report["findings"][0]["events"]) == (None, [])
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))


def test_non_ascii_text_is_escaped() -> None:
    odd = replace(FINDING, objects=(Ref("ConfigMap", "default", "half-\ud83d-é"),))
    text = render(replace(RESULT, findings=(odd,)), Page())
    assert '"ConfigMap/default/half-\\ud83d-\\u00e9"' in text
    assert text.isascii()


def test_the_published_schema_is_up_to_date() -> None:
    """To publish a change: python -c 'from seatrial.report.contract import schema; print(schema(), end="")'."""
    assert SCHEMA.read_text() == schema()


@pytest.mark.parametrize(
    "result", [CLEAN, RESULT, replace(RESULT, findings=(FIXED, replace(FINDING, places=(Place("a", 1, "near"),))))]
)
def test_a_report_is_valid_by_the_published_schema(result: Result) -> None:
    jsonschema.validate(written(result), json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("key", ["version", "rehearsals", "findings", "prerequisites", "not_modelled", "summary"])
def test_the_schema_requires_every_key_of_the_contract(key: str) -> None:
    report = {name: value for name, value in written(RESULT).items() if name != key}
    definition = {**json.loads(SCHEMA.read_text()), "anyOf": [{"$ref": "#/$defs/Report"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, definition)


def test_operations_of_argo_cd_include_their_tasks() -> None:
    task = SyncTask(CONFIG, "Sync", -1, status="Synced", state="Running", health="Progressing")
    operation = Operation("shop", "Running", "waiting for healthy state of /ConfigMap/web-config", (task,), (CONFIG,))
    step = replace(STEPS[0], outcome="hung", operations=(operation,))
    report = written(replace(CLEAN, played=(Played("", replace(LAZY, steps=(step,))),)))
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert report["rehearsals"][0]["steps"][0]["operations"] == [
        {
            "app": "shop",
            "phase": "Running",
            "message": "waiting for healthy state of /ConfigMap/web-config",
            "attempts": 1,
            "waits_for": ["ConfigMap/default/web-config"],
            "conditions": [],
            "tasks": [
                {
                    "object": "ConfigMap/default/web-config",
                    "phase": "Sync",
                    "wave": -1,
                    "hook": False,
                    "prune": False,
                    "status": "Synced",
                    "state": "Running",
                    "message": "",
                    "health": "Progressing",
                }
            ],
        }
    ]
