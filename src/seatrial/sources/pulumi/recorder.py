"""Runs inside the interpreter of a Pulumi program, which then registers with us instead of the engine.

Started by path, with a Python that may not have seatrial: uses only the standard library and the installed `pulumi`.
Every request is a line of JSON on one pipe; the answer is a line on another.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.machinery
import io
import json
import os
import resource
import runpy
import sys
import threading
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

REFUSED = (
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"),
    *("socket.gethostbyname", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork"),
    *("os.forkpty", "pty.spawn", "os.kill", "os.killpg", "signal.pthread_kill", "ctypes.dlsym", "ctypes.dlsym/handle"),
)
"""Operations that a program does not need to register resources."""
CHANGES = (
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *("os.chown", "os.utime", "os.setxattr", "os.removexattr", "shutil.rmtree", "shutil.move", "sqlite3.connect"),
)
LOOKS = ("os.listdir", "os.scandir", "os.chdir")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
DEVICES = ("/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr", "/dev/tty")
ADDRESSES_MAX = 6 * 1024 * 1024 * 1024
"""Also limits shared memory, which no other limit counts."""
ROOT = "pulumi:pulumi:Stack"


class Pipes:
    """The two pipes to the parent process."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = os.fdopen(reads, "r", encoding="utf-8")
        self._writes = os.fdopen(writes, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def receive(self) -> Any:
        return json.loads(self._reads.readline() or "null")

    def send(self, message: dict[str, Any]) -> None:
        self._writes.write(json.dumps(message, sort_keys=True) + "\n")
        self._writes.flush()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.send(message)
            answer = self.receive()
        if not isinstance(answer, dict):
            raise RuntimeError("the connection to seatrial was closed")
        if answer.get("error"):
            raise RuntimeError(answer["error"])
        return answer


class OrderedLoop(asyncio.SelectorEventLoop):
    """An event loop with a deterministic order: a call completes only when the program has nothing else to do.

    Calls run one after another. A real run usually has the same order, since the engine takes milliseconds to answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._turns: deque[asyncio.Future[None]] = deque()

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        return self.create_task(self._called(func, args))

    async def _called(self, func: Any, args: tuple[Any, ...]) -> Any:
        turn = self.create_future()
        self._turns.append(turn)
        if len(self._turns) == 1:
            self.call_soon(self._next)
        await turn
        done = self._worker.submit(func, *args)
        wait([done])
        return done.result()

    def _next(self) -> None:
        if self._ready:  # type: ignore[attr-defined]
            self.call_soon(self._next)
            return
        self._turns.popleft().set_result(None)
        if self._turns:
            self.call_soon(self._next)


def main() -> None:
    parent = Pipes(int(sys.argv[1]), int(sys.argv[2]))
    setting = parent.receive()
    try:
        pulumi = importlib.import_module("pulumi")
    except ImportError as missing:
        parent.send({"do": "lacking", "message": str(missing)})
        return
    loop = OrderedLoop()
    asyncio.set_event_loop(loop)
    _number(pulumi)
    asked = _overheard(pulumi)
    pulumi.runtime.set_mocks(
        _mocks(pulumi, parent),
        project=setting["project"],
        stack=setting["stack"],
        preview=True,  # Unknown values stay unknown, and `apply` does not run on them.
        monitor=_monitor(pulumi, parent, asked),
    )
    pulumi.runtime.set_all_config(setting["config"], setting["secrets"])
    program = setting["program"]
    sys.argv = [program]
    sys.path.insert(0, program if Path(program).is_dir() else str(Path(program).parent))
    sys.excepthook = lambda kind, wrong, trace: parent.send({"do": "raised", **_described(wrong)})
    _read_instead(setting["instead"])
    _disarm()
    with suppress(OSError, ValueError):  # Some systems do not have this limit.
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_MAX, ADDRESSES_MAX))
    sys.addaudithook(_guard(setting["home"], setting["closed"], setting["open"]))
    try:
        loop.run_until_complete(
            pulumi.runtime.stack.run_pulumi_func(lambda: runpy.run_path(program, run_name="__main__") and None)
        )
    except SystemExit as left:  # Does not reach sys.excepthook.
        parent.send({"do": "raised", **_described(left)})
        return
    parent.send({"do": "ended"})


def _mocks(pulumi: Any, parent: Pipes) -> Any:
    class Mocks(pulumi.runtime.Mocks):  # type: ignore[misc]
        def call(self, args: Any) -> Any:
            return parent.ask({"do": "call", "token": args.token, "args": _plain(args.args)})["result"]

        def new_resource(self, args: Any) -> Any:
            raise AssertionError("the monitor answers")

    return Mocks()


def _monitor(pulumi: Any, parent: Pipes, asked: dict[tuple[str, str], list[list[str]]]) -> Any:
    mocks: Any = importlib.import_module("pulumi.runtime.mocks")
    resource_pb2 = importlib.import_module("pulumi.runtime.proto.resource_pb2")
    struct_pb2 = importlib.import_module("google.protobuf.struct_pb2")
    to_dict = importlib.import_module("google.protobuf.json_format").MessageToDict

    def answered(message: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        answer = parent.ask(message)
        state = struct_pb2.Struct()
        state.update(answer["state"])
        return answer, state

    class Monitor(mocks.MockMonitor):  # type: ignore[misc]
        """Answers as the engine would, from the requests themselves: mocks do not see dependencies."""

        def RegisterResource(self, request: Any) -> Any:
            if request.type == ROOT:
                return resource_pb2.RegisterResourceResponse(urn=self.make_urn("", request.type, request.name))
            named = asked.get((request.type, request.name), [])
            answer, state = answered({**_registration(request, to_dict), "asked": named})
            return resource_pb2.RegisterResourceResponse(urn=answer["urn"], id=answer["id"], object=state)

        def ReadResource(self, request: Any) -> Any:
            answer, state = answered(_reading(request, to_dict))
            return resource_pb2.ReadResourceResponse(urn=answer["urn"], properties=state)

    return Monitor(_mocks(pulumi, parent))


def _registration(request: Any, to_dict: Any) -> dict[str, Any]:
    return {
        "do": "register",
        "type": request.type,
        "name": request.name,
        "parent": request.parent,
        "custom": request.custom,
        "remote": request.remote,
        "provider": _provider(request),
        "inputs": to_dict(request.object),
        "dependencies": sorted(request.dependencies),
        "propertyDependencies": {key: sorted(found.urns) for key, found in request.propertyDependencies.items()},
        "aliases": _aliases(request, to_dict),
        "options": _options(request),
        "file": request.sourcePosition.uri,
        "line": request.sourcePosition.line,
    }


def _reading(request: Any, to_dict: Any) -> dict[str, Any]:
    return {
        "do": "read",
        "type": request.type,
        "name": request.name,
        "parent": request.parent,
        "id": request.id,
        "provider": request.provider.rpartition("::")[0],
        "inputs": to_dict(request.properties),
        "dependencies": sorted(request.dependencies),
        "file": request.sourcePosition.uri,
        "line": request.sourcePosition.line,
    }


def _provider(request: Any) -> str:
    """The URN of the provider of a resource or of the content of a component; references end with an id."""
    return str(request.provider or dict(request.providers).get("kubernetes", "")).rpartition("::")[0]


def _aliases(request: Any, to_dict: Any) -> list[dict[str, Any]]:
    """Each a URN, or the parts that were different: a name, a type, a parent."""
    said = [{"urn": alias.urn} if alias.urn else to_dict(alias.spec) for alias in request.aliases]
    return [*said, *({"urn": urn} for urn in request.aliasURNs)]


def _options(request: Any) -> dict[str, Any]:
    timeouts = request.customTimeouts
    return {
        "deleteBeforeReplace": request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        "replaceOnChanges": list(request.replaceOnChanges),
        "ignoreChanges": list(request.ignoreChanges),
        "protect": bool(request.protect),
        "retainOnDelete": bool(request.retainOnDelete),
        "deletedWith": request.deletedWith,
        "import": request.importId,
        "customTimeouts": {"create": timeouts.create, "update": timeouts.update, "delete": timeouts.delete},
    }


def _number(pulumi: Any) -> None:
    """Make sets of resources keep the order in which the resources were created.

    The SDK expands `depends_on` in the order of a set, which is that of memory addresses: as in a real run, it would
    be random whether a chart is expanded before or after another dependency.
    """
    numbers = count()
    pulumi.Resource.__hash__ = lambda self: self.__dict__.setdefault("_number", next(numbers))


def _overheard(pulumi: Any) -> dict[tuple[str, str], list[list[str]]]:
    """The `depends_on` of each resource before the SDK expands it; outputs are not resolved yet."""
    runtime: Any = importlib.import_module("pulumi.runtime.resource")
    prepare = runtime.prepare_resource
    heard: dict[tuple[str, str], list[list[str]]] = {}

    async def prepared(res: Any, ty: str, custom: bool, remote: bool, props: Any, opts: Any, *rest: Any) -> Any:
        named = opts.depends_on if opts is not None else None
        for other in named if isinstance(named, (list, tuple)) else [named]:
            if isinstance(other, pulumi.Resource):
                heard.setdefault((ty, _name(res)), []).append([other.pulumi_resource_type, _name(other)])
        return await prepare(res, ty, custom, remote, props, opts, *rest)

    runtime.prepare_resource = prepared
    return heard


def _name(res: Any) -> str:
    return str(getattr(res, "pulumi_resource_name", "") or getattr(res, "_name", ""))


def _read_instead(texts: dict[str, str]) -> None:
    """Let the program be read from these texts, by the real paths of its files; no cache is used."""
    loader: Any = importlib.machinery.SourceFileLoader
    get_data, path_stats, open_code = loader.get_data, loader.path_stats, io.open_code

    def text_of(path: Any) -> bytes | None:
        found = texts.get(os.path.realpath(os.fsdecode(path)))
        return None if found is None else found.encode()

    def data(self: Any, path: str) -> bytes:
        found = text_of(path)
        return get_data(self, path) if found is None else found

    def stats(self: Any, path: str) -> Any:
        if text_of(path) is not None:
            raise OSError("it is not read from disk")
        return path_stats(self, path)

    def opened(path: str) -> Any:
        found = text_of(path)
        return open_code(path) if found is None else io.BytesIO(found)

    if texts:
        loader.get_data, loader.path_stats, io.open_code = data, stats, opened


def _disarm() -> None:
    """Disable the one way to start processes that raises no audit event."""

    def refused(*args: Any) -> Any:
        raise PermissionError("seatrial runs this program without a network and without processes: fork_exec")

    for module, name in (("_posixsubprocess", "fork_exec"), ("subprocess", "_fork_exec")):
        setattr(importlib.import_module(module), name, refused)


def _guard(home: str, closed: list[str], opened: list[str]) -> Any:
    """An audit hook that refuses harmful operations. It cannot be removed; C code is not covered."""

    def within(path: Any, folders: list[str]) -> bool:
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (TypeError, ValueError):
            return False
        return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)

    def holds(path: Any, folders: list[str]) -> bool:
        """Whether it is a parent of these folders: files opened relative to it do not show their full path."""
        return any(within(folder, [os.path.realpath(os.fsdecode(path))]) for folder in folders)

    def guard(event: str, args: tuple[Any, ...]) -> None:
        if event in REFUSED:
            raise PermissionError(f"seatrial runs this program without a network and without processes: {event}")
        if event in LOOKS and within(args[0], closed) and not within(args[0], opened):
            raise PermissionError(f"seatrial lets this program read only its project: {args[0]}")
        if event in CHANGES and not within(args[0], [home]):
            raise PermissionError(f"seatrial does not let this program change files: {event} {args[0]}")
        if event != "open" or isinstance(args[0], int):
            return
        if args[2] is not None and args[2] & WRITING and not within(args[0], [home, *DEVICES]):
            raise PermissionError(f"seatrial does not let this program write files: {args[0]}")
        if (within(args[0], closed) and not within(args[0], opened)) or holds(args[0], closed):
            raise PermissionError(f"seatrial lets this program read only its project: {args[0]}")

    return guard


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _described(wrong: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(wrong.__traceback__)
    return {
        "type": type(wrong).__name__,
        "message": str(wrong),
        "frames": [[frame.filename, frame.lineno, frame.name, frame.line] for frame in frames],
    }


if __name__ == "__main__":
    main()
