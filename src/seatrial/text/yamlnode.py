"""Nodes of one YAML document, composed by libyaml within limits, and their values. Knows nothing of files or lines.

In mappings the last of two equal keys wins (Helm and kubectl do not decode strictly). `<<` merges at its position: it
overrides the keys before it and is overridden by the keys after it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]

from seatrial.model import lazy_re
from seatrial.text import yamlscalar

NESTING_MAX = 300
"""Deeper than any CRD schema, and shallow enough for a recursive walk over a body."""

ALIASES_FREE = 100
VALUES_FREE = 1000
ALIAS_SHARE_MAX = 0.99
VALUES_MAX = 4_000_000
"""Limits on alias expansion, after `allowedAliasRatio` in decode.go of go.yaml.in/yaml/v2."""

_ANCHOR = lazy_re.compile(r"(?:^|[\s\[{,])&[^\s&,\[\]{}]")
_BEFORE = lazy_re.compile(r"(?:--- *\n)?(?: *(?:#[ -~]*)?\n)*")
"""The separator and the comments before a document: Helm writes `# Source:` there."""
_KEEPS_LINES = lazy_re.compile(r"[|>][0-9]*\+")
"""A block scalar that keeps the blank lines after it."""
_STARTS = lazy_re.compile(r"\s|%|#|---|\.\.\.|\ufeff|\Z")
"""What a document may start with that has another meaning without the lines before it."""
_SURROGATE = lazy_re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

_IN_PROGRESS = (0, 0)
"""Marks a node whose size is still being computed."""

Path = tuple[str | int, ...]


class InvalidYaml(Exception):
    """A document that cannot be parsed: the reason and the offset."""

    def __init__(self, problem: str, index: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.index = index


def body_of(content: str) -> Any:
    """Cached `value_of`: the steps of a trial read the same documents again, and Helm's records contain them."""
    same = _BEFORE.sub("", content, count=1)
    if same.endswith("\n") and not _KEEPS_LINES.search(same):
        same = same.rstrip("\n") + "\n"
    try:
        return _body_of(content if _STARTS.match(same) else same)
    except InvalidYaml:
        return value_of(content)  # The same error, at its place in the whole text.


@lru_cache(maxsize=1024)
def _body_of(content: str) -> Any:
    return value_of(content)


def value_of(content: str) -> Any:
    """The value of the first document in `content`; None if there is no document."""
    node = _composed(content)
    if node is None:
        return None
    if _ANCHOR.search(content):
        _check_aliases(node)
    return _value(node)


@lru_cache(maxsize=32)
def nodes(content: str) -> yaml.Node | None:
    """The nodes of a document that was parsed before. JSON may contain tabs and surrogates that libyaml rejects."""
    try:
        return _composed(content)
    except InvalidYaml:
        return _composed(_SURROGATE.sub("\\\\u0020", content.replace("\t", " ")))


def resolve_path(root: yaml.Node | None, path: Path) -> tuple[int, yaml.Node | None, Path]:
    """Follows `path`: the offset of the last key or item found, its value, and the rest of the path."""
    if root is None:
        return 0, None, path
    start, node = start_of(root), root
    for depth, step in enumerate(path):
        found = _step(node, step)
        if found is None:
            return start, node, path[depth:]
        start, node = start_of(found[0]), found[1]
    return start, node, ()


def overridden(root: yaml.Node | None, path: Path) -> tuple[tuple[str, str], ...]:
    """The keys of a mapping that occur again further down, with the values that this hides."""
    _, node, left = resolve_path(root, path)
    if left or not isinstance(node, yaml.MappingNode):
        return ()
    written = [(str(key.value), value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    later = [{name for name, _ in written[index + 1 :]} for index in range(len(written))]
    return tuple(
        (name, str(value.value))
        for (name, value), names in zip(written, later, strict=True)
        if name in names and isinstance(value, yaml.ScalarNode)
    )


def start_of(node: yaml.Node) -> int:
    return int(node.start_mark.index)


def end_of(node: yaml.Node, content: str) -> int:
    """The offset at which a value ends. libyaml ends a block at the next token, after comments and blank lines."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and (children := _children(node)):
        last = children[-1]
        if start_of(last) < start_of(node):  # An alias refers to a node further up.
            return _line_end(content, max(map(start_of, children)))
        node = last
    return start_of(node) + len(content[start_of(node) : int(node.end_mark.index)].rstrip())


def _line_end(content: str, offset: int) -> int:
    end = content.find("\n", offset)
    return len(content[:end].rstrip()) if end >= 0 else len(content.rstrip())


def _composed(content: str) -> yaml.Node | None:
    # libyaml does not count a byte order mark. A line break in its place keeps the indices correct.
    content = "\n" + content[1:] if content.startswith("\ufeff") else content
    try:
        return _first(_Loader(content))
    except yaml.composer.ComposerError as error:
        if "duplicate anchor" not in str(error.context):
            raise _invalid(error, content) from None
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        raise _invalid(error, content) from None
    try:
        return _first(_DuplicateAnchors(content))
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        raise _invalid(error, content) from None


def _first(loader: Any) -> yaml.Node | None:
    return cast(yaml.Node, loader.get_node()) if loader.check_node() else None


class _Loader(CParser):
    """libyaml's composer. Leaves tags to `yamlscalar` and limits the nesting, which would overflow the stack."""

    def __init__(self, content: str) -> None:
        CParser.__init__(self, content)
        self._depth = 0

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode:
            return yamlscalar.PLAIN if implicit[0] else yamlscalar.QUOTED
        return ""

    def descend_resolver(self, node: yaml.Node | None, index: object) -> None:
        self._depth += 1
        if self._depth > NESTING_MAX and node is not None:
            raise InvalidYaml(f"nested more than {NESTING_MAX} deep", start_of(node))

    def ascend_resolver(self) -> None:
        self._depth -= 1


class _DuplicateAnchors(Composer, _Loader):
    """The same, for documents that define an anchor twice: the later anchor wins. libyaml's composer rejects this."""

    def __init__(self, content: str) -> None:
        _Loader.__init__(self, content)
        Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(getattr(event, "anchor", None), None)
        return super().compose_node(parent, index)


def _invalid(error: yaml.YAMLError, content: str) -> InvalidYaml:
    if isinstance(error, yaml.reader.ReaderError):
        return InvalidYaml(str(error.reason), max(0, content.find(chr(error.character))))
    assert isinstance(error, yaml.MarkedYAMLError)
    # A scanner reports an error at the end of the line or file and stores where the problem began.
    start = error.context_mark if isinstance(error, yaml.scanner.ScannerError) else None
    mark = start or error.problem_mark or error.context_mark
    return InvalidYaml(str(error.problem or error.context), int(mark.index) if mark else 0)


def _check_aliases(root: yaml.Node) -> None:
    """Reject aliases that multiply. Counts the values they expand to without expanding them."""
    known: dict[int, tuple[int, int]] = {}
    aliased = 0

    def measure(node: yaml.Node) -> tuple[int, int]:
        """How many values a node expands to, and how deep they nest."""
        nonlocal aliased
        if isinstance(node, yaml.ScalarNode):
            return 1, 1
        if found := known.get(id(node)):
            if found == _IN_PROGRESS:
                raise InvalidYaml("an anchor's value contains itself", start_of(node))
            aliased += found[0]
            return found
        known[id(node)] = _IN_PROGRESS
        below = [measure(child) for child in _children(node)]
        weight, height = 1 + sum(w for w, _ in below), 1 + max((h for _, h in below), default=0)
        if height > NESTING_MAX:
            raise InvalidYaml(f"nested more than {NESTING_MAX} deep", start_of(node))
        known[id(node)] = weight, height
        return weight, height

    total, _ = measure(root)
    excessive = aliased > ALIASES_FREE and total > VALUES_FREE and aliased / total > ALIAS_SHARE_MAX
    if excessive or (aliased and total > VALUES_MAX):
        raise InvalidYaml("document contains excessive aliasing", start_of(root))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _value(node: yaml.Node) -> Any:
    # Node types are compared by identity: most of the time for reading a thousand objects is spent here.
    kind = node.__class__
    if kind is yaml.ScalarNode:
        try:
            return yamlscalar.scalar(node.tag, node.value)
        except yamlscalar.BadScalar as error:
            raise InvalidYaml(str(error), start_of(node)) from None
    if kind is yaml.SequenceNode:
        return [_value(item) for item in node.value]
    body: dict[str, Any] = {}
    for key, value in node.value:
        if _merges(key):
            for merged in _merged(value):
                body.update(_value(merged))
        else:
            body[_key(key)] = _value(value)
    return body


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise InvalidYaml("invalid map key", start_of(node))
    try:
        return yamlscalar.key(node.tag, node.value)
    except yamlscalar.BadScalar as error:
        raise InvalidYaml(str(error), start_of(node)) from None


def _merges(key: yaml.Node) -> bool:
    return key.value == "<<" and (key.tag == yamlscalar.PLAIN or key.tag == "tag:yaml.org,2002:merge")


def _merged(node: yaml.Node) -> list[yaml.Node]:
    """The mappings under `<<`, the one with the highest precedence last."""
    found = list(reversed(node.value)) if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(one, yaml.MappingNode) for one in found):
        raise InvalidYaml("map merge requires map or sequence of maps as the value", start_of(node))
    return found


def _step(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and 0 <= step < len(node.value):
            return node.value[step], node.value[step]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in reversed(node.value):
        if _merges(key):
            found = next((hit for one in reversed(_merged(value)) if (hit := _step(one, step))), None)
            if found:
                return found
        elif _key(key) == step:
            return key, value
    return None
