"""The flags that name a real cluster, and the connection to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.flags import Heading, flag
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.live.client import Client

LIVE = Heading("Cluster (same flags as kubectl)", 2)


@dataclass(frozen=True)
class ClusterFlags:
    """Which cluster is meant."""

    context: Annotated[str, flag("--context", group=LIVE, value="NAME")] = ""
    """Context of the kubeconfig (default: the current one)."""
    kubeconfig: Annotated[str, flag("--kubeconfig", group=LIVE, value="FILE")] = ""
    """Kubeconfig (default: KUBECONFIG, then ~/.kube/config, then the service account of the pod)."""
    acts_as: Annotated[str, flag("--as", group=LIVE, value="USER")] = ""
    """User to impersonate, such as the service account that deploys: system:serviceaccount:NAMESPACE:NAME."""


CURRENT = ClusterFlags()
FROM_CLUSTER = (
    "Start from the current state of the cluster, as with --assume and a file of `seatrial snapshot`. A prerequisite "
    "that it does not have is missing, and a deployed release is upgraded. The cluster is only read."
)


def started_from(cluster: ClusterFlags, *, live: bool) -> ClusterFlags | None:
    """The cluster from which a check starts, if it starts from one."""
    if cluster != CURRENT and not live:
        raise CannotContinue("--context, --kubeconfig and --as name a cluster, which only --live reads")
    return cluster if live else None


def connect(flags: ClusterFlags, namespace: str = "") -> Client:
    """A client of the cluster. No request is sent yet."""
    from msgspec.structs import replace

    from seatrial.live.kubeconfig import find_target

    try:
        from seatrial.live.client import Client
    except ModuleNotFoundError as missing:
        if missing.name != "urllib3":
            raise
        raise CannotContinue("reach a cluster: install seatrial with its extra: pip install 'seatrial[live]'") from None
    target = find_target(kubeconfig=flags.kubeconfig, context=flags.context, namespace=namespace)
    return Client(replace(target, acts_as=flags.acts_as or target.acts_as))
