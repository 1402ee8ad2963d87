"""One write as admission sees it. Decides nothing."""

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


def _ignore(message: str) -> None:
    """Ignores the message."""


class AdmissionRequest(Struct, frozen=True):
    """A write that is not stored yet."""

    operation: Operation
    kind: ServedKind
    ref: Ref
    body: Body
    """As it would be stored; empty for a DELETE."""
    old: Body | None = None
    subresource: str = ""
    dry_run: bool = False
    generated: bool = False
    """Whether the name was generated. Errors from before that name only the prefix."""
    minor: int = 34
    versions: tuple[str, ...] = ()
    """Every version of the resource: a webhook may match any of them."""
    hooks: Hooks = NO_HOOKS
    warn: Callable[[str], None] = _ignore
    """Warns the client."""
    note: Callable[[str], None] = _ignore
    """Adds a note to the timeline, not to the client."""
    ignore: Callable[[str], None] = _ignore
    """Adds a webhook that did not answer and is ignored to the timeline."""
    answers: Callable[[str, Body], bool] = lambda name, client: False
    """Whether a webhook, by its name and client configuration, is assumed to answer."""

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.kind.group, self.kind.kind

    @property
    def namespace(self) -> str:
        """A request for a namespace is in that namespace."""
        return self.ref.name if self.group_kind == ("", "Namespace") else self.ref.namespace

    @property
    def early_name(self) -> str:
        """The prefix of the name before it is generated."""
        return str(metadata(self.body).get("generateName", "")) if self.generated else self.ref.name

    def refusal(self, why: str, by: RefusedBy = "") -> Refused:
        return forbidden(self.kind.plural, self.kind.group, self.ref.name, why, by=by)

    def refusal_before_naming(self, why: str, *missing: Ref) -> Refused:
        return forbidden(self.kind.plural, self.kind.group, self.early_name, why, missing=missing)
