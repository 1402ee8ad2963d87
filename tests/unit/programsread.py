"""Pulumi programs as tests read them: what one registers, or why it cannot be read."""

from __future__ import annotations

import pytest

from seatrial.errors import CannotContinue
from seatrial.registration import Program
from seatrial.sources.pulumi import read_program


def registered(path: str, beside: str = "") -> Program:
    program = read_program(path, beside=beside).program
    assert program is not None
    return program


def complaint(path: str, beside: str = "") -> str:
    with pytest.raises(CannotContinue) as raised:
        read_program(path, beside=beside)
    return str(raised.value)
