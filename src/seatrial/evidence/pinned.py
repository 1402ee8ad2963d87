"""Which release of an operator the input names for a kind that is not in the trial."""

from __future__ import annotations

from seatrial.evidence.moment import Moment
from seatrial.evidence.unserved import Unserved, definition_in_cluster
from seatrial.kinds.operators.table import operator_kinds
from seatrial.model.release import Case, Pin
from seatrial.model.resource import Ref, ref_of


def pin_of(case: Case, ref: Ref, *, installed: bool) -> Pin | None:
    """What pins the operator of a kind: a chart that the input installs, or one that its values disable."""
    if (ref.group, ref.kind) not in operator_kinds():
        return None
    operator = operator_kinds()[ref.group, ref.kind][0]
    pins = (pin for release in case.releases if release for pin in release.pins)
    return next((pin for pin in pins if pin.chart in operator.charts and pin.installed == installed), None)


def installed_separately(moment: Moment, ref: Ref) -> Pin | None:
    """What pins the operator of a kind, if the input does not install it: the cluster may have another release."""
    if pin_of(moment.case, ref, installed=True) or not is_assumed(moment, ref):
        return None
    return pin_of(moment.case, ref, installed=False)


def is_assumed(moment: Moment, ref: Ref) -> bool:
    """Whether no release brings the CRD of this kind, so that one was assumed."""
    live = definition_in_cluster(moment, Unserved(ref.kind, f"{ref.group}/", (), ()))
    if live is None:
        return False
    crd = ref_of(live, namespaced=False)
    return moment.case.is_assumed(crd) and all(resource.ref != crd for resource in moment.case.all_resources())
