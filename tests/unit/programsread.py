"""Helpers for tests of Pulumi programs: write one, read its registrations or its error."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.model.errors import CannotContinue
from seatrial.model.program import Program
from seatrial.sources.pulumi import read_program

MADE = """
import pulumi
class Made(pulumi.CustomResource):
    def __init__(self, name, opts=None, **props):
        super().__init__("kubernetes:core/v1:ConfigMap", name, props, opts)
"""


def python_program(folder: Path, code: str) -> str:
    """Write a program below a folder; return its relative path."""
    own = folder / "app"
    own.mkdir(exist_ok=True)
    (own / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (own / "__main__.py").write_text(code)
    return own.name


def registered(path: str, beside: str = "") -> Program:
    program = read_program(path, beside=beside).program
    assert program is not None
    return program


def complaint(path: str, beside: str = "") -> str:
    with pytest.raises(CannotContinue) as raised:
        read_program(path, beside=beside)
    return str(raised.value)
