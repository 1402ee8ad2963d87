"""The user's programs and binaries as processes: without network, credentials, privileges and write access."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

MEMORY_BYTES_MAX = 4 * 1024 * 1024 * 1024
REFUSED = 77
"""The same as in `confined`, which is run and not imported."""
CONFINED = Path(__file__).with_name("confined.py")
SECRETIVE = (
    *("/run/secrets", "/var/run/secrets", "/run/user", "/run/credentials"),
    *("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"),
)
"""Hidden besides the user's home: tokens of the host, and sockets of container runtimes."""


class Door(Struct, frozen=True):
    """How a process in the sandbox reaches the cluster, and nothing else."""

    port: int
    descriptor: int
    """The process sends the socket that it listens on over this descriptor."""
    shared: bool = False
    """Whether several processes use it, which talk to each other as well."""


def confined(
    command: Iterable[str],
    *,
    home: str,
    seen: Iterable[Path],
    door: Door | None = None,
    required: bool = False,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
) -> list[str]:
    """The command line that runs a command in the sandbox.

    Of the hidden paths it sees those in `seen`; `home` is the only folder that it can write to. If a sandbox is
    `required` and the system has none, nothing is run and the exit code is `REFUSED`.
    """
    return [
        sys.executable,
        "-I",
        str(CONFINED),
        "required" if required else "",
        home,
        *_view(seen),
        f"{door.port}:{door.descriptor}{':' if door.shared else ''}" if door else "",
        str(memory_bytes_max),
        *command,
    ]


def _view(seen: Iterable[Path]) -> Iterator[str]:
    """The paths hidden from a program, and the paths shown in spite of that: two lists, each joined like PATH."""
    hidden = dict.fromkeys(os.path.realpath(path) for path in (Path.home(), *SECRETIVE))
    yield os.pathsep.join(hidden)
    yield os.pathsep.join(dict.fromkeys(os.path.realpath(path) for path in (CONFINED.parent, *seen)))
