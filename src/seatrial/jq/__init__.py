"""jq programs, run by libjq in a process of its own with limits on time, memory and output.

Knows nothing of Argo CD.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.sandbox.service import Offer, Service

SECONDS = 1.0
"""Of CPU time, so that results do not depend on the load."""
MEMORY_MAX = 512 * 2**20
OUTPUT_MAX = 8 * 2**20
PROGRAM_MAX = 64 * 2**10


class JqFault(Struct, frozen=True):
    """Why a program has no result."""

    words: str
    is_illegal: bool = False
    """Whether it does not compile."""
    ran_away: bool = False
    """Whether it was stopped at a limit."""


class _Answer(Struct, frozen=True):
    outputs: list[Any] = []
    error: str = ""
    illegal: str = ""


def run(program: str, body: Any) -> list[Any] | JqFault:
    """The first two outputs of a program for an input."""
    return _run(program, msgspec.json.encode(body))


@lru_cache(maxsize=512)
def fault_of(program: str) -> JqFault | None:
    """Why a program does not compile, if it does not."""
    found = _ask(program, msgspec.json.encode({"program": program}))
    return found if isinstance(found, JqFault) else None


@lru_cache(maxsize=1024)
def _run(program: str, body: bytes) -> list[Any] | JqFault:
    return _ask(program, b'{"program":%b,"input":%b}' % (msgspec.json.encode(program), body))


def _ask(program: str, request: bytes) -> list[Any] | JqFault:
    if len(program) > PROGRAM_MAX:
        return JqFault(f"longer than {PROGRAM_MAX} characters", ran_away=True)
    line = _PROCESS.ask(request)
    if line is None:
        return JqFault("stopped", ran_away=True)
    answer = msgspec.json.decode(line, type=_Answer)
    if answer.illegal:
        return JqFault(answer.illegal, is_illegal=True)
    return JqFault(answer.error) if answer.error else answer.outputs


def _offer() -> Offer:
    return Offer("run a jq expression", "seatrial.jq.worker", "answer", SECONDS, MEMORY_MAX, OUTPUT_MAX)


_PROCESS = Service(_offer)
