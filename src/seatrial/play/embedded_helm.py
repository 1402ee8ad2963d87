"""A Helm inside another engine writes under that engine's name, and what it writes is post-rendered.

Helm's library can do neither, so both happen to its requests on their way to the cluster. What Helm keeps in its
records is not post-rendered.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from seatrial.engines.act import HelmAct, Invocation, RealControllers
from seatrial.engines.postrendered import PostRendered, with_additions
from seatrial.helm import hooks
from seatrial.helm import sdk as helmsdk
from seatrial.helm.ownership import MANAGED_BY
from seatrial.model.resource import Body, labels_of, metadata

HELM = "helm"


def writes_of(act: HelmAct | Invocation | RealControllers) -> dict[str, Any]:
    """The arguments of `ApiServer` about what the client of an act writes."""
    if not isinstance(act, HelmAct):
        return {}
    own = helmsdk.FIELD_MANAGER if not act.binary and not helmsdk.missing else HELM if act.manager else ""
    adds = act.adds.labels or act.adds.annotations
    rewrite = partial(post_rendered, adds=act.adds) if adds else None
    return {"client_manager": own, "manager": act.manager, "rewrite": rewrite}


def post_rendered(body: Body, adds: PostRendered) -> Body:
    """What Helm sends, with the labels and annotations that a post-renderer adds."""
    if (hooks.is_hook(body) and not adds.hooks) or _is_release_namespace(body):
        return body
    return with_additions(body, adds)


def _is_release_namespace(body: Body) -> bool:
    """Whether Helm creates a Namespace by itself, for `--create-namespace`: it has no mark of a release."""
    is_marked = MANAGED_BY[0] in labels_of(body) or hooks.is_hook(body)
    return body.get("kind") == "Namespace" and "name" in metadata(body) and not is_marked
