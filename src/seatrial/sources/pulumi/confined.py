"""Started as a process of its own: gives up the network and other means, then becomes the program it is to run.

Run by path, with the only folder that may be written to and the command; knows nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_SETATTR = 442
"""The number of this call on every architecture: the C library may be older than it."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
PR_SET_PDEATHSIG, SIGKILL = 1, 9
CPU_SECONDS_MAX = 120
FILE_BYTES_MAX = 64 * 1024 * 1024
MEMORY_BYTES_MAX = 4 * 1024 * 1024 * 1024
PROCESSES_MAX = 4096
"""Threads among them, and on older kernels all of the user's: it is to end a bomb and nothing else."""


class Attributes(ctypes.Structure):
    """`struct mount_attr`"""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def main() -> None:
    home, *command = sys.argv[1:]
    alone = sys.platform == "linux" and _alone(home)
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, CPU_SECONDS_MAX),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_DATA, MEMORY_BYTES_MAX),
        *(((resource.RLIMIT_NPROC, PROCESSES_MAX),) if alone else ()),
    ):
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))
    if alone:
        _first_of_its_kind()
    os.execv(command[0], command)


def _alone(home: str) -> bool:
    """Enter namespaces without a network, without other processes, and with a disk that cannot be written to.

    The kernel lets everyone do so on most machines; elsewhere the guards inside of the program have to do.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID):
        return False
    own = libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
    if not own or libc.mount(home.encode(), home.encode(), None, MS_BIND, None):
        return True  # Without a place to write to it could not even begin: then the disk is left to the guards.
    for path, flags, attributes in (
        (b"/", AT_RECURSIVE, Attributes(set=MOUNT_ATTR_RDONLY)),
        (home.encode(), 0, Attributes(clear=MOUNT_ATTR_RDONLY)),
    ):
        number, where, how = (ctypes.c_long(word) for word in (MOUNT_SETATTR, AT_FDCWD, flags))
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        libc.syscall(number, where, path, how, ctypes.byref(attributes), size)
    return True


def _first_of_its_kind() -> None:
    """Go on as the first process of the namespace: whatever it starts ends with it, and it ends with us."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        return
    os.closerange(3, 1024)  # Who reads from it is to notice when it is gone.
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
