"""`seatrial explain`: the page of a rule, found by name or code."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from cyclopts import Parameter

from seatrial.cli.flags import ColorFlag, OutputFlags
from seatrial.model.errors import CannotContinue


def explain(
    rule: Annotated[
        str, Parameter(help="Name or code of a rule. Part of a name, such as flux, lists the matching rules.")
    ] = "",
    /,
    *,
    color: ColorFlag = "auto",
) -> int:
    """Explain a rule: what happens, an example, and the fix. Without a rule, list all rules."""
    from seatrial.cli import terminal
    from seatrial.report import rulepage
    from seatrial.rules import all_explained, page

    sheet = terminal.page(OutputFlags(color=color))
    if not rule:
        terminal.write(rulepage.render_list([(one, page(one)) for one in all_explained()], sheet))
        return 0
    names = {name.lower(): one for one in all_explained() for name in (one.name, one.code)}
    found = names.get(rule.lower())
    named = [one for one in all_explained() if rule.lower() in one.name]
    if found is None and len(named) > 1:
        terminal.write(rulepage.render_list([(one, page(one)) for one in named], sheet))
        return 0
    if found is None:
        close = get_close_matches(rule.lower(), names, n=1)
        meant = f"did you mean {names[close[0]].name}?" if close else "seatrial explain lists all rules"
        raise CannotContinue(f"explain {rule}: no such rule; {meant}")
    terminal.write(rulepage.render(found, page(found), sheet))
    return 0
