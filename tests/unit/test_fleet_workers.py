"""Processes that work on trials: an interruption waits for the pool, and is then raised."""

import os
import signal

import pytest

from seatrial.fleet.checked import CheckedChart
from seatrial.fleet.workers import Workers, workers
from seatrial.model.options import CheckOptions

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def work(trial: CheckOptions) -> CheckedChart:
    return CheckedChart(trial.inputs[0])


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_signal_raises_where_the_pool_is_asked_and_nowhere_else(number: signal.Signals) -> None:
    before = signal.signal(number, signal.default_int_handler)
    reached = False
    try:
        with pytest.raises(KeyboardInterrupt), workers(1) as crew:
            os.kill(os.getpid(), number)
            reached = True
            crew.next_finished()
        assert reached
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with workers(1) as crew:
            os.kill(os.getpid(), signal.SIGHUP)
            assert _finished(crew) == "chart"
    finally:
        signal.signal(signal.SIGHUP, before)


def _finished(crew: Workers) -> str:
    crew.submit(work, CheckOptions(("chart",)))
    return crew.next_finished().result().name
