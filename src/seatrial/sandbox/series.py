"""Commands in turn in one sandbox, with files that outlive it. Run by path; uses the standard library only.

Standard input is JSON: `files` to write below the home and `links` to make there, the `commands` and their
`variables`, and the folders to `keep`. The files in those are written to standard output when the commands have ended;
what commands print goes to standard error. The first command that fails ends the series with its exit code.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HOME = "{home}"
"""In arguments and files: the home of the sandbox, which only the sandbox knows."""


def main() -> None:
    home, asked = Path(os.environ["HOME"]), json.load(sys.stdin)
    for name, text in asked["files"].items():
        _made(home / name).write_bytes(base64.b64decode(text).replace(HOME.encode(), bytes(home)))
    for name, target in asked["links"].items():
        _made(home / name).symlink_to(target)
    variables = {name: text.replace(HOME, str(home)) for name, text in asked["variables"].items()}
    code = 0
    for command in asked["commands"]:
        code = _ended([word.replace(HOME, str(home)) for word in command], variables)
        if code:
            break
    json.dump({"files": dict(_kept(home, asked["keep"]))}, sys.stdout)
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
