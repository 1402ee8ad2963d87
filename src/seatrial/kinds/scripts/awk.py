"""`awk` programs of one line, as scripts write them: `{print $2}`, `/ready/ {print $NF; exit}`, `NR==1`, `$3 > 5`.

Patterns, `print`, `exit`, `next`, `gsub` and `sub`. Variables, loops and functions of their own are not followed.
"""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.kinds.scripts import patterns
from seatrial.kinds.scripts.text_tools import Output, Read, as_lines, lines_of
from seatrial.model import lazy_re
from seatrial.text import regex

RULES_MAX = 20
TOKENS_MAX = 150
_TOKEN = lazy_re.compile(
    r"""\s*(?:
      (?P<text>"(?:\\.|[^"\\])*")
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>==|!=|<=|>=|&&|\|\||!~|[-+*/%$(),;{}~!<>=\n])
    )""",
    re.VERBOSE,
)
_REGEX = lazy_re.compile(r"\s*/((?:\\.|[^/\\\n])+)/")
_NUMBER = lazy_re.compile(r"\s*-?(?:\d+(?:\.\d*)?|\.\d+)\s*")
_KNOWN = frozenset(("NR", "NF", "FNR", "print", "exit", "next", "gsub", "sub", "BEGIN", "END", "tolower", "toupper"))
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "/": "/"}
_BEFORE_REGEX = frozenset(("", "~", "!~", "(", ",", "&&", "||", "!", "{", ";", "\n"))


class NotRead(Exception):
    """A program that is not modelled."""


class _Token(Struct, frozen=True):
    kind: str
    """`text`, `number`, `name`, `sign` or `regex`."""
    text: str


class _Text(Struct, frozen=True):
    """A value: its text, and whether it is compared as a number where it looks like one."""

    text: str
    is_input: bool = False

    @property
    def number(self) -> float | None:
        return float(self.text) if self.is_input and _NUMBER.fullmatch(self.text) else None


class _Rule(Struct, frozen=True):
    pattern: tuple[_Token, ...]
    body: tuple[_Token, ...] | None


class _Record:
    """The line that is read, with its fields."""

    def __init__(self, line: str, number: int, between: str, out: str) -> None:
        self.number, self.between, self.out = number, between, out
        self.set_line(line)

    def set_line(self, line: str) -> None:
        self.line, self.fields = line, _split(line, self.between)

    def field(self, number: int) -> str:
        if not 0 <= number < 1000:
            raise NotRead
        return self.line if number == 0 else self.fields[number - 1] if number <= len(self.fields) else ""

    def set_field(self, number: int, text: str) -> None:
        if number == 0:
            self.set_line(text)
            return
        if number > len(self.fields):
            raise NotRead
        self.fields[number - 1] = text
        self.line = self.out.join(self.fields)


def awk(given: list[str], read: Read) -> Output | None:
    between, out, words = " ", " ", list(given)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word in ("-F", "-v") and words:
            word += words.pop(0)
        if word.startswith("-F"):
            between = word[2:].replace("\\t", "\t")
        elif word.startswith("-vOFS="):
            out = word[6:].replace("\\t", "\t")
        else:
            return None
    text = read(words[1:]) if words else None
    if text is None or not between:
        return None
    try:
        return 0, _run(_rules(_tokens(words[0])), lines_of(text), between, out)
    except NotRead:
        return None


def _run(rules: list[_Rule], lines: list[str], between: str, out: str) -> str:
    printed = list[str]()
    ends = [rule for rule in rules if _is_called(rule, "END")]
    if any(_is_called(rule, "BEGIN") for rule in rules):
        raise NotRead
    each = [rule for rule in rules if rule not in ends]
    record, went_on = _Record("", 0, between, out), True
    for number, line in enumerate(lines, 1):
        record = _Record(line, number, between, out)
        how = ""
        for rule in each:
            if rule.pattern and not _is_true(_Reader(rule.pattern, record).whole()):
                continue
            how = _do(rule.body, record, printed)
            if how:
                break
        if how == "exit":
            went_on = False
            break
    for rule in ends if went_on or ends else ():
        _do(rule.body, record, printed)
    return as_lines(printed)


def _is_called(rule: _Rule, name: str) -> bool:
    return [(token.kind, token.text) for token in rule.pattern] == [("name", name)]


def _do(body: tuple[_Token, ...] | None, record: _Record, printed: list[str]) -> str:
    """Run the statements of a rule; `next` or `exit` where one ends it."""
    if body is None:
        printed.append(record.line)
        return ""
    for statement in _statements(body):
        name = statement[0].text if statement[0].kind == "name" else ""
        if name in ("next", "exit") and len(statement) == 1:
            return name
        if name == "print":
            values = _Reader(statement[1:], record).listed() if len(statement) > 1 else [_Text(record.line)]
            printed.append(record.out.join(value.text for value in values))
        elif name in ("gsub", "sub"):
            _substitute(statement, record)
        else:
            raise NotRead
    return ""


def _statements(body: tuple[_Token, ...]) -> list[tuple[_Token, ...]]:
    found = list[list[_Token]]([[]])
    for token in body:
        if token.kind == "sign" and token.text in (";", "\n"):
            found.append([])
        else:
            found[-1].append(token)
    return [tuple(statement) for statement in found if statement]


def _substitute(statement: tuple[_Token, ...], record: _Record) -> None:
    """`gsub(/expression/, "text")`, also with a field as the third argument."""
    match statement[1:]:
        case (_Token("sign", "("), _Token("regex", old), _Token("sign", ","), _Token("text", new), *rest):
            pass
        case _:
            raise NotRead
    field = 0
    match [token.text for token in rest]:
        case [")"]:
            pass
        case [",", "$", number, ")"] if number.isdigit():
            field = int(number)
        case _:
            raise NotRead
    if "&" in new or "\\" in new:
        raise NotRead
    before = record.field(field)
    after = regex.replaced(old, before, lambda _: new, every=statement[0].text == "gsub")
    if after is None:
        raise NotRead
    if after != before:
        record.set_field(field, after)


def _rules(tokens: list[_Token]) -> list[_Rule]:
    rules, at = list[_Rule](), 0
    while at < len(tokens):
        start = at
        while at < len(tokens) and tokens[at] != _Token("sign", "{") and tokens[at].text not in (";", "\n"):
            at += 1
        pattern = tuple(tokens[start:at])
        body: tuple[_Token, ...] | None = None
        if at < len(tokens) and tokens[at].text == "{":
            end = next((i for i in range(at, len(tokens)) if tokens[i] == _Token("sign", "}")), None)
            if end is None or _Token("sign", "{") in tokens[at + 1 : end]:
                raise NotRead
            body, at = tuple(tokens[at + 1 : end]), end
        at += 1
        if pattern or body is not None:
            rules.append(_Rule(pattern, body))
    if not rules or len(rules) > RULES_MAX:
        raise NotRead
    return rules


def _tokens(program: str) -> list[_Token]:
    found, at = list[_Token](), 0
    program = program.strip()
    while at < len(program):
        before = found[-1].text if found and found[-1].kind == "sign" else "" if not found else "x"
        expression = _REGEX.match(program, at) if before in _BEFORE_REGEX else None
        if expression is not None:
            translated = patterns.extended(expression[1].replace("\\/", "/"))
            if translated is None:
                raise NotRead
            found.append(_Token("regex", translated))
            at = expression.end()
            continue
        token = _TOKEN.match(program, at)
        if token is None:
            raise NotRead
        kind = str(token.lastgroup)
        text = token[kind]
        if kind == "name" and text not in _KNOWN:
            raise NotRead
        found.append(_Token(kind, _unescaped(text[1:-1]) if kind == "text" else text))
        at = token.end()
        if len(found) > TOKENS_MAX:
            raise NotRead
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], f"\\{found[1]}"), text)


def _split(line: str, between: str) -> list[str]:
    if between == " ":
        return line.split()
    if not line:
        return []
    if len(between) == 1:
        return line.split(between)
    expression = patterns.extended(between)
    marked = regex.replaced(expression, line, lambda _: "\0", every=True) if expression else None
    if marked is None or "\0" in line:
        raise NotRead
    return marked.split("\0")


def _is_true(value: _Text) -> bool:
    return value.number != 0 if value.number is not None else bool(value.text)


class _Reader:
    """Evaluates an expression over a record."""

    def __init__(self, tokens: tuple[_Token, ...], record: _Record) -> None:
        self.tokens, self.place, self.record = tokens, 0, record

    def whole(self) -> _Text:
        found = self.either()
        if self.place != len(self.tokens):
            raise NotRead
        return found

    def listed(self) -> list[_Text]:
        found = [self.either()]
        while self.skip(","):
            found.append(self.either())
        if self.place != len(self.tokens):
            raise NotRead
        return found

    def either(self) -> _Text:
        found = self.both()
        while self.skip("||"):
            other = self.both()
            found = _bool(_is_true(found) or _is_true(other))
        return found

    def both(self) -> _Text:
        found = self.compared()
        while self.skip("&&"):
            other = self.compared()
            found = _bool(_is_true(found) and _is_true(other))
        return found

    def compared(self) -> _Text:
        left = self.joined()
        for sign in ("==", "!=", "<=", ">=", "<", ">"):
            if self.skip(sign):
                return _bool(_compare(left, sign, self.joined()))
        for sign in ("~", "!~"):
            if self.skip(sign):
                token = self.take()
                if token.kind != "regex":
                    raise NotRead
                return _bool(bool(regex.is_found(token.text, left.text)) == (sign == "~"))
        return left

    def joined(self) -> _Text:
        """Values that follow each other are one text."""
        found = self.sum()
        while self.place < len(self.tokens) and self.at_value():
            found = _Text(found.text + self.sum().text)
        return found

    def at_value(self) -> bool:
        token = self.tokens[self.place]
        return token.kind in ("text", "number", "name") or token.text in ("$", "(")

    def sum(self) -> _Text:
        found = self.value()
        while (sign := self.sign()) in ("+", "-"):
            self.place += 1
            other = self.value()
            one, two = _as_number(found), _as_number(other)
            found = _Text(str(one + two if sign == "+" else one - two), is_input=True)
        return found

    def value(self) -> _Text:
        token = self.take()
        match token.kind, token.text:
            case "text", text:
                return _Text(text)
            case "number", text:
                return _Text(text, is_input=True)
            case "regex", text:
                return _bool(bool(regex.is_found(text, self.record.line)))
            case "name", "NR" | "FNR":
                return _Text(str(self.record.number), is_input=True)
            case "name", "NF":
                return _Text(str(len(self.record.fields)), is_input=True)
            case "name", "tolower" | "toupper" if self.skip("("):
                found = self.either().text
                self.need(")")
                return _Text(found.lower() if token.text == "tolower" else found.upper())
            case "sign", "$":
                return _Text(self.record.field(_as_number(self.value())), is_input=True)
            case "sign", "(":
                inner = self.either()
                self.need(")")
                return inner
            case "sign", "!":
                return _bool(not _is_true(self.value()))
        raise NotRead

    def take(self) -> _Token:
        if self.place >= len(self.tokens):
            raise NotRead
        self.place += 1
        return self.tokens[self.place - 1]

    def sign(self) -> str:
        token = self.tokens[self.place] if self.place < len(self.tokens) else _Token("", "")
        return token.text if token.kind == "sign" else ""

    def skip(self, sign: str) -> bool:
        found = self.sign() == sign
        self.place += found
        return found

    def need(self, sign: str) -> None:
        if not self.skip(sign):
            raise NotRead


def _bool(value: bool) -> _Text:
    return _Text(str(int(value)), is_input=True)


def _as_number(value: _Text) -> int:
    if not re.fullmatch(r"-?\d{1,15}", value.text):
        raise NotRead
    return int(value.text)


def _compare(left: _Text, sign: str, right: _Text) -> bool:
    """As numbers where both look like numbers."""
    one, two = left.number, right.number
    if one is None or two is None:
        order = (left.text > right.text) - (left.text < right.text)
    else:
        order = (one > two) - (one < two)
    return {"==": order == 0, "!=": order != 0, "<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[
        sign
    ]
