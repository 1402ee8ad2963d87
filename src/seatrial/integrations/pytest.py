"""A pytest plugin for tests of charts; installed with seatrial, loaded by pytest.

def test_upgrade(rehearse):
    rehearse("charts/shop", old="git:main", values={"replicas": 2})
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from seatrial.model.result import Result


class Rehearse(Protocol):
    """The type of the fixture."""

    def __call__(
        self,
        *inputs: str | PathLike[str],
        values: Mapping[str, Any] | None = None,
        fail_on: str = "",
        fail_on_unrehearsed: bool = False,
        allow: Collection[str] = (),
        **options: Any,
    ) -> Result: ...


@pytest.fixture
def rehearse() -> Rehearse:
    """Check an input; the test fails with the report if a finding reaches `fail_on` and its rule is not in `allow`.

    `options` are those of `seatrial.api.Options`: old, engines, namespace, assume, ...
    """
    return _rehearse


def _rehearse(
    *inputs: str | PathLike[str],
    values: Mapping[str, Any] | None = None,
    fail_on: str = "",
    fail_on_unrehearsed: bool = False,
    allow: Collection[str] = (),
    **options: Any,
) -> Result:
    # Imported here: pytest loads this module in every run, also of projects that never use the fixture.
    import msgspec
    from msgspec.structs import replace

    from seatrial.api import Options, check
    from seatrial.cli import threshold
    from seatrial.model.options import ValueFlags
    from seatrial.model.verdict import exit_of
    from seatrial.report import render
    from seatrial.report.page import Page

    __tracebackhide__ = True
    limit = replace(threshold.parse(fail_on), unrehearsed=fail_on_unrehearsed)
    given = ValueFlags(set_json=(msgspec.json.encode(values).decode(),)) if values else ValueFlags()
    result = check(Options(inputs=tuple(fspath(one) for one in inputs), **{"values": given, **options}))
    counted = tuple(f for f in result.findings if f.rule not in allow and f.code not in allow)
    ended = exit_of(replace(result, findings=counted), limit)
    if ended.code:
        report = render("full", replace(result, findings=counted, exit=ended), Page())
        pytest.fail(f"seatrial: {ended.reason}\n{report}", pytrace=False)
    return result
