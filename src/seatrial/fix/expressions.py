"""Values of a template as expressions, for other actions of the same template."""

from __future__ import annotations

from seatrial.fix.lines import Line
from seatrial.model import lazy_re
from seatrial.sources.charts.gotemplate import actions, open_blocks

SCALAR = lazy_re.compile(r"""[ ]*(?P<quote>["']?)(?P<name>[^#]+?)(?P=quote)[ \t]*(#.*)?\r?""")
"""What follows the colon of a key, with its quotes and its comment."""
_PART = lazy_re.compile(r"\{\{-?\s*(?P<says>.*?)\s*-?\}\}")
_TEMPLATE = lazy_re.compile(r"^template\s+")
"""An action that is no expression."""


def expression_of(value: str) -> str:
    """A value as an expression: text, an action, or both."""
    parts = [_TEMPLATE.sub("include ", part["says"]) for part in _PART.finditer(value)]
    if not parts:
        return f'"{value.strip()}"'
    pattern = _PART.sub("%s", value.strip()).replace('"', "")
    parts = [f"({part})" if " " in part else part for part in parts]
    return parts[0] if pattern == "%s" else f'(printf "{pattern}" {" ".join(parts)})'


def contexts(line: Line) -> tuple[str, ...]:
    """The blocks around a line that change what a dot means."""
    content, opened = line.text.content, open_blocks(line.text.content, line.start)
    return tuple(one.says for one in actions(content) if one.start in opened and not one.says.startswith("if"))
