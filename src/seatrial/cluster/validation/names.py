"""Names, labels and keys in Kubernetes, and the API server's errors for invalid ones.

Each function returns the problems of a text. The texts follow apimachinery's `util/validation/validation.go` of
Kubernetes 1.34; older minors word some of them differently.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from seatrial.model import lazy_re

Problems = tuple[str, ...]
NameRule = Callable[[str], Problems]

_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"

_QUALIFIED_RE = lazy_re.compile(_QUALIFIED)
_LABEL_VALUE_RE = lazy_re.compile(_LABEL_VALUE)
_LABEL_RE = lazy_re.compile(_LABEL)
_LABEL_1035_RE = lazy_re.compile(_LABEL_1035)
_SUBDOMAIN_RE = lazy_re.compile(_SUBDOMAIN)
_WILDCARD_RE = lazy_re.compile(rf"\*\.{_SUBDOMAIN}")
_CONFIG_KEY_RE = lazy_re.compile(_CONFIG_KEY)
_PERCENT_RE = lazy_re.compile(_PERCENT)
_PORT_NAME_RE = lazy_re.compile("[-a-z0-9]+")
_LETTER_RE = lazy_re.compile("[a-z]")

_ENDS = "and must start and end with an alphanumeric character"
_QUALIFIED_WORDS = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_TOO_MANY_PARTS = (
    f"a qualified name {_QUALIFIED_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_LABEL_VALUE_WORDS = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)
_LABEL_WORDS = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character "
    f"(e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
)
_SUBDOMAIN_WORDS = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_WILDCARD_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
    rf"(e.g. '*.example.com', regex used for validation is '\*\.{_SUBDOMAIN}')"
)
_CONFIG_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
_PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
)


def subdomain(value: str) -> Problems:
    if len(value) <= 253 and _SUBDOMAIN_RE.fullmatch(value):
        return ()
    return (*_longer_than(value, 253), *(() if _SUBDOMAIN_RE.fullmatch(value) else (_SUBDOMAIN_WORDS,)))


def wildcard_subdomain(value: str) -> Problems:
    return (*_longer_than(value, 253), *(() if _WILDCARD_RE.fullmatch(value) else (_WILDCARD_WORDS,)))


def label(value: str) -> Problems:
    if len(value) <= 63 and _LABEL_RE.fullmatch(value):
        return ()
    if _LABEL_RE.fullmatch(value):
        return _longer_than(value, 63)
    dotted = "must not contain dots" if _SUBDOMAIN_RE.fullmatch(value) else _LABEL_WORDS
    return (*_longer_than(value, 63), dotted)


def label_1035(value: str) -> Problems:
    return (*_longer_than(value, 63), *(() if _LABEL_1035_RE.fullmatch(value) else (_LABEL_1035_WORDS,)))


def path_segment(value: str) -> Problems:
    """Names of RBAC kinds: anything that fits between two slashes."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in value)


@lru_cache(maxsize=4096)
def qualified_name(value: str) -> Problems:
    """Keys of labels, and finalizers: a name with an optional DNS prefix."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (_TOO_MANY_PARTS,)
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {problem}" for problem in subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 characters")
    if not _QUALIFIED_RE.fullmatch(name):
        found.append(f"name part {_QUALIFIED_WORDS}")
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value(value: str) -> Problems:
    if len(value) <= 63 and _LABEL_VALUE_RE.fullmatch(value):
        return ()
    return (*_longer_than(value, 63), *(() if _LABEL_VALUE_RE.fullmatch(value) else (_LABEL_VALUE_WORDS,)))


def config_key(value: str) -> Problems:
    """Keys of ConfigMaps and Secrets: file names without a path."""
    if len(value) <= 253 and value[:1] != "." and _CONFIG_KEY_RE.fullmatch(value):
        return ()
    found = [*_longer_than(value, 253), *(() if _CONFIG_KEY_RE.fullmatch(value) else (_CONFIG_KEY_WORDS,))]
    if value in (".", ".."):
        found.append(f"must not be '{value}'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


@lru_cache(maxsize=4096)
def port_name(value: str) -> Problems:
    found = list(_longer_than(value, 15))
    if not _PORT_NAME_RE.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER_RE.search(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def env_name(value: str) -> Problems:
    if all(" " <= letter <= "~" and letter != "=" for letter in value):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def percent(value: str) -> Problems:
    if not _PERCENT_RE.fullmatch(value):
        return (_PERCENT_WORDS,)
    return ()


def port_number(value: int) -> Problems:
    return () if 1 <= value <= 65535 else ("must be between 1 and 65535, inclusive",)


def as_prefix(value: str) -> str:
    """A generateName may end in a dash, because a suffix follows."""
    return f"{value[:-2]}a" if len(value) > 1 and value.endswith("-") else value


def _longer_than(value: str, length_max: int) -> Problems:
    return (f"must be no more than {length_max} characters",) if len(value.encode()) > length_max else ()
