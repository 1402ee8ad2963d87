"""Pulumi as a script: Pulumi 3.259 with pulumi-kubernetes 4.32, whose version it goes by.

Cut from the model: previews, aliases, `refresh`, `--continue-on-error`, Patch resources and providers with options of
their own (`enableConfigMapMutable`, `upsertExistingObjects`).
"""

from __future__ import annotations

from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.deploying import destroy, up

NAME = "pulumi"
VERSION = "4.32"

__all__ = ["NAME", "VERSION", "Checkpoint", "destroy", "up"]
