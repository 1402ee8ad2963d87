"""`sed` with the commands that scripts use: `s`, `p`, `d`, `q`, with addresses by line number and expression.

As in GNU sed 4.9. Other commands are not followed.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds.scripts import patterns
from seatrial.kinds.scripts.text_tools import Arguments, Output, Read, arguments, lines_of
from seatrial.text import regex

COMMANDS_MAX = 50
NAMES = {"quiet": "n", "silent": "n", "regexp-extended": "E", "expression": "e", "in-place": "i"}


class _NotRead(Exception):
    """A command that is not modelled."""


class _Address(Struct, frozen=True):
    """`3`, `$` or `/expression/`."""

    line: int = 0
    is_last: bool = False
    expression: str = ""


class _Command(Struct, frozen=True):
    name: str
    """`s`, `p`, `d` or `q`."""
    first: _Address | None = None
    last: _Address | None = None
    negated: bool = False
    expression: str = ""
    put: Callable[[tuple[str, ...]], str] = lambda found: ""
    nth: int = 1
    every: bool = False
    ignores_case: bool = False
    prints: bool = False


def edited_in_place(given: list[str]) -> list[str]:
    """The files that a call with `-i` changes."""
    found = _arguments([word for word in given if word not in ("-i", "--in-place")])
    in_place = any(word in ("-i", "--in-place") for word in given)
    return found.operands[0 if "e" in found.values else 1 :] if found and in_place else []


def sed(given: list[str], read: Read) -> Output | None:
    found = _arguments([word for word in given if word not in ("-i", "--in-place")])
    if found is None:
        return None
    scripts = found.values.get("e") or found.operands[:1]
    text = read(found.operands[0 if "e" in found.values else 1 :]) if scripts else None
    if text is None:
        return None
    try:
        commands = _Reader("\n".join(scripts), bool(found.flags & {"E", "r"})).commands()
        return 0, _edited(text, commands, quiet="n" in found.flags)
    except _NotRead:
        return None


def _arguments(given: list[str]) -> Arguments | None:
    return arguments(given, "nErzsu", "e", NAMES)


def _edited(text: str, commands: list[_Command], *, quiet: bool) -> str:
    lines, out, reaches_end = lines_of(text), list[str](), False
    active = [False] * len(commands)
    for number, given in enumerate(lines, 1):
        line = given
        is_last, is_kept, is_end, before = number == len(lines), True, False, len(out)
        for index, command in enumerate(commands):
            if not _applies(command, index, active, number, line, is_last):
                continue
            if command.name == "s":
                done = _substituted(command, line)
                out += [done] if command.prints and done != line else []
                line = done
            elif command.name == "p":
                out.append(line)
            elif command.name == "d":
                is_kept = False
                break
            else:
                is_end = True
                break
        out += [line] if is_kept and not quiet else []
        reaches_end = is_last and len(out) > before
        if is_end:
            break
    # A last line without an end stays so.
    whole = "".join(f"{line}\n" for line in out)
    return whole if text.endswith("\n") or not reaches_end else whole[:-1]


def _substituted(command: _Command, line: str) -> str:
    done = regex.replaced(
        command.expression, line, command.put, ignore_case=command.ignores_case, nth=command.nth, every=command.every
    )
    if done is None:
        raise _NotRead
    return done


def _applies(command: _Command, index: int, active: list[bool], number: int, line: str, is_last: bool) -> bool:
    if command.first is None:
        return not command.negated
    if command.last is None:
        return _is_at(command.first, number, line, is_last) != command.negated
    if active[index]:
        inside = True
        active[index] = not (_is_at(command.last, number, line, is_last) or 0 < command.last.line <= number)
    else:
        inside = _is_at(command.first, number, line, is_last)
        ends = (0 < command.last.line <= number) or (command.last.is_last and is_last)
        active[index] = inside and not ends
    return inside != command.negated


def _is_at(address: _Address, number: int, line: str, is_last: bool) -> bool:
    if address.expression:
        found = regex.is_found(address.expression, line)
        if found is None:
            raise _NotRead
        return found
    return is_last if address.is_last else number == address.line


class _Reader:
    """Reads the commands of a sed script."""

    def __init__(self, text: str, is_extended: bool) -> None:
        self.text, self.place, self.is_extended = text, 0, is_extended

    def commands(self) -> list[_Command]:
        found = list[_Command]()
        while True:
            self.skip(" \t\n;")
            if self.place >= len(self.text):
                return found
            found.append(self.command())
            if len(found) > COMMANDS_MAX:
                raise _NotRead
            self.skip(" \t")
            if self.place < len(self.text) and self.text[self.place] not in ";\n":
                raise _NotRead

    def command(self) -> _Command:
        first = self.address()
        last = None
        if first is not None and self.next() == ",":
            self.place += 1
            last = self.address()
            if last is None:
                raise _NotRead
        self.skip(" \t")
        negated = self.next() == "!"
        self.place += negated
        self.skip(" \t")
        name = self.next()
        self.place += 1
        if name in ("p", "d", "q"):
            return _Command(name, first, last, negated)
        if name != "s":
            raise _NotRead
        return self.substitution(first, last, negated)

    def substitution(self, first: _Address | None, last: _Address | None, negated: bool) -> _Command:
        between = self.next()
        if not between or between in "\\\n":
            raise _NotRead
        self.place += 1
        pattern, new = self.until(between, is_pattern=True), self.until(between, is_pattern=False)
        flags = ""
        while self.next() and self.next() in "gIip0123456789":
            flags += self.next()
            self.place += 1
        digits = "".join(letter for letter in flags if letter.isdigit())
        return _Command(
            "s",
            first,
            last,
            negated,
            self.expression(pattern),
            _replacement(new),
            nth=int(digits[:4] or 1),
            every="g" in flags,
            ignores_case=bool(set(flags) & {"I", "i"}),
            prints="p" in flags,
        )

    def address(self) -> _Address | None:
        if self.next() == "$":
            self.place += 1
            return _Address(is_last=True)
        if self.next() == "/":
            self.place += 1
            return _Address(expression=self.expression(self.until("/", is_pattern=True)))
        start = self.place
        while self.next().isdigit():
            self.place += 1
        return _Address(line=int(self.text[start : self.place][:9])) if self.place > start else None

    def until(self, end: str, *, is_pattern: bool) -> str:
        """The text up to a delimiter, which is taken; an escaped delimiter stands for itself."""
        found, in_bracket = "", False
        while self.place < len(self.text):
            letter = self.text[self.place]
            self.place += 1
            if letter == "\\" and not in_bracket and self.place < len(self.text):
                following = self.text[self.place]
                self.place += 1
                if following == end and is_pattern and end in "()|+?{}^$*.[":
                    raise _NotRead  # Whether it is special then differs.
                found += following if following == end else f"\\{following}"
            elif letter == end and not in_bracket:
                return found
            else:
                if is_pattern and letter == "[" and not in_bracket:
                    in_bracket = True
                    found += letter
                    for more in ("^", "]"):
                        if self.next() == more:
                            found += more
                            self.place += 1
                    continue
                if letter == "]" and in_bracket and not found.endswith(":"):
                    in_bracket = False
                found += letter
        raise _NotRead

    def expression(self, pattern: str) -> str:
        found = patterns.extended(pattern) if self.is_extended else patterns.basic(pattern)
        if not pattern or found is None:
            raise _NotRead
        return found

    def next(self) -> str:
        return self.text[self.place : self.place + 1]

    def skip(self, letters: str) -> None:
        while self.next() and self.next() in letters:
            self.place += 1


def _replacement(text: str) -> Callable[[tuple[str, ...]], str]:
    """`&` is the match, `\\1` a group."""
    parts = list[str | int]()
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "&":
            parts.append(0)
        elif letter == "\\" and at + 1 < len(text):
            at += 1
            following = text[at]
            if following.isdigit():
                parts.append(int(following))
            elif following.isalpha() and following not in "nt":
                raise _NotRead
            else:
                parts.append({"n": "\n", "t": "\t"}.get(following, following))
        else:
            parts.append(letter)
        at += 1

    def put(found: tuple[str, ...]) -> str:
        if any(isinstance(part, int) and part >= len(found) for part in parts):
            raise _NotRead
        return "".join(found[part] if isinstance(part, int) else part for part in parts)

    return put
