"""One API request and its reply, over a socket or from this process."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from seatrial.kinds.access.authorizer import ADMIN, User
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
PatchType = Literal["json", "merge", "strategic", "apply"]


class Request(Struct, frozen=True):
    """A request for one resource. Discovery, OpenAPI and health are not requests of this type."""

    verb: Verb
    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None
    duplicates: tuple[str, ...] = ()
    """Paths of duplicate keys in the text of the body."""
    patch_type: PatchType | None = None
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    unheard: bool = False
    """Whether it is a probe of the rehearsal itself, which is not recorded."""
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
    actor: str = "user"
    cause: int | None = None
    """The event that made the program in a pod send it; None for clients outside of the cluster."""
    user: User = ADMIN
    """The user of the client. By default a client may do everything; it can impersonate others."""


class Reply(Struct, frozen=True):
    code: int
    body: Any
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
