"""Immutable fields through the API: the same cases as for the kinds. On both arms."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from arms import Here

from seatrial.model.resource import Body

FILE = Path(__file__).parents[1] / "kinds" / "immutable.yaml"
RECORDED_UID = "11d6dd47-93f1-496b-a8b3-57a2157d7868"


def runs_on_both_arms(case: Body) -> bool:
    """Excludes cases with a status, an incomplete CRD, an address that may be in use, or a pod, whose error quotes
    values that admission sets."""
    given = case["given"]
    if given["kind"] in ("CustomResourceDefinition", "Pod") or given["metadata"]["name"] == "headless":
        return False
    return "status" not in given and case.get("minor", 34) == 34


CASES = [case for case in yaml.safe_load(FILE.read_text()) if runs_on_both_arms(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['given']['kind']}-{case['change']}")
def test_a_change_is_refused_with_the_api_servers_error(here: Here, case: Body) -> None:
    given = case["given"]
    kind, name = given["kind"], given["metadata"]["name"]
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    made = here.create(given)
    assert made.code == 201, made.refusal
    # Its controller may update it meanwhile; a patch without a resourceVersion still applies.
    changed = here.patch(kind, name, case["change"], "strategic")
    here.delete(kind, name, gracePeriodSeconds=0)
    words = [text.replace(RECORDED_UID, made.body["metadata"]["uid"]) for text in case["words"]]
    assert changed.code == (422 if words else 200), changed.refusal
    assert [text for text in words if text not in changed.refusal] == []
