"""Programs that turn text into text, as in GNU coreutils: `cut`, `tr`, `sort`, `uniq`, `head`, `wc`, `base64`.

Pure functions of arguments and input. What is not modelled is not followed: it is never guessed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from itertools import groupby

from msgspec import Struct

from seatrial.model import lazy_re

Read = Callable[[list[str]], str | None]
"""The text of files, or of the input without any; None where it is not known."""
Output = tuple[int, str]
Tool = Callable[[list[str], Read], Output | None]
"""The code and the output, by arguments and input; None where it is not followed."""

NUMBERS_MAX = 10_000
_LINES = lazy_re.compile(r"[^\n]*\n|[^\n]+")
_COUNT = lazy_re.compile(r"-(\d+)")
_SUFFIX = lazy_re.compile(r"(?:\.[A-Za-z~][A-Za-z0-9~]*)+\Z")
_RANGE = lazy_re.compile(r"(\d*)(-?)(\d*)")
_DIGITS = lazy_re.compile(r"\s*(-?)(\d*)(\.\d+)?")
_INTEGER = lazy_re.compile(r"-?\d+")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!\"#$%&'()*+,\\-./:;<=>?@[\\\\]^_`{|}~",
    "space": " \t\n\v\f\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}


class Arguments(Struct, frozen=True):
    """The arguments of a program."""

    flags: frozenset[str]
    values: dict[str, list[str]]
    operands: list[str]

    def last(self, *names: str) -> str | None:
        return next((self.values[name][-1] for name in names if name in self.values), None)


def arguments(given: list[str], flags: str, valued: str = "", names: dict[str, str] | None = None) -> Arguments | None:
    """Options by their letters, and long ones by the letters of `names`; None where one is not known."""
    short, values, operands = set[str](), dict[str, list[str]](), list[str]()
    rest = list(given)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            letter = (names or {}).get(name, "")
            if not letter or bool(equals) != (letter in valued):
                return None
            if equals:
                values.setdefault(letter, []).append(value)
            short.add(letter)
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        else:
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in valued:
                    if not letters and not rest:
                        return None
                    values.setdefault(letter, []).append(letters or rest.pop(0))
                    letters = ""
                elif letter not in flags:
                    return None
                short.add(letter)
    return Arguments(frozenset(short), values, operands)


def lines_of(text: str) -> list[str]:
    """The lines of a text; only a line feed ends one."""
    found = text.split("\n")
    return found[:-1] if found[-1] == "" else found


def as_lines(found: list[str]) -> str:
    return "".join(f"{line}\n" for line in found)


def _base64(given: list[str], read: Read) -> Output | None:
    found = arguments(given, "dDi", "w", {"decode": "d", "wrap": "w", "ignore-garbage": "i"})
    text = read(found.operands) if found else None
    if found is None or text is None:
        return None
    if found.flags & {"d", "D"}:
        try:
            decoded = base64.b64decode(text.replace("\n", ""), validate=True).decode()
        except (binascii.Error, ValueError):
            return None  # Invalid, or no text.
        return 0, decoded
    width = found.last("w") or "76"
    encoded = base64.b64encode(text.encode()).decode()
    if not width.isdigit():
        return None
    if width == "0":
        return 0, encoded
    size = int(width)
    return 0, as_lines([encoded[at : at + size] for at in range(0, len(encoded), size)])


def _cut(given: list[str], read: Read) -> Output | None:
    names = {"delimiter": "d", "fields": "f", "characters": "c", "bytes": "b", "only-delimited": "s"}
    found = arguments(given, "s", "dfcb", names)
    text = read(found.operands) if found else None
    if found is None or text is None:
        return None
    wanted = found.last("f", "c", "b")
    ranges = _ranges(wanted or "")
    if ranges is None or not text.isascii():
        return None
    if "f" not in found.values:
        chosen = ("".join(letter for at, letter in enumerate(line, 1) if ranges(at)) for line in lines_of(text))
        return 0, as_lines(list(chosen))
    between = found.last("d") or "\t"
    if len(between) != 1:
        return None
    lines = list[str]()
    for line in lines_of(text):
        if between not in line:
            lines += [] if "s" in found.flags else [line]
        else:
            lines.append(between.join(part for at, part in enumerate(line.split(between), 1) if ranges(at)))
    return 0, as_lines(lines)


def _ranges(text: str) -> Callable[[int], bool] | None:
    """`1`, `2-`, `-3`, `1,4-5`"""
    bounds = list[tuple[int, int]]()
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None or not (found[1] or found[3]) or len(part) > 18:
            return None
        first = int(found[1] or 1)
        last = int(found[3]) if found[3] else 10**9 if found[2] else first
        bounds.append((first, last))
    return lambda at: any(first <= at <= last for first, last in bounds)


def _tr(given: list[str], read: Read) -> Output | None:
    found = arguments(
        given, "cCdst", "", {"delete": "d", "squeeze-repeats": "s", "complement": "c", "truncate-set1": "t"}
    )
    text = read([]) if found else None
    sets = [_set(one) for one in found.operands] if found else []
    if found is None or text is None or None in sets or not sets or "t" in found.flags:
        return None
    given_set, *others = [one or "" for one in sets]
    inverted = bool(found.flags & {"c", "C"})
    deletes, squeezes = "d" in found.flags, "s" in found.flags
    inside = frozenset(given_set)
    if deletes:
        text = "".join(letter for letter in text if (letter in inside) == inverted)
        squeezed = frozenset(others[0]) if others else frozenset[str]()
    elif others:
        to = others[0]
        if not to or (inverted and len(to) != 1):
            return None
        table = {letter: to[min(at, len(to) - 1)] for at, letter in reversed(list(enumerate(given_set)))}
        # Of a letter that is there twice the last place counts in GNU tr.
        table |= {letter: to[min(at, len(to) - 1)] for at, letter in enumerate(given_set)}
        text = "".join(
            (letter if letter in inside else to) if inverted else table.get(letter, letter) for letter in text
        )
        squeezed = frozenset(to)
    else:
        squeezed = frozenset(c for c in text if c not in inside) if inverted else inside
    if squeezes:
        text = "".join(letter if letter in squeezed else letter * len(list(run)) for letter, run in groupby(text))
    return (0, text) if deletes or others or squeezes else None


def _set(text: str) -> str | None:
    """The letters of a set of `tr`: ranges, classes and escapes."""
    found, at = list[tuple[str, bool]](), 0
    while at < len(text):
        if text.startswith("[:", at) and (end := text.find(":]", at)) > 0:
            letters = _CLASSES.get(text[at + 2 : end])
            if letters is None:
                return None
            inner = _set(letters) or ""
            found += [(letter, True) for letter in inner]
            at = end + 2
        elif text[at] == "\\" and at + 1 < len(text):
            if text[at + 1].isdigit() and text[at + 1] != "0":
                return None
            found.append((_ESCAPES.get(text[at + 1], text[at + 1]), True))
            at += 2
        elif text.startswith(("[=", "[."), at):
            return None
        else:
            found.append((text[at], False))
            at += 1
    return _with_ranges(found)


def _with_ranges(letters: list[tuple[str, bool]]) -> str | None:
    text, at = "", 0
    while at < len(letters):
        if 0 < at < len(letters) - 1 and letters[at] == ("-", False):
            first, last = letters[at - 1][0], letters[at + 1][0]
            if ord(last) < ord(first):
                return None
            text += "".join(map(chr, range(ord(first) + 1, min(ord(last), 0x10FF) + 1)))
            at += 2
        else:
            text += letters[at][0]
            at += 1
    return text


def _head(given: list[str], read: Read) -> Output | None:
    def first(parts: list[str], size: int, sign: str) -> list[str]:
        return parts[:size] if sign != "-" else parts[:-size] if size else parts

    return _some(given, read, first)


def _tail(given: list[str], read: Read) -> Output | None:
    def last(lines: list[str], size: int, sign: str) -> list[str]:
        return lines[max(0, size - 1) :] if sign == "+" else lines[-size:] if size else []

    return _some(given, read, last)


def _some(given: list[str], read: Read, choose: Callable[[list[str], int, str], list[str]]) -> Output | None:
    short = [f"-n{count[1]}" if (count := _COUNT.fullmatch(word)) else word for word in given[:1]]
    found = arguments([*short, *given[1:]], "q", "nc", {"lines": "n", "bytes": "c", "quiet": "q"})
    if found is None or len(found.operands) > 1:
        return None
    text, size = read(found.operands), found.last("n", "c") or "10"
    number = size.lstrip("+-")
    if text is None or not number.isdigit() or len(number) > 9 or {"n", "c"} <= found.values.keys():
        return None
    if "c" in found.values and not text.isascii():
        return None
    parts = list(text) if "c" in found.values else _LINES.findall(text)
    return 0, "".join(choose(parts, int(number), size[0] if size[0] in "+-" else ""))


def _wc(given: list[str], read: Read) -> Output | None:
    found = arguments(given, "lwcm", "", {"lines": "l", "words": "w", "bytes": "c", "chars": "m"})
    text = read(found.operands) if found else None
    if found is None or text is None or found.operands or len(found.flags) != 1:
        return None
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode()), "m": len(text)}
    return 0, f"{counts[next(iter(found.flags))]}\n"


def _sort(given: list[str], read: Read) -> Output | None:
    names = {"unique": "u", "numeric-sort": "n", "reverse": "r", "version-sort": "V", "ignore-case": "f"}
    found = arguments(given, "unrVs", "", names)
    text = read(found.operands) if found else None
    if found is None or text is None or {"n", "V"} <= found.flags or not text.isascii():
        return None
    key = _number if "n" in found.flags else _versions if "V" in found.flags else None
    is_reverse = "r" in found.flags
    lines = lines_of(text)
    # Lines whose keys are equal are compared as a whole, unless `-s` or `-u` is given.
    last = None if found.flags & {"s", "u"} and key else lambda line: line.encode()
    lines = sorted(lines, key=last, reverse=is_reverse) if last else lines
    lines = sorted(lines, key=key, reverse=is_reverse) if key else lines
    if "u" in found.flags:
        lines = [next(run) for _, run in groupby(lines, key=key)]
    return 0, as_lines(lines)


def _number(line: str) -> float:
    found = _DIGITS.match(line)
    text = "".join(found.groups("")) if found else ""
    return float(text) if text and text[-1].isdigit() else 0.0


def _versions(line: str) -> tuple[object, object]:
    """The version without a suffix such as `.tar.gz`, then the whole."""
    return _version(_SUFFIX.sub("", line)), _version(line)


def _version(line: str) -> list[tuple[list[tuple[int, int]], int]]:
    """As in `sort -V`: parts of digits and of other text in turn; `~` comes before the end, letters before the rest."""
    found = list[tuple[list[tuple[int, int]], int]]()
    at = 0
    while at < len(line):
        start = at
        while at < len(line) and not line[at].isdigit():
            at += 1
        letters = [_order(letter) for letter in line[start:at]]
        start = at
        while at < len(line) and line[at].isdigit():
            at += 1
        found.append(([*letters, (0, 0)], int(line[start:at][:4000] or 0)))
    return [*found, ([(0, 0)], 0)]


def _order(letter: str) -> tuple[int, int]:
    return (-1, 0) if letter == "~" else (1, ord(letter)) if letter.isalpha() else (2, ord(letter))


def _uniq(given: list[str], read: Read) -> Output | None:
    found = arguments(given, "cdui", "", {"count": "c", "repeated": "d", "unique": "u"})
    text = read(found.operands) if found else None
    if found is None or text is None or "i" in found.flags:
        return None
    runs = [(line, len(list(run))) for line, run in groupby(lines_of(text))]
    runs = [(line, n) for line, n in runs if not ("d" in found.flags and n == 1) and not ("u" in found.flags and n > 1)]
    return 0, as_lines([f"{n:7} {line}" if "c" in found.flags else line for line, n in runs])


def _seq(given: list[str], read: Read) -> Output | None:
    found = arguments(given, "", "s") if not any(_INTEGER.fullmatch(word) for word in given[:1]) else None
    between = (found.last("s") if found else None) or "\n"
    words = found.operands if found else given
    if not all(_INTEGER.fullmatch(word) and len(word) < 16 for word in words) or not 1 <= len(words) <= 3:
        return None
    if any(word.lstrip("-").startswith("0") and len(word.lstrip("-")) > 1 for word in words):
        return None
    numbers = [int(word) for word in words]
    first, step, last = (
        [1, 1, *numbers] if len(numbers) == 1 else [numbers[0], 1, numbers[1]] if len(numbers) == 2 else numbers
    )
    if not step:
        return None
    steps = range(first, last + (1 if step > 0 else -1), step)
    if len(steps) > NUMBERS_MAX:
        return None
    return 0, between.join(map(str, steps)) + ("\n" if steps else "")


def _basename(given: list[str], read: Read) -> Output | None:
    if not 1 <= len(given) <= 2 or given[0].startswith("-"):
        return None
    name = given[0].rstrip("/").rpartition("/")[2] or given[0][:1]
    suffix = given[1] if len(given) == 2 else ""
    return 0, (name.removesuffix(suffix) if name != suffix else name) + "\n"


def _dirname(given: list[str], read: Read) -> Output | None:
    if len(given) != 1 or given[0].startswith("-"):
        return None
    path = given[0].rstrip("/")
    folder, slash, _ = path.rpartition("/")
    return 0, (folder.rstrip("/") or ("/" if slash or (given[0] and not path) else ".")) + "\n"


def _rev(given: list[str], read: Read) -> Output | None:
    text = read(given) if not given else None
    return None if text is None else (0, as_lines([line[::-1] for line in lines_of(text)]))


TOOLS: dict[str, Tool] = {
    "base64": _base64,
    "basename": _basename,
    "cut": _cut,
    "dirname": _dirname,
    "head": _head,
    "rev": _rev,
    "seq": _seq,
    "sort": _sort,
    "tail": _tail,
    "tr": _tr,
    "uniq": _uniq,
    "wc": _wc,
}
