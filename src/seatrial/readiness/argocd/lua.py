"""The user's health checks in Lua, run in a process of their own.

Argo CD runs them in gopher-lua (Lua 5.1) for at most a second (`util/lua/lua.go`). LuaJIT is the same language.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from seatrial.model.resource import Body
from seatrial.readiness.argocd.verdict import UNKNOWN, Health, HealthScript
from seatrial.sandbox.service import Offer, Service

INSTRUCTIONS_MAX = 5_000_000
MEMORY_BYTES_MAX = 64 * 1024 * 1024
SECONDS_MAX = 5.0
"""Of CPU time, for functions written in C: they count as one instruction."""

TOO_LONG = "the script did not end: more than 5,000,000 instructions (Argo CD stops it after 1 second)"
TOO_LARGE = "the script took more than 64 MiB of memory"
TOO_SLOW = "the script did not end within 5 seconds (Argo CD stops it after 1 second)"
ANY_OBJECT = "the script raised an error that is no text"
NO_TEXT = "the script returned bytes that are no text"
INVALID = "Lua returned an invalid health status"


def health(script: HealthScript, body: Body) -> Health:
    """The health that a script returns, or its error."""
    return _health(msgspec.json.encode({"script": script.text, "open_libs": script.open_libs, "body": body}))


@lru_cache(maxsize=4096)
def _health(request: bytes) -> Health:
    line = _PROCESS.ask(request)
    return Health(UNKNOWN, TOO_SLOW, broken=True) if line is None else msgspec.json.decode(line, type=Health)


def _offer() -> Offer:
    return Offer("run a health check in Lua", f"{__package__}.luaworker", "answer", SECONDS_MAX)


_PROCESS = Service(_offer)
