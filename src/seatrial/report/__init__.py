"""Reports: one module per format, each a pure function of a result. Decides nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, cast, get_args

from seatrial.model.result import Result
from seatrial.report.page import Page

Output = Literal["full", "concise", "json", "sarif", "junit", "github", "markdown", "html"]
FORMATS: tuple[Output, ...] = get_args(Output)
"""Each is the name of its module."""


def render(output: Output, result: Result, page: Page) -> str:
    """The report on `result` in one format; only the module of that format is loaded."""
    return cast(str, import_module(f"{__name__}.{output}").render(result, page))
