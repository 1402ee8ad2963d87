"""A sandbox: a separate process that drops the network, write access and all privileges, then executes the program.

Run by path, with `required` or nothing, the only writable folder, the paths to hide, the paths to show in spite of that
(both joined like PATH), a door or nothing, its memory in bytes, and the command. Uses the standard library only.

With `required` it executes nothing where the kernel allows neither all of this nor Landlock and seccomp in its place
(`fences`), and exits with `REFUSED`.

A door is `PORT:DESCRIPTOR`: the program finds a server at this port of its own loopback device, and nothing else. The
socket that listens there is sent out of the sandbox over the descriptor, and the process that receives it answers.
`PORT:DESCRIPTOR:` is for a program of several processes, which also talk to each other on that device.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_SETATTR = 442
"""The syscall number on every architecture: the C library may be too old to have a wrapper."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 24, 28, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
NO_ROOT = 0b11101111
"""All secure bits and their locks, except the one that keeps capabilities: user 0 is a user like others."""
CAPABILITIES_MAX = 64
CAPABILITY_VERSION = 0x20080522
REFUSED = 77
"""The exit code if there is no sandbox, and the program needs one."""
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
LOOPBACK = "127.0.0.1"
SHARED_MEMORY = "/dev/shm"
"""Where servers write temporary files: a program of several processes has one of its own, empty."""
CPU_SECONDS_MAX = 120
FILE_BYTES_MAX = 64 * 1024 * 1024
HOME_BYTES_MAX = 4 * FILE_BYTES_MAX
DESCRIPTORS_MAX = 4096
PROCESSES_MAX = 4096
"""Includes threads, and on older kernels all processes of the user: it only stops fork bombs."""


class Attributes(ctypes.Structure):
    """`struct mount_attr`"""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def main() -> None:
    parent = os.getppid()
    required, home, hidden, seen, door, memory, *command = sys.argv[1:]
    shown = [home, *seen.split(os.pathsep), *_installed(Path(command[0]), [*map(Path, hidden.split(os.pathsep))])]
    fences = _fences() if sys.platform == "linux" else None  # Before the standard library may be hidden.
    alone = sys.platform == "linux" and _alone()
    writable = [home, *((SHARED_MEMORY,) if door.endswith(":") and Path(SHARED_MEMORY).is_dir() else ())]
    sealed = alone and _sealed(writable, hidden.split(os.pathsep), shown)
    if required and not sealed and (fences is None or fences.version() < fences.STRICT_VERSION):
        sys.exit(REFUSED)
    if sys.platform == "linux":  # The program ends together with seatrial; entering namespaces resets this.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, CPU_SECONDS_MAX),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_DATA, int(memory)),
        (resource.RLIMIT_NOFILE, DESCRIPTORS_MAX),
        *(((resource.RLIMIT_NPROC, PROCESSES_MAX),) if alone else ()),
    ):
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))
    if door:
        _open_door(*map(int, door.rstrip(":").split(":")), alone=alone)
    if alone:
        _become_init()
    if (
        fences is not None
        and not (_unprivileged() and _fenced(fences, writable, shown, door, sealed=sealed))
        and required
    ):
        sys.exit(REFUSED)
    os.execv(command[0], command)


def _installed(executable: Path, hidden: list[Path]) -> list[str]:
    """Where an executable and its libraries are: not the whole home for ~/bin/python, nor the disk for /bin/sh."""
    places = ((path.parent.parent, path.parent) for path in (executable, executable.resolve()))
    free = ([place for place in both if not any(one.is_relative_to(place) for one in hidden)] for both in places)
    return [str(found[0]) for found in free if found]


def _fences() -> Any:
    """The module beside this one: with -I there is no other way to it."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        return importlib.import_module("fences")
    finally:
        del sys.path[0]


def _fenced(fences: Any, writable: list[str], shown: list[str], door: str, *, sealed: bool) -> bool:
    """A second fence behind the namespaces; the only one without them, if the program needs one."""
    if sealed:
        port = None if door.endswith(":") else int(door.partition(":")[0]) if door else 0
        fences.landlocked(writable, ["/"], port=port)
        fences.filtered(strict=False)
        return True
    if door:  # A binary that the user names, which reaches the server on the loopback device of the system.
        return False
    seen = [*fences.SYSTEM, *shown, sys.prefix, sys.base_prefix]
    return bool(fences.landlocked(writable, seen) and fences.filtered(strict=True))


def _alone() -> bool:
    """Enter namespaces without a network and without other processes. Most kernels allow this to every user."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID):
        return False
    for file, text in (("uid_map", f"{user} {user} 1"), ("setgroups", "deny"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError):  # Without a user mapping the home below would not be writable.
            Path("/proc/self", file).write_text(text)
    with suppress(OSError):  # In a further namespace the program would have capabilities again.
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    return True


def _sealed(writable: list[str], hidden: list[str], shown: list[str]) -> bool:
    """Make the disk read-only except for these empty folders, and hide paths. False if the kernel does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
    size = f"size={HOME_BYTES_MAX},mode=700".encode()
    if not own or any(
        libc.mount(b"tmpfs", folder.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, size)
        and (folder == SHARED_MEMORY or libc.mount(folder.encode(), folder.encode(), None, MS_BIND, None))
        for folder in writable
    ):
        return False
    for number, path in enumerate(hidden):
        _hide(libc, Path(path), [*map(Path, shown)], Path(writable[0], ".hidden", str(number)))
    for mount, flags, attributes in (
        (b"/", AT_RECURSIVE, Attributes(set=MOUNT_ATTR_RDONLY)),
        *((folder.encode(), 0, Attributes(clear=MOUNT_ATTR_RDONLY)) for folder in writable),
    ):
        call, where, how = (ctypes.c_long(word) for word in (MOUNT_SETATTR, AT_FDCWD, flags))
        size_of = ctypes.c_size_t(ctypes.sizeof(attributes))
        if libc.syscall(call, where, mount, how, ctypes.byref(attributes), size_of):
            return False
    return True


def _unprivileged() -> bool:
    """Drop every capability for good, and let no program that is executed gain one."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    for number in range(CAPABILITIES_MAX):  # Fails for an ordinary user, and for unknown numbers.
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    return bool(libc.capset(header, (ctypes.c_uint32 * 6)()) == 0)


def _open_door(port: int, descriptor: int, *, alone: bool) -> None:
    """Listen on the loopback device of the sandbox; outside of one, the program reaches the server itself."""
    with socket.socket(fileno=descriptor) as outside:
        if not alone:
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
            fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
        with socket.create_server((LOOPBACK, port), backlog=512) as listening:
            socket.send_fds(outside, [b"!"], [listening.fileno()])


def _hide(libc: ctypes.CDLL, path: Path, shown: list[Path], empty: Path) -> None:
    """Replace a file or folder by an empty one, except for the folders in it to show."""
    if not path.exists() or any(path.is_relative_to(one) for one in shown):
        return  # The project itself, or a part of it.
    if not path.is_dir():
        libc.mount(b"/dev/null", bytes(path), None, MS_BIND, None)
        return
    empty.mkdir(parents=True)
    for one in sorted(one for one in shown if one.is_relative_to(path)):
        place = empty / one.relative_to(path)
        with suppress(OSError):  # It may already exist in a read-only parent.
            place.mkdir(parents=True)
        libc.mount(bytes(one), bytes(place), None, MS_BIND | MS_REC, None)
    libc.mount(bytes(empty), bytes(path), None, MS_BIND | MS_REC, None)


def _become_init() -> None:
    """Continue as the first process of the PID namespace: all its children end with it, and it ends with us."""
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # Hides other processes; a container may forbid the mount.
        libc.mount(b"proc", b"/proc", b"proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # It is for the program, which may have something to finish.
    os.closerange(3, 1024)  # So that the reader of its pipes notices when it ends.
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
