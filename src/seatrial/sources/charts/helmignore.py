"""What `.helmignore` keeps out of a chart. Follows pkg/ignore/rules.go of Helm 4.2, and knows nothing of charts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.text.source import Text

FILE = ".helmignore"
ALWAYS = "templates/.?*"
"""Helm adds this rule to every chart's own."""

# The parts of a pattern as filepath.Match has them; a backslash takes the next character as it is.
_PART = re.compile(
    r"\\(?P<escaped>.)|(?P<star>\*)|(?P<any>\?)|\[(?P<set>\^?(?:\\.|[^\\\]])+)\]|(?P<bad>[\[\\])|(?P<plain>.)"
)


class Rule(Struct, frozen=True):
    pattern: re.Pattern[str]
    whole_path: bool
    """Whether the pattern speaks of the path from the chart's root, or of the last part of any path."""
    only_folders: bool
    negated: bool


def rules(text: Text | None) -> tuple[Rule, ...]:
    """The rules of a chart, from its `.helmignore` where it has one."""
    written = text.content.removeprefix("\ufeff").split("\n") if text else []
    lines = [(line.strip(), f"{text.path}:{number}") for number, line in enumerate(written, 1) if text]
    found = (_rule(line, place) for line, place in (*lines, (ALWAYS, "")))
    return tuple(rule for rule in found if rule)


def ignored(rules: Iterable[Rule], path: str, *, folder: bool) -> bool:
    """Whether Helm leaves this path out. The first rule that says so decides; a negated one says so where it fails."""
    for rule in rules:
        speaks = folder or not rule.only_folders
        matches = bool(rule.pattern.fullmatch(path if rule.whole_path else path.rpartition("/")[2]))
        if (not speaks or not matches) if rule.negated else (speaks and matches):
            return True
    return False


def _rule(line: str, place: str) -> Rule | None:
    if not line or line.startswith("#"):
        return None
    if "**" in line:
        raise CannotContinue(f"{place}: read the rules: double-star (**) syntax is not supported")
    glob = line.removeprefix("!")
    only_folders = glob.endswith("/")
    glob = glob.removesuffix("/")
    pattern = re.compile(_regex(glob.removeprefix("/"), place), re.DOTALL)
    return Rule(pattern, "/" in glob, only_folders, line.startswith("!"))


def _regex(glob: str, place: str) -> str:
    parts: list[str] = []
    for part in _PART.finditer(glob):
        match part.lastgroup:
            case "star":
                parts.append("[^/]*")
            case "any":
                parts.append("[^/]")
            case "set":
                parts.append("[" + part["set"].replace("[", r"\[") + "]")
            case "bad":
                raise CannotContinue(f"{place}: read the rules: syntax error in pattern")
            case _:
                parts.append(re.escape(part["escaped"] or part["plain"]))
    return "".join(parts)
