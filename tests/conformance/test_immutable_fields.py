"""Fields that may not change, through the API: the same cases that the kinds are held to. On both arms."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from arms import Here

from seatrial.model.resource import Body

FILE = Path(__file__).parents[1] / "kinds" / "immutable.yaml"
RECORDED_UID = "11d6dd47-93f1-496b-a8b3-57a2157d7868"


def is_for_everyone(case: Body) -> bool:
    """Not those that are given a status, an unfinished definition, an address that may be taken, or a pod, whose
    refusal quotes what admission made of it."""
    given = case["given"]
    if given["kind"] in ("CustomResourceDefinition", "Pod") or given["metadata"]["name"] == "headless":
        return False
    return "status" not in given and case.get("minor", 34) == 34


CASES = [case for case in yaml.safe_load(FILE.read_text()) if is_for_everyone(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['given']['kind']}-{case['change']}")
def test_a_change_is_refused_in_the_words_of_the_api_server(here: Here, case: Body) -> None:
    given = case["given"]
    kind, name = given["kind"], given["metadata"]["name"]
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    made = here.create(given)
    assert made.code == 201, made.refusal
    # The kind's own controller may write it meanwhile; a patch that names no version does not mind.
    changed = here.patch(kind, name, case["change"], "strategic")
    here.delete(kind, name, gracePeriodSeconds=0)
    words = [text.replace(RECORDED_UID, made.body["metadata"]["uid"]) for text in case["words"]]
    assert changed.code == (422 if words else 200), changed.refusal
    assert [text for text in words if text not in changed.refusal] == []
