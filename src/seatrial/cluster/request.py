"""One request to the API and one reply, whether it came over a socket or from this process."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from seatrial.kinds.access.authorizer import ADMIN, User
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
PatchType = Literal["json", "merge", "strategic", "apply"]


class Request(Struct, frozen=True):
    """What a client asks of one resource. Discovery, OpenAPI and health are answered beside this."""

    verb: Verb
    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None
    duplicates: tuple[str, ...] = ()
    """Paths of the keys that the text of the body has twice."""
    patch_type: PatchType | None = None
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    unheard: bool = False
    """Whether it is a question of the rehearsal's, and of nobody who acts in it."""
    field_validation: str = ""
    """Strict, Warn or Ignore; empty is the server's default, Warn."""
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int = 0
    """How long a watch is kept open; 0 leaves it to the server."""
    propagation: str = ""
    """Background, Foreground or Orphan; empty is the kind's own default."""
    preconditions: Body = {}
    grace_seconds: int | None = None
    actor: str = "someone"
    user: User = ADMIN
    """As whom the client speaks. Whoever reaches this API may do everything, unless it says to be someone else."""


class Reply(Struct, frozen=True):
    code: int
    body: Any
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
