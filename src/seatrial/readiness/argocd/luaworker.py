"""What runs in the process of `sandbox.service`: health checks in Lua, without files, processes and other code.

Instructions and memory are limited, so that the same script always gives the same result. Time in functions written in
C is not counted by that: the process has a limit of CPU time.
"""

from __future__ import annotations

import re
from typing import Any

from lupa.luajit21 import LuaError, LuaMemoryError, LuaRuntime, LuaSyntaxError, lua_type

from seatrial.model import lazy_re
from seatrial.readiness.argocd.lua import (
    ANY_OBJECT,
    INSTRUCTIONS_MAX,
    INVALID,
    MEMORY_BYTES_MAX,
    NO_TEXT,
    TOO_LARGE,
    TOO_LONG,
)
from seatrial.readiness.argocd.verdict import UNKNOWN, WORST_LAST

# What Argo CD gives every script, except functions that run other code (`load`, `dofile`) or access other functions'
# globals (`getfenv`). `table` is added, and `os.time` and `os.date` through `require`.
_ALWAYS = (
    "assert error getmetatable ipairs next pairs pcall rawequal rawget rawset select setmetatable tonumber tostring "
    "type unpack xpcall"
)

_SANDBOX = """
local count, words, allowed, opened = ...
jit.off()
local sethook, setmetatable_of, floor = debug.sethook, debug.setmetatable, math.floor
local function stop()
  -- From now on at every instruction: a script that catches errors must not go on with the next one.
  sethook(stop, "", 1)
  error(words, 0)
end
local cell = {}
for name in allowed:gmatch("%S+") do cell[name] = _G[name] end
cell.table = {}
for name, value in pairs(table) do cell.table[name] = value end
cell.table.getn = cell.table.getn or function(list) return #list end
cell.print = function() end
cell.collectgarbage = function() return 0 end
local clock = {time = function() return 0 end, date = function() return "" end}
cell.require = function(name)
  if name == "os" then return clock end
  error("module " .. tostring(name) .. " not found", 2)
end
if opened then
  -- No coroutines: limits hold for one of them only, and nested ones overflow the stack of this process.
  cell.math, cell.string = {}, {}
  for _, library in ipairs({"math", "string"}) do
    for name, value in pairs(_G[library]) do cell[library][name] = value end
  end
  cell.string.dump, cell.math.random, cell.math.randomseed = nil, nil, nil
  setmetatable_of("", {__index = cell.string})
else
  setmetatable_of("", nil)
end
cell._G = cell
local load, setfenv = loadstring, setfenv
return function(text, obj)
  local chunk, wrong = load(text, "=<string>")
  if not chunk then error(wrong, 0) end
  cell.obj, cell.actionParams = obj, {}
  setfenv(chunk, cell)
  setfenv(0, cell)
  sethook(stop, "", count)
  return chunk()
end
"""
DEPTH_MAX = 100
_TRACEBACK = lazy_re.compile(r"\nstack traceback:.*", re.S)


def answer(request: dict[str, Any] | None) -> dict[str, Any]:
    """The health that a script returns, or its error."""
    if request is None:
        return {}
    try:
        returned = _run(request)
    except LuaMemoryError:
        return {"status": UNKNOWN, "message": TOO_LARGE, "broken": True}
    except (LuaError, LuaSyntaxError) as error:
        message = _TRACEBACK.sub("", str(error)).strip()
        return {"status": UNKNOWN, "message": message or ANY_OBJECT, "broken": True}
    except UnicodeDecodeError:
        return {"status": UNKNOWN, "message": NO_TEXT, "broken": True}
    if isinstance(returned, dict):
        return returned
    return {"status": UNKNOWN, "message": f"expect table output from Lua script, not {returned}", "broken": True}


def _run(request: dict[str, Any]) -> dict[str, Any] | str:
    """The health, or the name of the type that was returned instead."""
    runtime = LuaRuntime(
        unpack_returned_tuples=False,
        register_eval=False,
        register_builtins=False,
        attribute_filter=_closed,
        max_memory=MEMORY_BYTES_MAX,
    )
    run = runtime.execute(_SANDBOX, INSTRUCTIONS_MAX, TOO_LONG, _ALWAYS, request["open_libs"])
    returned = run(request["script"], _as_lua(runtime, request["body"], 0))
    if isinstance(returned, tuple):
        returned = returned[-1] if returned else None
    if returned is None:
        return {"status": ""}
    if lua_type(returned) != "table":
        return lua_type(returned) or _NAMES.get(type(returned).__name__, type(returned).__name__)
    status, message = returned["status"], returned["message"]
    if status is None and message is None and not len(list(returned.keys())):
        return {"status": ""}
    if status not in WORST_LAST:
        return {"status": UNKNOWN, "message": INVALID}
    return {"status": str(status), "message": "" if message is None else str(message)}


_NAMES = {"str": "string", "int": "number", "float": "number", "bool": "boolean", "bytes": "string"}


def _closed(_: object, name: object, __: bool) -> object:
    """Lua must not reach any Python attribute."""
    raise AttributeError(name)


def _as_lua(runtime: Any, value: Any, depth: int) -> Any:
    """The object as Lua sees it, without null fields."""
    if depth > DEPTH_MAX:
        return None
    if isinstance(value, dict):
        return runtime.table_from({k: _as_lua(runtime, v, depth + 1) for k, v in value.items() if v is not None})
    if isinstance(value, list):
        return runtime.table_from([_as_lua(runtime, v, depth + 1) for v in value])
    return value
