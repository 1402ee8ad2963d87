"""What kustomize-controller sends, as `normalize.UnstructuredList` of fluxcd/pkg/ssa 0.76.1 returned it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.engines.flux.normalizing import normalized
from seatrial.kinds.core.quantities import canonical
from seatrial.model.resource import Body

RECORDED = Path(__file__).parents[1] / "conformance" / "golden" / "flux" / "normalized.json"
PAIRS: list[dict[str, Body]] = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{p['given']['kind']}-{p['given']['metadata']['name']}" for p in PAIRS])
def test_an_object_is_sent_as_flux_sends_it(pair: dict[str, Body]) -> None:
    assert normalized(pair["given"]) == pair["sent"]


def test_the_source_is_not_changed() -> None:
    given: Body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    before = json.dumps(given)
    normalized(given)
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    ("given", "printed"),
    [("20e4", "200e3"), ("1E3", "1E3"), ("1.500", "1.500"), ("1.5e3", "1500"), ("0.0001Ki", "102400u"), ("3000", "3k")],
)
def test_a_quantity_is_printed_as_go_prints_it(given: str, printed: str) -> None:
    assert canonical(given) == printed
