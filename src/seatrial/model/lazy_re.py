"""Regular expressions of our own, compiled when they are first used. Those of users: `text.regex`.

A module has several, and a check of a small chart imports hundreds of modules and uses few of their expressions: to
compile all of them takes a twentieth of it.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def compile(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, for the top level of a module. An invalid expression fails at its first use."""
    return cast(re.Pattern[AnyStr], _Lazy(text, flags))


class _Lazy:
    """Has the attributes of a compiled expression from the first time that one is needed."""

    def __init__(self, *source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)  # The next time it is found here.
        return found
