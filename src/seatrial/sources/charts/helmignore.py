"""`.helmignore` rules. Follows pkg/ignore/rules.go of Helm 4.2; knows nothing of charts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.text import regex
from seatrial.text.source import Text

FILE = ".helmignore"
TEMPLATES = "templates/"

# The parts of a pattern of filepath.Match; a backslash escapes the next character.
_PART = lazy_re.compile(
    r"\\(?P<escaped>.)|(?P<star>\*)|(?P<any>\?)|\[(?P<set>\^?(?:\\.|[^\\\]])+)\]|(?P<bad>[\[\\])|(?P<plain>.)"
)


class IgnoreRule(Struct, frozen=True):
    pattern: str
    whole_path: bool
    """Whether the pattern matches the path from the chart's root, or the last part of any path."""
    only_folders: bool
    negated: bool


def rules(text: Text | None) -> tuple[IgnoreRule, ...]:
    """The rules of a chart's `.helmignore`, if it has one."""
    written = text.content.removeprefix("\ufeff").split("\n") if text else []
    lines = [(line.strip(), f"{text.path}:{number}") for number, line in enumerate(written, 1) if text]
    found = (_rule(line, place) for line, place in lines)
    return tuple(rule for rule in found if rule)


def ignored(rules: Iterable[IgnoreRule], path: str, *, folder: bool) -> bool:
    """Whether Helm ignores this path. As in Helm, a negated rule ignores every path that it does not match."""
    for rule in rules:
        applies = folder or not rule.only_folders
        matches = bool(regex.is_whole(rule.pattern, path if rule.whole_path else path.rpartition("/")[2]))
        if (not applies or not matches) if rule.negated else (applies and matches):
            return True
    return _is_hidden_template(path)


def _is_hidden_template(path: str) -> bool:
    """`templates/.?*`, a rule that Helm adds to every chart."""
    name = path.removeprefix(TEMPLATES)
    return name != path and name.startswith(".") and len(name) > 1 and "/" not in name


def _rule(line: str, place: str) -> IgnoreRule | None:
    if not line or line.startswith("#"):
        return None
    if "**" in line:
        raise CannotContinue(f"{place}: read .helmignore: double-star (**) syntax is not supported")
    glob = line.removeprefix("!")
    only_folders = glob.endswith("/")
    glob = glob.removesuffix("/")
    pattern = _regex(glob.removeprefix("/"), place)
    return IgnoreRule(pattern, "/" in glob, only_folders, line.startswith("!"))


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
                raise CannotContinue(f"{place}: read .helmignore: syntax error in pattern")
            case _:
                parts.append(re.escape(part["escaped"] or part["plain"]))
    return "".join(parts)
