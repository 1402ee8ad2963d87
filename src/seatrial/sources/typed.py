"""YAML of users as typed data. What does not fit is refused with its line, and with the key that was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from seatrial.kinds.tables.shapes import fitted
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.text.yamlfile import Document

T = TypeVar("T")

_PART = lazy_re.compile(r"\.([\w-]+)|\[(\d+)\]")
_UNKNOWN = lazy_re.compile(r"Object contains unknown field `([^`]*)`")


def converted(document: Document, shape: type[T]) -> T:
    """A document as an instance of a Struct."""
    try:
        return msgspec.convert(document.body, shape)
    except msgspec.ValidationError as wrong:
        raise CannotContinue(_refusal(str(wrong), document, shape)) from None


def refuse_misfits(document: Document, struct: str, doing: str) -> None:
    """Refuse a document with a value that does not have the type of its field in a struct of the tables."""
    _, wrong = fitted(document.body, struct)
    if wrong:
        raise CannotContinue(f"{document.place(*wrong[0].path)}: {doing}: {wrong[0]}")


def _refusal(wrong: str, document: Document, shape: type[Any]) -> str:
    sentence, _, at = wrong.partition(" - at `$")
    path = [int(index) if index else key for key, index in _PART.findall(at)]
    unknown = _UNKNOWN.match(sentence)
    if unknown is None:
        key = ".".join(str(part) for part in path if isinstance(part, str))
        hint = "; put it in quotes" if sentence.startswith("Expected `str`, got") else ""
        return f"{document.place(*path)}: {f'{key}: ' if key else ''}{sentence[:1].lower()}{sentence[1:]}{hint}"
    known = _keys(inspect.type_info(shape), path)
    close = get_close_matches(unknown[1], known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return f"{document.place(*path, unknown[1])}: unknown key {unknown[1]}; {hint}"


def _keys(shape: inspect.Type, path: list[int | str]) -> list[str]:
    """The keys that a mapping at this path may have."""
    for part in path:
        if isinstance(shape, inspect.Metadata):
            shape = shape.type
        if isinstance(shape, inspect.StructType):
            shape = next(field.type for field in shape.fields if field.encode_name == part)
        elif isinstance(shape, inspect.VarTupleType | inspect.ListType):
            shape = shape.item_type
    return [field.encode_name for field in shape.fields] if isinstance(shape, inspect.StructType) else []
