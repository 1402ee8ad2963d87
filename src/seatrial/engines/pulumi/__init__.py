"""Pulumi as a script: Pulumi 3.259 with pulumi-kubernetes 4.32, whose version it goes by.

Of a preview only that is played which makes an `up` fail before it begins: charts that cannot be rendered, and the end
of what is protected. Cut from the model: `--continue-on-error`, `--target`, and providers that apply client-side.
"""

from __future__ import annotations

from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.deploying import destroy, up
from seatrial.engines.pulumi.refreshing import refresh

NAME = "pulumi"
VERSION = "4.32"

__all__ = ["NAME", "VERSION", "Checkpoint", "destroy", "refresh", "up"]
