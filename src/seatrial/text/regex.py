"""Regular expressions of users, as Go reads them (RE2): a match takes time in proportion to the text, never more.

Python's own `re` would take years for `^(a+)+$`, and knows a different dialect. Our own expressions use `re`.
"""

from __future__ import annotations

from collections.abc import Callable
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


def groups(pattern: str, text: str, *, longest: bool = False) -> tuple[str, ...] | None:
    """The first match and its groups, which are empty where they do not take part; None without a match."""
    expression = _compiled(pattern, False, longest)
    found = None if expression is None else expression.search(_bytes(text))
    return None if found is None else _groups(found)


def replaced(
    pattern: str,
    text: str,
    put: Callable[[tuple[str, ...]], str],
    *,
    ignore_case: bool = False,
    nth: int = 1,
    every: bool = False,
) -> str | None:
    """The text with the nth of its leftmost longest matches replaced, and with all later ones if `every`.

    None if the pattern is no expression. As in sed, nothing is not matched directly behind a match.
    """
    expression = _compiled(pattern, ignore_case, True)
    if expression is None:
        return None
    given, parts, at, last, count = _bytes(text), list[bytes](), 0, -1, 0
    while at <= len(given):
        found = expression.search(given, at)
        if found is None:
            break
        start, end = found.span()
        if start == end == last:
            at, last = _step(given, at, parts), -1
            continue
        count += 1
        is_put = count >= nth if every else count == nth
        parts += [given[at:start], _bytes(put(_groups(found))) if is_put else given[start:end]]
        at = last = end
        if is_put and not every:
            break
        if start == end:
            at = _step(given, at, parts)
    return b"".join((*parts, given[at:])).decode(errors="replace")


def _step(given: bytes, at: int, parts: list[bytes]) -> int:
    """Go on by one character."""
    end = at + 1
    while end < len(given) and given[end] & 0xC0 == 0x80:
        end += 1
    parts.append(given[at:end])
    return end


def _groups(found: Any) -> tuple[str, ...]:
    return tuple((part or b"").decode(errors="replace") for part in (found.group(0), *found.groups()))


@lru_cache(maxsize=4096)
def _compiled(pattern: str, ignore_case: bool, longest: bool = False) -> Any:
    try:
        import re2  # On demand: few inputs have expressions.
    except ImportError:  # There is no wheel for Alpine. Nothing is evaluated then, rather than by `re`.
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    options.case_sensitive = not ignore_case
    options.longest_match = longest
    try:
        return re2.compile(_bytes(pattern), options)
    except re2.error:
        return None


def _bytes(text: str) -> bytes:
    """As UTF-8; half of a surrogate pair, which is no character, becomes a question mark."""
    return text.encode(errors="replace")
