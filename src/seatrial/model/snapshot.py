"""What a real cluster has, as far as a rehearsal needs it. Data only: `live` takes it, `sources` reads it back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from seatrial.model.refusal import Denial
from seatrial.model.resource import Body, Ref

API_VERSION = "seatrial.dev/v1"
KIND = "Snapshot"


class Snapshot(Struct, frozen=True, omit_defaults=True, rename="camel", dict=True):
    """A real cluster at one moment. Secrets have keys and a type, never values."""

    kubernetes: str
    """`1.34`"""
    context: str = ""
    """Of the kubeconfig."""
    served: tuple[str, ...] = ()
    """`group/version/Kind`, or `version/Kind` for the core group."""
    objects: tuple[Body, ...] = ()
    whole: tuple[str, ...] = ()
    """Kinds of which every object is here: `Namespace`, `StorageClass.storage.k8s.io`."""
    operators: bool = False
    """Whether the workloads of all known operators are here."""
    named: tuple[Ref, ...] = ()
    """Objects that were looked for by name. Those that are not among the objects do not exist."""
    unreachable: tuple[Ref, ...] = ()
    """Services of webhooks and aggregated APIs without a ready endpoint."""
    releases: tuple[Body, ...] = ()
    """Decoded records of Helm releases, without values of Secrets."""
    denied: tuple[Denial, ...] = ()
    """Permissions that were missing. What they would have shown is not known."""

    @cached_property
    def refs(self) -> Mapping[Ref, Body]:
        return {_ref(body): body for body in self.objects}

    def knows(self, ref: Ref) -> bool:
        """Whether it is known if this object exists."""
        return _kind(ref) in self.whole or ref in self._named or ref in self.refs

    def lacks(self, ref: Ref) -> bool:
        """Whether this object is known not to exist."""
        return self.knows(ref) and ref not in self.refs

    @cached_property
    def _named(self) -> frozenset[Ref]:
        return frozenset(self.named)


def _ref(body: Body) -> Ref:
    meta = body["metadata"]
    group = str(body["apiVersion"]).rpartition("/")[0]
    return Ref(str(body["kind"]), str(meta.get("namespace") or ""), str(meta["name"]), group)


def _kind(ref: Ref) -> str:
    return f"{ref.kind}.{ref.group}" if ref.group else ref.kind
