"""Loops of a script: `while`, `until`, `for`, and when one comes back to where it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from seatrial.kinds.scripts.expansion import UNKNOWN, fields
from seatrial.kinds.scripts.invoking import guarded, value_of
from seatrial.kinds.scripts.process import Undecided
from seatrial.kinds.scripts.run_state import LoopLeft, RunState
from seatrial.kinds.scripts.syntax import Block, Counted, For, Loop, Word
from seatrial.model import lazy_re

TURNS_MAX = 2_000
"""Of all loops of a script together; one that goes on for longer is not followed."""
WRITING_TURNS_MAX = 3
"""Of a loop that comes back to where it was and changes something each time."""
_RANGE = lazy_re.compile(r"\{(\d+)\.\.(\d+)\}")


def holds(asks: Block, state: RunState) -> bool:
    code = guarded(partial(state.block, asks, state), state, True)
    if code is None:
        raise Undecided
    return code == 0


def looped(run: Callable[[], int | None], state: RunState) -> int | None:
    """Run a loop. Its turns are seen again from their start when something changes."""
    before = state.run.turn
    try:
        return run()
    finally:
        state.run.turn = before


def repeat(loop: Loop, state: RunState) -> int | None:
    code: int | None = 0
    writing = 0
    while True:
        before, sends, fresh = (dict(state.scope.variables), state.stdin), state.sends, state.run.is_fresh
        state.run.turn = state.run.place
        if holds(loop.asks, state) == loop.until:
            return code
        how, code = _turn(loop.body, state)
        if how == "break":
            return 0
        if (state.scope.variables, state.stdin) == before and fresh:
            writing += state.sends != sends
            if state.sends == sends or writing >= WRITING_TURNS_MAX:
                state.run.block()


def go_through(loop: For, state: RunState) -> int | None:
    if loop.words is None or loop.selects:
        raise Undecided
    words = [text for word in loop.words for text in _listed(word, state)]
    if any(UNKNOWN in word or re.search(r"[*?{]", word) for word in words):
        raise Undecided
    if len(words) > TURNS_MAX:
        raise Undecided
    code: int | None = 0
    for item in words:
        state.scope.variables[loop.variable] = item
        state.run.turn = state.run.place
        how, code = _turn(loop.body, state)
        if how == "break":
            break
    return code


def _listed(word: Word, state: RunState) -> list[str]:
    found = _RANGE.fullmatch(word.plain)
    if found is None:
        return fields(word, state.scope)
    first, last = int(found[1]), int(found[2])
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)][: TURNS_MAX + 1]


def count(loop: Counted, state: RunState) -> int | None:
    begin, asks, step = [*loop.header.split(";"), "", ""][:3]
    value_of(begin, state)
    code: int | None = 0
    while not asks.strip() or value_of(asks, state):
        state.run.turn = state.run.place
        how, code = _turn(loop.body, state)
        if how == "break":
            return 0
        value_of(step, state)
    return code


def _turn(body: Block, state: RunState) -> tuple[str, int | None]:
    """How one turn of a loop was left, and the code of its last command."""
    state.turns += 1
    if state.turns > TURNS_MAX:
        raise Undecided
    depth = state.depth
    try:
        return "", state.block(body, state)
    except LoopLeft as left:
        state.depth = depth
        if left.levels > 1:
            raise LoopLeft(left.how, left.levels - 1) from None
        return left.how, 0
