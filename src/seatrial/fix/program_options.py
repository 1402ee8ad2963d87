"""Options of resources in Python and TypeScript programs: what they depend on, and other ones."""

from __future__ import annotations

import re

from seatrial.fix.calls import ResourceCall, call_at, inner_call, items_of, object_at
from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.model import lazy_re
from seatrial.model.program import Registration
from seatrial.model.resource import Place
from seatrial.phrases.programs import PYTHON
from seatrial.sources import line_at, text_of
from seatrial.text.source import Edit, Span, Text

OPTIONS = 3
"""Position of the options among the arguments of a resource in TypeScript: name, properties, options."""
_VARIABLE = lazy_re.compile(
    r"^\s*(?:export\s+)?(?:(?:const|let|var)\s+)?(?P<name>(?:(?:this|self)\.)?[A-Za-z_$][\w$]*)\s*(?::[^=]+)?=[^=]"
)
_IMPORTED = lazy_re.compile(r"^from pulumi import .*\bResourceOptions\b", re.M)
_MODULE = lazy_re.compile(r"^import pulumi(?: as (?P<name>\w+))?[ \t]*(?:#.*)?$", re.M)
_FIRST_IMPORT = lazy_re.compile(r"^(?:import|from) pulumi_", re.M)


def variable_of(one: Registration) -> str:
    """What the program calls a resource: the variable on its line; empty if it has none."""
    found = _VARIABLE.match(line_at(one.place) or "") if one.place else None
    return found["name"] if found else ""


def depending(place: Place, name: str, *, ready: bool) -> Edits | ByHand:
    """Let the resource at a place depend on a variable: on its resources (`ready`), or on itself."""
    call = _call(place)
    if isinstance(call, ByHand):
        return call
    python = place.file.endswith(PYTHON)
    key = "depends_on" if python else "dependsOn"
    options = _options(call)
    if isinstance(options, ByHand):
        return options
    now = options.given(key) if options else None
    if now is None:
        return _with_option(call, options, key, f"{name}.ready" if ready else f"[{name}]")
    words = call.text.within(now.value)
    items = items_of(call.text, now.value) or ([words] if re.fullmatch(r"[\w$.]+", words) else None)
    if items is None:
        return ByHand(f"{place} has {key} that is neither a list nor a name")
    others = [item for item in items if item != name]
    return _replaced(call.text, now.value, _joined(name, others, ready=ready, python=python))


def with_option(place: Place, python: tuple[str, str], typescript: tuple[str, str]) -> Edits | ByHand:
    """Give the resource at a place an option that it does not have."""
    call = _call(place)
    if isinstance(call, ByHand):
        return call
    options = _options(call)
    if isinstance(options, ByHand):
        return options
    key, value = python if place.file.endswith(PYTHON) else typescript
    if options is not None and options.given(key):
        return ByHand(f"{place} has {key} already")
    return _with_option(call, options, key, value)


def _joined(name: str, others: list[str], *, ready: bool, python: bool) -> str:
    if not ready:
        return f"[{', '.join((*others, name))}]"
    if not others:
        return f"{name}.ready"
    listed = ", ".join(others)
    if python:
        return f"{name}.ready.apply(lambda ready: [*ready, {listed}])"
    return f"{name}.ready.apply((ready) => [...ready, {listed}])"


def _call(place: Place) -> ResourceCall | ByHand:
    text = text_of(place.file)
    call = call_at(text, place.line) if text else None
    return call or ByHand(f"{place} does not create one resource")


def _options(call: ResourceCall) -> ResourceCall | ByHand | None:
    """The options of a resource as they are written; None if it has none."""
    where = f"{call.text.path}:{call.text.line(call.callee.start)}"
    if call.text.path.endswith(PYTHON):
        given = call.given("opts")
        found = inner_call(call.text, given.value) if given else None
        is_literal = found is not None and call.text.within(found.callee).endswith("ResourceOptions")
    else:
        given = call.arguments[OPTIONS - 1] if len(call.arguments) >= OPTIONS else None
        found = object_at(call.text, given.value) if given else None
        is_literal = found is not None and all(one.name for one in found.arguments)
    if given is None:
        return None
    return found if found and is_literal else ByHand(f"{where} takes its options from elsewhere")


def _with_option(call: ResourceCall, options: ResourceCall | None, key: str, value: str) -> Edits | ByHand:
    text, python = call.text, call.text.path.endswith(PYTHON)
    between = "=" if python else ": "
    if options is not None:
        return _first(text, options, f"{key}{between}{value}", spaced=not python)
    if python:
        named, imported = _options_class(text)
        return (*imported, *_last(text, call, f"opts={named}({key}={value})"))
    if len(call.arguments) != OPTIONS - 1:
        return ByHand(f"{text.path}:{text.line(call.callee.start)} has no properties")
    end = call.arguments[-1].whole.end
    return _inserted(text, end, f", {{ {key}: {value} }}")


def _first(text: Text, options: ResourceCall, words: str, *, spaced: bool) -> Edits:
    """Before the first option, on a line of its own if that has one."""
    if not options.arguments:
        return _inserted(text, options.opens, f" {words} " if spaced else words)
    at = options.arguments[0].whole.start
    before = text.content[options.opens : at]
    return _inserted(text, at, f"{words},{before}" if "\n" in before else f"{words}, ")


def _last(text: Text, call: ResourceCall, words: str) -> Edits:
    """After the last argument, on a line of its own if that has one."""
    last = call.arguments[-1].whole if call.arguments else Span(call.opens, call.opens)
    if not call.arguments:
        return _inserted(text, call.opens, words)
    own = text.line_at(text.line(last.start))
    indent = own[: len(own) - len(own.lstrip())]
    alone = text.line(last.start) != text.line(call.opens - 1) and last.start == text.start_of(
        text.line(last.start)
    ) + len(indent)
    return _inserted(text, last.end, f",\n{indent}{words}" if alone else f", {words}")


def _options_class(text: Text) -> tuple[str, Edits]:
    """How the program names ResourceOptions, and the import that it lacks."""
    if _IMPORTED.search(text.content):
        return "ResourceOptions", ()
    if found := _MODULE.search(text.content):
        return f"{found['name'] or 'pulumi'}.ResourceOptions", ()
    first = _FIRST_IMPORT.search(text.content)
    return "pulumi.ResourceOptions", _inserted(text, first.start() if first else 0, "import pulumi\n")


def _inserted(text: Text, at: int, words: str) -> Edits:
    return (TextEdit(text, Edit(Span(at, at), words)),)


def _replaced(text: Text, span: Span, words: str) -> Edits:
    return (TextEdit(text, Edit(span, words)),)
