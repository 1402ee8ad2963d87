"""Patches in the user's kustomization, for objects whose own files must not be changed or do not have the field."""

from __future__ import annotations

import re
from pathlib import PurePath

from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES = lazy_re.compile(r"^patches:[ \t]*(#.*)?\r?\n(?P<items>(?:[ \t-].*\n?|[ \t]*\n)*)", re.M)
_AFFIX = lazy_re.compile(r"""^name(?P<which>Prefix|Suffix):[ ]*["']?(?P<value>[\w.-]+)["']?""", re.M)


def is_built(resource: Resource) -> bool:
    """Whether a kustomization builds it."""
    return PurePath(resource.file).name in FILES


def annotated_by_patch(resource: Resource, wanted: dict[str, str]) -> Edits | ByHand:
    """Annotations by a patch of the kustomization."""
    text = text_of(resource.file)
    if text is None:
        return ByHand(f"{resource.file} cannot be read again")
    own = [line for key, value in wanted.items() for line in (f'{key}: "{value}"',)]
    name = _name(resource, text)
    lines = [
        "- target:",
        f"    kind: {resource.ref.kind}",
        f"    name: {name}",
        "  patch: |-",
        f"    apiVersion: {resource.body.get('apiVersion')}",
        f"    kind: {resource.ref.kind}",
        "    metadata:",
        f"      name: {name}",
        "      annotations:",
        *(f"        {line}" for line in own),
    ]
    return _appended(text, lines)


def _name(resource: Resource, text: Text) -> str:
    """The name before this kustomization adds to it: patches come first."""
    name = resource.ref.name
    for found in _AFFIX.finditer(text.content):
        name = name.removeprefix(found["value"]) if found["which"] == "Prefix" else name.removesuffix(found["value"])
    return name


def _appended(text: Text, lines: list[str]) -> Edits | ByHand:
    content = text.content
    found = _PATCHES.search(content)
    if found is None and re.search(r"^patches:", content, re.M):
        return ByHand(f"{text.path}: the patches are not written as a block")
    if found is None:
        start = "" if content.endswith("\n") or not content else "\n"
        words = "".join(f"{line}\n" for line in ("patches:", *(f"  {line}" for line in lines)))
        return (TextEdit(text, Edit(Span(len(content), len(content)), f"{start}{words}")),)
    first = re.match(r"(?P<indent>[ ]*)- ", found["items"])
    indent = first["indent"] if first else "  "
    end = found.start("items") + len(found["items"].rstrip())
    return (TextEdit(text, Edit(Span(end, end), "".join(f"\n{indent}{line}" for line in lines))),)
