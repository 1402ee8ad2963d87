"""Image tags in values: which text is one, and what the next release makes of it. Reads no file.

The one place that decides what an image tag is. A digest stays, and so does a tag that names no version (`latest`,
`16`): releases do not change it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.resource import Body

_NUMBERS = lazy_re.compile(r"(?<![\d.])\d+(?:\.\d+)+(?![\d.]*\d)")
_DATE = lazy_re.compile(r"(?<!\d)(\d{4}-\d{2}-)(\d{2})(?!\d)")
_BUILD = lazy_re.compile(r"(?<!\d)\d{5,}(?!\d)")
_COMMIT = lazy_re.compile(r"(?:[a-z]+-)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}")
_FLOATING = lazy_re.compile(r"(?:^|[-_.])(?:latest|nightly|edge)(?:$|[-_.])")
_REFERENCE = lazy_re.compile(r"(?!.*://)(?P<name>[a-z0-9][\w./-]*(?::\d+/[\w./-]+)?):(?P<tag>\w[\w.-]*)")
IN_CLUSTER = ".svc"
"""In the name of a registry that runs in the cluster: it has the tags that builds in the cluster push."""
REPOSITORIES = ("repository", "repo", "registry", "image", "name")
DIGESTS = ("digest", "sha", "sha256", "imageDigest")
DAYS = 28

Path = tuple[str | int, ...]


def next_version(text: str) -> str:
    """The version or tag of the next release: `1.2.4` after `1.2.3`, `1.25.1-alpine` after `1.25-alpine`.

    The patch number is raised, so that constraints and minor versions still hold. The same text if it names no version.
    """
    if "@" in text or _FLOATING.search(text):
        return text
    if found := _NUMBERS.search(text):
        numbers = found[0].split(".")
        raised = [*numbers, "1"] if len(numbers) == 2 else [*numbers[:-1], _one_more(numbers[-1])]
        return text[: found.start()] + ".".join(raised) + text[found.end() :]
    if _COMMIT.fullmatch(text):
        return text[:-1] + f"{(int(text[-1], 16) + 1) % 16:x}"
    if found := _DATE.search(text):
        return text[: found.start(2)] + f"{int(found[2]) % DAYS + 1:02}" + text[found.end() :]
    if found := _BUILD.search(text):
        return text[: found.start()] + _one_more(found[0]) + text[found.end() :]
    return text


def tags_in(values: Body, at: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """The image tags in values that the next release changes: the path, the tag, and the value with the next one."""
    for key, value in values.items():
        path = (*at, key)
        if isinstance(value, dict):
            yield from tags_in(value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from _in_item(item, (*path, index))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield from _in_value(path, str(value), values)


def with_next_tags(values: Body, kept: Collection[str] = ()) -> Body:
    """The image tags in values as the next release sets them, and nothing else but the lists that hold one.

    Tags in `kept` stay.
    """
    raised = {path: new for path, tag, new in tags_in(values) if tag not in kept}
    found: Body = _only(values, (), raised)
    return found


def _in_item(item: Any, path: Path) -> Iterator[tuple[Path, str, str]]:
    if isinstance(item, dict):
        yield from tags_in(item, path)
    elif isinstance(item, str):
        yield from _in_value(path, item, {})


def _in_value(path: Path, text: str, beside: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """A tag by itself, beside the name of its image, or an image with its tag."""
    if _is_tag(path, beside):
        tag, raised = text, next_version(text)
    elif (found := _REFERENCE.fullmatch(text)) and _is_image(path, found["name"], found["tag"]):
        tag = found["tag"]
        raised = f"{found['name']}:{next_version(tag)}"
    else:
        return
    if raised != text:
        yield path, tag, raised


def _is_tag(path: Path, beside: Mapping[str, Any]) -> bool:
    key = str(path[-1])
    if any(beside.get(name) for name in DIGESTS):
        return False
    if any(IN_CLUSTER in str(beside.get(name) or "") for name in REPOSITORIES):
        return False
    if key == "tag" or key.endswith(("Tag", "_tag", "-tag")):
        return True
    named = any(isinstance(beside.get(name), str) for name in ("repository", "image"))
    return key == "version" and (named or _names_image(path[:-1]))


def _is_image(path: Path, name: str, tag: str) -> bool:
    """Whether `name:tag` is an image, by its key, or because nothing else looks like `team/app:1.2`."""
    if IN_CLUSTER in name or name in DIGESTS:
        return False
    return _names_image(path) or ("/" in name and _NUMBERS.search(tag) is not None)


def _names_image(path: Path) -> bool:
    """Whether the key of a value, or the one above it, says that it is an image."""
    return any("image" in str(key).lower() for key in path[-2:])


def _one_more(number: str) -> str:
    return str(int(number) + 1).zfill(len(number))


def _only(value: Any, at: Path, raised: dict[Path, str], *, whole: bool = False) -> Any:
    """The part of values that leads to raised tags. A list is taken over `whole`, since Helm replaces lists."""
    if at in raised:
        return raised[at]
    if isinstance(value, list):
        return [_only(item, (*at, index), raised, whole=True) for index, item in enumerate(value)]
    if isinstance(value, dict):
        leading = {path[len(at)] for path in raised if path[: len(at)] == at}
        return {
            key: _only(below, (*at, key), raised, whole=whole)
            for key, below in value.items()
            if whole or key in leading
        }
    return value
