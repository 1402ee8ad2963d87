"""A trial that kills the process it runs in. A worker imports this, so nothing else is here."""

from __future__ import annotations

import os

from seatrial.fleet.checked import CheckedChart
from seatrial.model.options import CheckOptions

DEADLY = "deadly"


def one(trial: CheckOptions) -> CheckedChart:
    if trial.inputs == (DEADLY,):
        os._exit(9)
    return CheckedChart(trial.inputs[0])
