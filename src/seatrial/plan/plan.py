"""A plan: one case of a trial, ready to be rehearsed. Data only."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from seatrial.engines import argocd, flux
from seatrial.engines.kubectl import commands as kubectl
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import Binary
from seatrial.model.program import Program
from seatrial.model.release import Case, Release
from seatrial.model.resource import Body
from seatrial.model.trial import Step


class Played(Struct, frozen=True):
    """One step with everything an engine needs to play it."""

    step: Step
    release_name: str
    namespace: str
    chart: Callable[[], helmsdk.Chart] | None = None
    """Loads the chart. Helm takes one anew for every act: rendering drops what the values disable, for good."""
    values: Body = {}
    objects: tuple[kubectl.Manifest, ...] = ()
    """What `apply` applies and `delete` deletes."""
    archive: bytes = b""
    """The chart as a helm binary takes it."""
    asks: bool = False
    """Whether its templates ask the cluster, the revision or chance."""
    fleet: argocd.Fleet | None = None
    """The Applications that Argo CD syncs or deletes."""
    notes: tuple[str, ...] = ()
    """What was taken for granted about this step."""
    program: Program | None = None
    """What Pulumi brings up."""
    flux: flux.Fleet | None = None
    """What Flux keeps in the cluster."""


class Plan(Struct, frozen=True):
    """One case of a trial, ready to be played as often as wanted."""

    steps: tuple[Played, ...]
    case: Case
    kube_version: str = "1.34"
    assumed: tuple[Body, ...] = ()
    """Objects that are in the cluster before the first step."""
    deployed: tuple[Body, ...] = ()
    """What Helm has put there before, in its order; not on a cluster that is rebuilt."""
    argocd: argocd.Settings | None = None
    """How Argo CD is set up, where it is the engine."""
    server_side: bool = True
    """Whether Helm had the server merge what it has put there."""
    helm: Binary | None = None
    """The helm binary that plays in the place of the SDK."""
    by_rules_of_helm_3: bool = False
    """Whether Helm is played by the rules of Helm 3, in the place of the real one."""
    revisions: tuple[tuple[int, Release], ...] = ()
    """Of the release whose records are among what is deployed."""
