"""Which dependencies that are not on disk the values of a chart enable."""

import pytest

from seatrial.model.resource import Body
from seatrial.sources.charts.lacking import LackingChart, Switch, is_enabled


@pytest.mark.parametrize(
    ("switch", "values", "enabled"),
    [
        (Switch("db"), {}, True),
        (Switch("db", "db.enabled"), {}, True),
        (Switch("db", "db.enabled"), {"db": {"enabled": False}}, False),
        (Switch("db", "global.db,db.enabled"), {"db": {"enabled": False}, "global": {"db": True}}, True),
        (Switch("db", "db.enabled"), {"db": {"enabled": "false"}}, True),  # Helm ignores what is no boolean.
        (Switch("db", "", ("storage",)), {"tags": {"storage": False}}, False),
        (Switch("db", "", ("storage", "all")), {"tags": {"storage": False, "all": True}}, True),
        (Switch("db", "db.enabled", ("storage",)), {"db": {"enabled": True}, "tags": {"storage": False}}, True),
    ],
)
def test_a_condition_decides_before_tags_do(switch: Switch, values: Body, *, enabled: bool) -> None:
    assert is_enabled(LackingChart("db 1.x", "db", "", switch), values) is enabled


def test_a_dependency_of_a_disabled_chart_is_disabled() -> None:
    parents = ((Switch("shop", "shop.enabled"), {"db": {"enabled": True}}),)
    lacking = LackingChart("shop/db 1.x", "db", "", Switch("db", "db.enabled"), parents)
    assert is_enabled(lacking, {})
    assert not is_enabled(lacking, {"shop": {"db": {"enabled": False}}})
    assert not is_enabled(lacking, {"shop": {"enabled": False}})
