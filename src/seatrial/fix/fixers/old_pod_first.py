"""A Deployment whose volume only one pod may use stops the old pod first.

Recreate says so most clearly, but a Deployment that exists has the defaults of a rolling update, which the API server
refuses together with it. A rolling update without surge does the same and can be applied to both.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.chart_values import TEMPLATES, asked_value, condition_of, with_chart_value
from seatrial.fix.lines import Line, key_line, with_children, with_value, without_entry
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.model.release import Resource
from seatrial.model.resource import dig

STRATEGY = ("spec", "strategy")
ROLLING = (*STRATEGY, "rollingUpdate")
WITHOUT_SURGE = ["rollingUpdate:", "  maxSurge: 0", "  maxUnavailable: 1"]
UNSAFE = "every update then stops the old pod before the new one starts"
UNSAFE_RECREATE = f"{UNSAFE}, and server-side apply refuses it for a Deployment that exists"


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    resource = problem.newest(ref)
    if resource is None or ref.kind != "Deployment":
        return
    kind = key_line(resource, *STRATEGY, "type") if dig(resource.body, *STRATEGY, "type") else None
    if isinstance(kind, Line) and TEMPLATES in resource.file and (keys := asked_value(kind)):
        change = with_chart_value(resource, keys, "Recreate", replaces=True)
        yield Proposal(f"set {'.'.join(keys)} to Recreate in values.yaml", change, UNSAFE_RECREATE)
    elif kind is None and TEMPLATES in resource.file and (keys := condition_of(resource, STRATEGY[-1])):
        change = with_chart_value(resource, keys, "{type: Recreate}")
        yield Proposal(f"set {'.'.join(keys)} to type: Recreate in values.yaml", change, UNSAFE_RECREATE)
    yield Proposal(f"give {ref} the strategy Recreate", _recreated(resource), UNSAFE_RECREATE)
    yield Proposal(f"let {ref} stop the old pod first (maxSurge 0)", _without_surge(resource), UNSAFE)


def _recreated(resource: Resource) -> Edits | ByHand:
    strategy = dig(resource.body, *STRATEGY)
    if not isinstance(strategy, dict):
        return with_children(resource, ("spec",), ["strategy:", "  type: Recreate"])
    named = "type" in strategy
    typed = (
        with_value(resource, (*STRATEGY, "type"), "Recreate")
        if named
        else with_children(resource, STRATEGY, ["type: Recreate"])
    )
    return joined(typed, without_entry(resource, ROLLING) if "rollingUpdate" in strategy else ())


def _without_surge(resource: Resource) -> Edits | ByHand:
    strategy = dig(resource.body, *STRATEGY)
    if not isinstance(strategy, dict):
        return with_children(resource, ("spec",), ["strategy:", *(f"  {line}" for line in WITHOUT_SURGE)])
    if not isinstance(rolling := dig(resource.body, *ROLLING), dict):
        return with_children(resource, STRATEGY, WITHOUT_SURGE)
    wanted = {"maxSurge": "0", "maxUnavailable": "1"}
    given = [with_value(resource, (*ROLLING, key), value) for key, value in wanted.items() if key in rolling]
    new = [f"{key}: {value}" for key, value in wanted.items() if key not in rolling]
    return joined(*given, with_children(resource, ROLLING, new) if new else ())


FIXER = Fixer(("rwo-rollingupdate-deadlock",), propose)
