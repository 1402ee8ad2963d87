"""`grep` with the options that scripts use, as in GNU grep 3.11."""

from __future__ import annotations

from seatrial.kinds.scripts import patterns
from seatrial.kinds.scripts.text_tools import Output, Read, arguments, as_lines, lines_of
from seatrial.text import regex


def grep(given: list[str], read: Read) -> Output | None:
    names = {"quiet": "q", "silent": "q", "invert-match": "v", "ignore-case": "i", "count": "c", "regexp": "e"}
    names |= {
        "only-matching": "o",
        "extended-regexp": "E",
        "fixed-strings": "F",
        "word-regexp": "w",
        "line-regexp": "x",
    }
    found = arguments(given, "qvicoEFwxhsGn", "em", names)
    if found is None or "n" in found.flags:
        return None
    wanted = found.values.get("e") or found.operands[:1]
    files = found.operands[0 if "e" in found.values else 1 :]
    text = read(files) if len(files) < 2 and wanted else None
    expressions = [_grep_expression(one, found.flags) for given_one in wanted for one in given_one.split("\n")]
    if text is None or None in expressions:
        return None
    whole = "|".join(f"(?:{one})" for one in expressions)
    ignores = "i" in found.flags
    if regex.is_found(whole, "", ignore_case=ignores) is None:
        return None
    inverted = "v" in found.flags
    lines = [one for one in lines_of(text) if regex.is_found(whole, one, ignore_case=ignores) != inverted]
    limit = found.last("m")
    lines = lines[: int(limit)] if limit and limit.isdigit() else lines
    code = int(not lines)
    if "q" in found.flags:
        return code, ""
    if "c" in found.flags:
        return code, f"{len(lines)}\n"
    if "o" in found.flags:
        return None if inverted else (code, as_lines([part for one in lines for part in _matched(whole, one, ignores)]))
    return code, as_lines(lines)


def _grep_expression(pattern: str, flags: frozenset[str]) -> str | None:
    if "F" in flags:
        found: str | None = patterns.escaped(pattern)
    else:
        found = patterns.extended(pattern) if "E" in flags else patterns.basic(pattern)
    if found is None:
        return None
    return rf"\b(?:{found})\b" if "w" in flags else rf"^(?:{found})$" if "x" in flags else found


def _matched(pattern: str, line: str, ignore_case: bool) -> list[str]:
    found = list[str]()

    def keep(groups: tuple[str, ...]) -> str:
        found.extend(filter(None, groups[:1]))
        return ""

    regex.replaced(pattern, line, keep, ignore_case=ignore_case, every=True)
    return found
