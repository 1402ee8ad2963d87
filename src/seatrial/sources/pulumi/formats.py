"""The format of the files that Pulumi writes, as far as it matters here. Knows nothing of their use."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class ResourceState(Struct, frozen=True, rename="camel"):
    """A resource (`ResourceV3`)."""

    inputs: dict[str, Any] | None = None
    parent: str | None = None
    dependencies: list[str] | None = None
    property_dependencies: dict[str, list[str] | None] | None = None
    custom_timeouts: dict[str, float] | None = None
    aliases: list[str] | None = None


class Pending(Struct, frozen=True):
    """An operation that was interrupted."""

    resource: dict[str, Any] | None = None


class Deployment(Struct, frozen=True):
    """The output of `pulumi stack export`."""

    resources: list[Any] | None = None
    pending_operations: list[Pending] | None = None


class Diagnostic(Struct, frozen=True):
    """A message in a preview."""

    severity: str | None = None


class Preview(Struct, frozen=True, rename="camel"):
    """The output of `pulumi preview --json` (`PreviewDigest`)."""

    steps: list[dict[str, Any]] | None = None
    diagnostics: list[Diagnostic] | None = None
    change_summary: dict[str, int] | None = None


def misfit(value: Any, shape: type[Struct]) -> str:
    """The first deviation from the format, and where; empty if there is none."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as wrong:
        return str(wrong)
    return ""
