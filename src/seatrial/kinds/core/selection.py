"""Label selectors (`matchLabels`, `matchExpressions`). Knows no kind that has one."""

from __future__ import annotations

from seatrial.kinds import World
from seatrial.model.resource import Body, labels_of


def fits(labels: dict[str, str], selector: Body) -> bool:
    """Whether labels match a LabelSelector. An empty selector matches everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_term_fits(labels, term) for term in selector.get("matchExpressions") or ())


def selected(world: World, kind: str, namespace: str, selector: Body, group: str = "") -> list[Body]:
    """The objects of a namespace that match a LabelSelector."""
    equal = selector.get("matchLabels") or {}
    found = world.select(kind, namespace, equal, group) if equal else world.all(kind, namespace, group)
    if not selector.get("matchExpressions"):
        return found
    return [body for body in found if fits(labels_of(body), selector)]


def _term_fits(labels: dict[str, str], term: Body) -> bool:
    key, values = term.get("key", ""), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
