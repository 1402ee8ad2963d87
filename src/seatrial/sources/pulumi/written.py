"""The shape of the files that Pulumi writes, as far as it is relied on. Knows nothing of what is made of them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class State(Struct, frozen=True, rename="camel"):
    """A resource (`ResourceV3`)."""

    inputs: dict[str, Any] | None = None
    parent: str | None = None
    dependencies: list[str] | None = None
    property_dependencies: dict[str, list[str] | None] | None = None
    custom_timeouts: dict[str, float] | None = None
    aliases: list[str] | None = None


class Pending(Struct, frozen=True):
    """What was begun when it was interrupted."""

    resource: dict[str, Any] | None = None


class Deployment(Struct, frozen=True):
    """What `pulumi stack export` is about."""

    resources: list[Any] | None = None
    pending_operations: list[Pending] | None = None


class Diagnostic(Struct, frozen=True):
    """What a preview says of a resource."""

    severity: str | None = None


class Preview(Struct, frozen=True, rename="camel"):
    """What `pulumi preview --json` writes (`PreviewDigest`)."""

    steps: list[dict[str, Any]] | None = None
    diagnostics: list[Diagnostic] | None = None
    change_summary: dict[str, int] | None = None


def misfit(value: Any, shape: type[Struct]) -> str:
    """What is not as Pulumi writes it, and where; empty where all is."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return ""
