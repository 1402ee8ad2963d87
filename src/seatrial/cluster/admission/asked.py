"""One write as admission sees it: what is asked for, of what, and how to answer. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from seatrial.cluster.refusal import Refused, forbidden
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.webhooks.matching import NO_HOOKS, Hooks
from seatrial.model.refusal import RefusedBy
from seatrial.model.resource import Body, Ref, metadata

Operation = Literal["CREATE", "UPDATE", "DELETE"]


def _nobody(words: str) -> None:
    """No one listens."""


class Asked(Struct, frozen=True):
    """A write that has not been done yet."""

    operation: Operation
    kind: ServedKind
    ref: Ref
    body: Body
    """As it would be stored; of a DELETE, empty."""
    old: Body | None = None
    subresource: str = ""
    dry_run: bool = False
    generated: bool = False
    """Whether the name was made up: what is asked before that happens speaks of the prefix alone."""
    minor: int = 34
    versions: tuple[str, ...] = ()
    """Every version that the resource is served in: a webhook may have asked for any."""
    hooks: Hooks = NO_HOOKS
    warn: Callable[[str], None] = _nobody
    """Tells the client, beside its answer."""
    note: Callable[[str], None] = _nobody
    """Tells the timeline, and no client."""

    @property
    def of(self) -> tuple[str, str]:
        return self.kind.group, self.kind.kind

    @property
    def namespace(self) -> str:
        """A request about a namespace is one in that namespace."""
        return self.ref.name if self.of == ("", "Namespace") else self.ref.namespace

    @property
    def early_name(self) -> str:
        """As long as no name was made up, the prefix of one."""
        return str(metadata(self.body).get("generateName", "")) if self.generated else self.ref.name

    def refused(self, why: str, by: RefusedBy = "") -> Refused:
        return forbidden(self.kind.plural, self.kind.group, self.ref.name, why, by=by)

    def refused_early(self, why: str, *missing: Ref) -> Refused:
        return forbidden(self.kind.plural, self.kind.group, self.early_name, why, missing=missing)
