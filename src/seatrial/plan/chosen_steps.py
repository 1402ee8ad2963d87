"""`--steps`: which steps of a default trial are rehearsed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from itertools import takewhile

from msgspec.structs import replace

from seatrial.engines.engine import load, names
from seatrial.model.engine import Action, Role
from seatrial.model.errors import CannotContinue
from seatrial.model.options import NO_DETOUR, Detour
from seatrial.model.trial import Step

ALIASES = {"reconcile": "sync"}
DEPLOYS = ("install", "replace", "back")
"""Roles that an engine with one action for all of them, such as a sync, has in that action."""


def chosen(steps: tuple[Step, ...], words: Iterable[str], engine: str) -> tuple[Step, ...]:
    """The steps that are named, in the words of any engine; all of them if none is named."""
    wanted = {action for word in words for action in _actions(ALIASES.get(word, word), engine)}
    kept = tuple(step for step in _possible(steps, wanted, engine) if step.action in wanted) if wanted else steps
    if not kept:
        own = ", ".join(dict.fromkeys(step.action for step in steps))
        raise CannotContinue(
            f"--steps {','.join(words)}: the default trial of {engine} has no such step (it has {own})"
        )
    return kept


def with_detour(steps: tuple[Step, ...], detour: Detour, engine: str) -> tuple[Step, ...]:
    """The steps with a detour at the first one that replaces a release."""
    roles = {action.name: action.role for action in load(engine).actions}
    at = next(
        (n for n, step in enumerate(steps) if roles.get(step.action) == "replace" and (n or len(steps) == 1)), None
    )
    if at is None or detour == NO_DETOUR:
        return steps
    once = replace(steps[at], flags=(*steps[at].flags, *detour.flags))
    return (*steps[:at], *detour.before, once, *steps[at + 1 :])


def _possible(steps: tuple[Step, ...], wanted: Collection[str], engine: str) -> tuple[Step, ...]:
    """Without the removal there is nothing to reinstall: what comes after it is left out as well."""
    removals = {action.name for action in load(engine).actions if action.role == "remove"} - set(wanted)
    return tuple(takewhile(lambda step: step.action not in removals, steps))


def _actions(word: str, engine: str) -> Iterator[str]:
    """The actions of an engine that a word means: its own, or those with the role that the word has elsewhere."""
    own = load(engine).actions
    if any(action.name == word for action in own):
        yield word
        return
    others = [found for found in map(_of, names()) if any(action.name == word for action in found)]
    if not others:
        raise CannotContinue(_unknown(word, own))
    roles = {role for actions in others for role in _roles(word, actions)}
    alike = [action.name for action in own if action.role in roles]
    yield from alike or (action.name for action in own if action.role in DEPLOYS and roles.intersection(DEPLOYS))


def _of(engine: str) -> tuple[Action, ...]:
    return load(engine).actions


def _roles(word: str, actions: Iterable[Action]) -> Iterator[Role]:
    """The roles of an action; one that deploys whatever is there also installs."""
    installs = any(action.role == "install" for action in actions)
    for action in actions:
        if action.name == word:
            yield action.role
            if action.role == "replace" and not installs:
                yield "install"


def _unknown(word: str, own: Iterable[Action]) -> str:
    known = sorted({*ALIASES, *(action.name for name in names() for action in load(name).actions)})
    close = get_close_matches(word, known, n=1)
    meant = f"did you mean {close[0]}?" if close else f"known steps: {', '.join(action.name for action in own)}"
    return f"--steps {word}: no such step; {meant}"
