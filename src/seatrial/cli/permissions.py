"""What a command for a real cluster says of missing permissions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.model.refusal import Denial


def page(denials: Iterable[Denial]) -> str:
    """The missing permissions one by one, and the Roles that grant them; empty if there are none."""
    import yaml

    from seatrial.live.access import roles, sentence
    from seatrial.report.page import harmless

    given = list(denials)
    if not given:
        return ""
    lines = "".join(f"  {harmless(sentence(denial))}\n" for denial in given)
    grants = "---\n".join(yaml.safe_dump(role, default_flow_style=None, sort_keys=False) for role in roles(given))
    return f"Missing permissions:\n{lines}These Roles grant them; bind them to your user or ServiceAccount:\n{grants}"
