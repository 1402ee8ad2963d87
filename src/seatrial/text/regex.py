"""Regular expressions of users, as Go reads them (RE2): a match takes time in proportion to the text, never more.

Python's own `re` would take years for `^(a+)+$`, and knows a different dialect. Our own expressions use `re`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MEMORY_BYTES_MAX = 8 * 1024 * 1024
"""Of one compiled expression: `((a{1000}){1000}){1000}` is refused."""


def is_found(pattern: str, text: str, *, ignore_case: bool = False) -> bool | None:
    """Whether a part of the text matches; None if the pattern is no expression."""
    expression = _compiled(pattern, ignore_case)
    return None if expression is None else expression.search(_bytes(text)) is not None


def is_whole(pattern: str, text: str) -> bool | None:
    """Whether the whole text matches; None if the pattern is no expression."""
    expression = _compiled(pattern, False)
    return None if expression is None else expression.fullmatch(_bytes(text)) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    try:
        import re2  # On demand: few inputs have expressions.
    except ImportError:  # There is no wheel for Alpine. Nothing is evaluated then, rather than by `re`.
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(_bytes(pattern), options)
    except re2.error:
        return None


def _bytes(text: str) -> bytes:
    """As UTF-8; half of a surrogate pair, which is no character, becomes a question mark."""
    return text.encode(errors="replace")
