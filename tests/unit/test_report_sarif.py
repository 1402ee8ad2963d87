"""SARIF: valid by the published schema, and what code scanning needs beyond it."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace
from published import sarif_schema
from rehearsed import CLEAN, CONFIG, FINDING, FIXED, PLACE, RESULT, WEB

from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref
from seatrial.model.result import NotRehearsed, Result
from seatrial.report.page import Page
from seatrial.report.sarif import render

ODD = replace(
    FINDING,
    rule="other",
    code="ST999",
    certainty="may",
    objects=(Ref("ConfigMap", "", "half-\ud83d"),),
    message="see [this](https://example.com)\x1b[31m\x00 now",
    places=(Place("a b/ü:%.yaml", 3), Place("./x.yaml", 1, "file"), Place("/srv/y.yaml", 0, "near")),
    case="ci/ha\n-values.yaml",
    after=("Job/default/a",),
    removal=True,
)


def written(*findings: Finding, result: Result = RESULT) -> Any:
    return json.loads(render(replace(result, findings=findings), Page()))


def result_of(finding: Finding) -> Any:
    return written(finding)["runs"][0]["results"][0]


@pytest.mark.parametrize(
    "result",
    [
        CLEAN,
        RESULT,
        replace(RESULT, findings=(FIXED, ODD, replace(ODD, places=(), objects=()))),
        replace(
            RESULT,
            findings=(FINDING,),
            played=(),
            notes=("a note",),
            not_rehearsed=(NotRehearsed("not on disk", "shop"),),
        ),
    ],
)
def test_a_report_is_valid_by_the_published_schema(result: Result) -> None:
    schema = sarif_schema()
    assert schema["properties"]["version"]["enum"] == ["2.1.0"]
    report = json.loads(render(result, Page()))
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(report)


def test_a_wrong_report_is_not_valid_by_the_published_schema() -> None:
    report = written(FINDING)
    report["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError, match="fatal"):
        jsonschema.validate(report, sarif_schema())


def test_a_result_has_its_rule_its_place_its_objects_and_its_fingerprint() -> None:
    found = replace(FINDING, places=(PLACE, Place("v2/values.yaml", 2)), objects=(CONFIG, WEB))
    assert {key: value for key, value in result_of(found).items() if key not in ("message", "properties")} == {
        "ruleId": "ST201",
        "ruleIndex": 0,
        "level": "error",
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "v2/templates/configmap.yaml"},
                    "region": {"startLine": 7},
                },
                "logicalLocations": [
                    {
                        "name": "web-config",
                        "fullyQualifiedName": "ConfigMap/default/web-config",
                        "kind": "resource",
                    },
                    {"name": "web", "fullyQualifiedName": "Deployment/default/web", "kind": "resource"},
                ],
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "physicalLocation": {"artifactLocation": {"uri": "v2/values.yaml"}, "region": {"startLine": 2}},
            }
        ],
        "partialFingerprints": {"seatrial/v1": "0f1e2d3c4b5a6978"},
    }


def test_the_message_says_what_happens_and_how_to_confirm_it() -> None:
    assert result_of(FIXED)["message"]["text"].splitlines() == [
        "ConfigMap/default/web-config became a hook, and the upgrade that makes it one leaves it deleted",
        "Step 2, upgrade ./v2:",
        "  helm delete ConfigMap/default/web-config: deleted",
        "  helm apply ConfigMap/default/web-config: created",
        '  kubelet about Pod/default/web-5d9c7b: MountVolume.SetUp failed for volume "config" : configmap '
        '"web-config" not found',
        "  helm delete ConfigMap/default/web-config: deleted",
        "Helm deleted it by the hook's delete policy, made it as a hook, deleted it, because the new manifest no "
        "longer lists it. It reported success.",
        "Deployment/default/web mounts it.",
        "Fix: keep the object: helm.sh/resource-policy: keep (safe, proven by rehearsing again)",
        "Confirm: helm get hooks web --namespace default",
    ]


def test_the_rules_of_the_findings_have_their_pages() -> None:
    page = "A hook is\ndeleted.\n\n## What happens\n\nIt is."
    report = written(FINDING, ODD, FINDING, result=replace(RESULT, pages={FINDING.rule: page}))
    first, second = report["runs"][0]["tool"]["driver"]["rules"]
    assert (first["id"], first["name"]) == ("ST201", "release-to-hook-flip")
    assert first["shortDescription"] == {"text": "A hook is deleted."}
    explain = "`seatrial explain release-to-hook-flip` says more."
    assert first["help"] == {"text": f"A hook is deleted. {explain}", "markdown": page}
    assert second["id"] == "ST999"
    assert [found["ruleIndex"] for found in report["runs"][0]["results"]] == [0, 1, 0]


def test_every_result_has_a_file_since_github_refuses_others() -> None:
    nowhere = replace(FINDING, places=())
    assert result_of(nowhere)["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "v2"}}
    alone = written(nowhere, result=replace(RESULT, played=()))["runs"][0]["results"][0]
    assert alone["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "."}}


def test_files_are_uris() -> None:
    found = result_of(ODD)
    places = [place["physicalLocation"] for place in (*found["locations"], *found["relatedLocations"])]
    uris = [place["artifactLocation"]["uri"] for place in places]
    assert uris == ["a%20b/%C3%BC%3A%25.yaml", "x.yaml", "file:///srv/y.yaml"]
    assert [urlsplit(uri).scheme for uri in uris] == ["", "", "file"]
    assert [place.get("region") for place in places] == [{"startLine": 3}, None, {"startLine": 1}]


def test_untrusted_text_has_no_control_characters_and_no_links() -> None:
    text = render(replace(RESULT, findings=(ODD,)), Page())
    assert text.isascii()
    words = result_of(ODD)["message"]["text"]
    assert words.startswith("see [this] (https://example.com)␛[31m␀ now\n")
    assert re.findall(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]", words) == []


def test_what_was_not_rehearsed_is_a_notification() -> None:
    report = written(
        result=replace(CLEAN, not_rehearsed=(NotRehearsed("not on disk", "shop"),), notes=("Helm 3 is simulated",))
    )
    assert report["runs"][0]["invocations"][0]["toolExecutionNotifications"] == [
        {"level": "warning", "message": {"text": "Not rehearsed: shop: not on disk"}},
        {"level": "note", "message": {"text": "Helm 3 is simulated"}},
    ]
