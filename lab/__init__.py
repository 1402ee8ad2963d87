"""`make lab`: the Helm trials of the scenarios on the embedded cluster and on a real control plane, side by side.

For developers only. Nothing of it is part of the product.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
FASTER = 20
"""How much faster time passes in the lab: timeouts of Helm and kubectl, sleeps of scripts, pauses between retries."""
TIMEOUT_SECONDS = 300 // FASTER
"""Helm's usual --timeout in the lab."""
