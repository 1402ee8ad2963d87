"""The table of well-known images in images.toml, and queries on it. Knows no pod and no cluster."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data

import msgspec
from msgspec import Struct

from seatrial.model import lazy_re

_FIELD = lazy_re.compile(r"\{(?P<flag>--[-a-z]+|\$[A-Z_]+)(?:=(?P<default>[^}]*))?\}")
PAUSE_MAX_SECONDS = 120

Flags = dict[str, str]


class FromFlag(Struct, frozen=True, forbid_unknown_fields=True):
    """A value that a program takes from a flag or from a variable."""

    flag: str
    variable: str = ""
    says: str = ""


class Waits(Struct, frozen=True, forbid_unknown_fields=True):
    word: str
    seconds: float


class KnownImage(Struct, frozen=True, forbid_unknown_fields=True):
    """What the program of an image does."""

    source: str
    images: tuple[str, ...]
    entry: str = ""
    words: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    database: FromFlag | None = None
    retries: FromFlag | None = None
    waits: Waits | None = None

    def runs(self, image: str) -> bool:
        """Whether an image is one of these, by the end of its name."""
        name = image.partition("@")[0]
        name = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
        whole = name if "/" in name else f"library/{name}"
        return any(whole == known or whole.endswith(f"/{known}") for known in self.images)

    def patience_seconds(self, words: tuple[str, ...]) -> float:
        """How long it tries to reach its database."""
        if self.waits is not None and self.waits.word in words:
            return self.waits.seconds
        given = flag_value(words, self.retries.flag) if self.retries else ""
        return float(sum(min(2**n, PAUSE_MAX_SECONDS) for n in range(int(given)))) if given.isdigit() else 0.0


@cache
def known_images() -> tuple[KnownImage, ...]:
    text = get_data(__name__, "images.toml") or b""
    return tuple(msgspec.convert(tomllib.loads(text.decode()), dict[str, KnownImage]).values())


def entry_of(image: str) -> str:
    """The entry point of an image, so that `args` are its arguments; empty if it is not known."""
    return next((one.entry for one in known_images() if one.entry and one.runs(image)), "")


def from_variables(image: str, words: list[str], env: dict[str, str]) -> Iterator[str]:
    """The flags that stand for variables which the program of an image reads."""
    for one in known_images():
        for value in filter(None, (one.database, one.retries) if one.runs(image) else ()):
            if value.variable in env and not flag_value(tuple(words), value.flag):
                yield f"{value.flag}={env[value.variable]}"


def caller(program: str) -> KnownImage | None:
    """The program that calls a database, by its name."""
    return next((one for one in known_images() if one.database and one.entry == program), None)


def secrets_of(one: KnownImage, flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names and keys of the Secrets that a program creates with these flags."""
    for line in one.secrets:
        made, _, condition = line.partition(" if ")
        if condition and flags.get(condition, "false") not in ("", "true"):
            continue
        name, _, keys = made.partition(": ")
        yield _filled(name, flags), tuple(_filled(key, flags) for key in keys.split())


def flag_value(words: tuple[str, ...], flag: str) -> str:
    """`-url=X`, `--url X`, with one dash or two."""
    name = flag.lstrip("-")
    for index, word in enumerate(words):
        given, equals, value = word.partition("=")
        if word.startswith("-") and given.lstrip("-") == name:
            return value if equals else words[index + 1] if index + 1 < len(words) else ""
    return ""


def _filled(text: str, flags: Flags) -> str:
    filled = _FIELD.sub(lambda found: flags.get(found["flag"], found["default"] or ""), text)
    return "" if filled.startswith("-") else filled  # A prefix that is not given.
