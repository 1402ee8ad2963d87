"""Commands in turn in one sandbox, with files that outlive it. Run by path; uses the standard library only.

Standard input is JSON: `files` to write below the home and `links` to make there, the `commands` and their
`variables`, and the folders to `keep`. The files in those are written to standard output when the commands have ended;
what commands print goes to standard error. The first command that fails ends the series with its exit code.

Commands in `together` are servers: they are started after the others, side by side, and run until one of them ends.
Which one, and what it printed last, is written to standard output then. Each name in `ports` is a free port for them. A
server with a port in `first` answers there before the next one is started.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = "{home}"
"""In arguments and files: the home of the sandbox, which only the sandbox knows."""
PORT = "{{port:{}}}"
"""In arguments: a free port, by its name."""
LOOK_SECONDS = 0.02
LAST_BYTES = 4000
"""Of what a server has printed."""


def main() -> None:
    home, asked = Path(os.environ["HOME"]), json.load(sys.stdin)
    for name, text in asked["files"].items():
        _made(home / name).write_bytes(base64.b64decode(text).replace(HOME.encode(), bytes(home)))
    for name, target in asked["links"].items():
        _made(home / name).symlink_to(target)
    known = {HOME: str(home), **_free_ports(asked.get("ports", []))}
    variables = {name: _with(known, text) for name, text in asked["variables"].items()}
    code = 0
    ended: dict[str, str] = {}
    for command in asked["commands"]:
        code = _ended([_with(known, word) for word in command], variables)
        if code:
            break
    if asked.get("together") and not code:
        servers = [[_with(known, word) for word in one] for one in asked["together"]]
        first = {known[PORT.format(name)] for name in asked.get("first", [])}
        code, ended = _first_ended(servers, variables, home, first)
    json.dump({"files": dict(_kept(home, asked["keep"])), **ended}, sys.stdout)
    sys.stdout.flush()
    os._exit(code)


def _ended(command: list[str], variables: dict[str, str]) -> int:
    """The exit code of a command, which ends with the series."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        start_new_session=True,  # So that a signal reaches it once, from here.
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait() & 0xFF


def _first_ended(
    commands: list[list[str]], variables: dict[str, str], home: Path, first: set[str]
) -> tuple[int, dict[str, str]]:
    """The exit code of the first server that ends, its name, and what it printed last."""
    running = {}
    for number, command in enumerate(commands):
        path = home / f"server-{number}.log"
        with path.open("wb") as log:
            environment = {**os.environ, **variables}
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        running[process.pid] = Path(command[0]).name, path, process  # What Python forgets, it reaps.
        for port in first.intersection(command):
            _await(port, process.pid)
    while True:
        pid, status = os.wait()  # The first process of a sandbox also gets the children of its children.
        if pid in running:
            name, path, _ = running[pid]
            said = path.read_bytes()[-LAST_BYTES:].decode(errors="replace")
            return os.waitstatus_to_exitcode(status) & 0xFF, {"ended": name, "said": said}


def _await(port: str, pid: int) -> None:
    """Wait until a server listens, or has ended."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        try:
            return socket.create_connection(("127.0.0.1", int(port))).close()
        except ConnectionRefusedError:
            time.sleep(LOOK_SECONDS)
    return None


def _free_ports(names: list[str]) -> dict[str, str]:
    """All are bound before the first is given back, so that no two are the same."""
    bound = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    found = {PORT.format(name): str(one.getsockname()[1]) for name, one in bound.items()}
    for one in bound.values():
        one.close()
    return found


def _with(known: dict[str, str], word: str) -> str:
    for name, value in known.items():
        word = word.replace(name, value)
    return word


def _kept(home: Path, folders: list[str]) -> Any:
    for folder in folders:
        for path in sorted((home / folder).rglob("*")):
            if path.is_file():
                yield str(path.relative_to(home)), base64.b64encode(path.read_bytes()).decode()


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    main()
