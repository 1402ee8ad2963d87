"""The user's health checks in Lua, run in a sandbox: no files, no processes, no other code.

Argo CD runs them in gopher-lua (Lua 5.1) for at most a second (`util/lua/lua.go`). LuaJIT is the same language. Here
instructions and memory are limited, so that the same script always gives the same result.
"""

from __future__ import annotations

import re
from typing import Any

from lupa.luajit21 import LuaError, LuaMemoryError, LuaRuntime, LuaSyntaxError, lua_type

from seatrial.model.resource import Body
from seatrial.readiness.argocd.verdict import UNKNOWN, WORST_LAST, Health, HealthScript

INSTRUCTIONS_MAX = 5_000_000
MEMORY_BYTES_MAX = 64 * 1024 * 1024
DEPTH_MAX = 100
WORK_MAX = 20_000_000
"""Limit for one search in a string: its length to the power of the repetitions in the pattern."""

TOO_LONG = "the script did not end: more than 5,000,000 instructions (Argo CD stops it after 1 second)"
TOO_LARGE = "the script took more than 64 MiB of memory"
ANY_OBJECT = "the script raised an error that is no text"
INVALID = "Lua returned an invalid health status"

# What Argo CD gives every script, except functions that run other code (`load`, `dofile`) or access other functions'
# globals (`getfenv`). `table` is added, and `os.time` and `os.date` through `require`.
_ALWAYS = (
    "assert error getmetatable ipairs next pairs pcall rawequal rawget rawset select setmetatable tonumber tostring "
    "type unpack xpcall"
)

_SANDBOX = """
local count, words, allowed, opened, work = ...
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
  local gsub = string.gsub
  local function bounded(name)
    local search = string[name]
    return function(text, pattern, ...)
      local _, repeats = gsub(tostring(pattern), "[%*%+%-%?]", "")
      if (#tostring(text) + 1) ^ (repeats + 1) > work then error("the pattern takes too long to match", 2) end
      return search(text, pattern, ...)
    end
  end
  -- No coroutines: limits hold for one of them only, and nested ones overflow the stack of this process.
  cell.math, cell.string = {}, {}
  for _, library in ipairs({"math", "string"}) do
    for name, value in pairs(_G[library]) do cell[library][name] = value end
  end
  for _, name in ipairs({"find", "match", "gmatch", "gsub"}) do cell.string[name] = bounded(name) end
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
_TRACEBACK = re.compile(r"\nstack traceback:.*", re.S)


def health(script: HealthScript, body: Body) -> Health:
    """The health that a script returns, or its error."""
    try:
        returned = _run(script, body)
    except LuaMemoryError:
        return Health(UNKNOWN, TOO_LARGE, broken=True)
    except (LuaError, LuaSyntaxError) as error:
        message = _TRACEBACK.sub("", str(error)).strip()
        return Health(UNKNOWN, message or ANY_OBJECT, broken=True)
    if isinstance(returned, Health):
        return returned
    return Health(UNKNOWN, f"expect table output from Lua script, not {returned}", broken=True)


def _run(script: HealthScript, body: Body) -> Health | str:
    """The health, or the name of the type that was returned instead."""
    runtime = LuaRuntime(
        unpack_returned_tuples=False,
        register_eval=False,
        register_builtins=False,
        attribute_filter=_closed,
        max_memory=MEMORY_BYTES_MAX,
    )
    run = runtime.execute(_SANDBOX, INSTRUCTIONS_MAX, TOO_LONG, _ALWAYS, script.open_libs, WORK_MAX)
    returned = run(script.text, _as_lua(runtime, body, 0))
    if isinstance(returned, tuple):
        returned = returned[-1] if returned else None
    if returned is None:
        return Health("")
    if lua_type(returned) != "table":
        return lua_type(returned) or _NAMES.get(type(returned).__name__, type(returned).__name__)
    status, message = returned["status"], returned["message"]
    if status is None and message is None and not len(list(returned.keys())):
        return Health("")
    if status not in WORST_LAST:
        return Health(UNKNOWN, INVALID)
    return Health(str(status), "" if message is None else str(message))


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
