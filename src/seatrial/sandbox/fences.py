"""Landlock and seccomp: what a process may never do again, whatever it executes. Needs no privilege.

Loaded by path from `confined`, and uses the standard library only. Landlock decides which files are seen and changed;
a seccomp filter refuses syscalls that no program of a user needs. Both are a second fence behind namespaces, and the
only one where the kernel allows no namespaces (docs/adr/0021).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""Syscall numbers on every architecture."""
CREATE_RULESET_VERSION = 1
PATH_BENEATH, NET_PORT = 1, 2
READS = 0b1101
"""Execute, read files, read folders."""
WRITES_FILE = 0b10
FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15
"""Those that a rule about a file may have: execute, read, write, truncate, ioctl."""
RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights about files each version of Landlock knows."""
TCP, CONNECT_TCP = 0b11, 0b10
SCOPES = 0b11
"""Abstract UNIX sockets, and signals to processes outside."""
STRICT_VERSION = 6
"""The version of Landlock that can stand alone: it knows scopes."""
O_PATH = 0o10000000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ALLOW, REFUSE, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NEW_NAMESPACES = 0x7E020080
X32 = 0x40000000
CLONE3 = 435
EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 434, 438, 442)
"""Newer syscalls have the same number on every architecture: io_uring, mounts, descriptors of other processes."""
MACHINES: dict[str, tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E,
        56,
        41,
        # mount umount2 pivot_root unshare setns chroot ptrace process_vm_* bpf perf userfaultfd keys kexec modules
        # handles swap reboot quota acct
        (
            *(165, 166, 155, 272, 308, 161, 101, 310, 311, 321, 298, 323, 250, 248, 249, 246, 320, 175, 313, 176),
            *(304, 303, 167, 169, 179, 163),
        ),
        (112, 109),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        198,
        (
            *(40, 39, 41, 97, 268, 51, 117, 270, 271, 280, 241, 282, 219, 217, 218, 104, 294, 105, 273, 106),
            *(265, 264, 224, 142, 60, 89),
        ),
        (157, 154),
    ),
}
"""By machine: its audit number, clone, socket, syscalls that are always refused, and setsid and setpgid."""
SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/opt", "/nix/store", "/sys/devices/system/cpu"),
    *("/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf"),
    *("/etc/passwd", "/etc/ssl", "/etc/pki", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/self"),
)
"""What a program sees beside its own files, where no namespace hides the rest."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def version() -> int:
    """The version of Landlock that the kernel has; 0 if none."""
    found: int = _libc().syscall(ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), 1)
    return max(0, found)


def landlocked(writable: Iterable[str], readable: Iterable[str], port: int | None = 0) -> bool:
    """Let this process write and read these paths only, and connect to this TCP port only; None is any."""
    known = version()
    if not known:
        return False
    rights = (1 << max(count for since, count in RIGHTS_BY_VERSION.items() if since <= known)) - 1
    tcp = TCP if known >= 4 and port is not None else 0
    attributes = struct.pack("QQQ", rights, tcp, SCOPES if known >= STRICT_VERSION else 0)
    size = ctypes.c_size_t(24 if known >= STRICT_VERSION else 16 if known >= 4 else 8)
    libc = _libc()
    ruleset: int = libc.syscall(ctypes.c_long(LANDLOCK_CREATE_RULESET), attributes, size, 0)
    if ruleset < 0:
        return False
    for paths, allowed in ((writable, rights), (readable, READS), (DEVICES, READS | WRITES_FILE)):
        for path in paths:
            _allow(ruleset, path, allowed & rights)
    if port and known >= 4:
        rule = struct.pack("QQ", CONNECT_TCP, port)
        libc.syscall(ctypes.c_long(LANDLOCK_ADD_RULE), ruleset, NET_PORT, rule, 0)
    done: int = libc.syscall(ctypes.c_long(LANDLOCK_RESTRICT_SELF), ruleset, 0)
    os.close(ruleset)
    return done == 0


def filtered(*, strict: bool) -> bool:
    """Refuse syscalls from now on; if strict, also sockets and leaving the process group."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        return False
    audit, clone, socket, always, leaving = machine
    refused = (*always, *EVERYWHERE, *((socket, *leaving) if strict else ()))
    program = _program(audit, clone, refused)
    code = ctypes.create_string_buffer(program, len(program))
    given = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    return bool(_libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, given, 0, 0) == 0)


def _allow(ruleset: int, path: str, allowed: int) -> None:
    """A rule about a path and all that is below; a path that does not exist needs none."""
    try:
        descriptor = os.open(path, O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    rule = struct.pack("=Qi", allowed if Path(path).is_dir() else allowed & FILE_RIGHTS, descriptor)
    _libc().syscall(ctypes.c_long(LANDLOCK_ADD_RULE), ruleset, PATH_BENEATH, rule, 0)
    os.close(descriptor)


def _program(audit: int, clone: int, refused: tuple[int, ...]) -> bytes:
    """The filter: another architecture is killed, namespaces and the refused syscalls are not permitted."""
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    lines += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, REFUSE)]
    lines += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ENOSYS)]  # Its flags cannot be seen; the C library uses clone.
    lines += [(EQUAL, 0, 3, clone), (LOAD, 0, 0, 16), (ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, REFUSE)]
    lines += [(LOAD, 0, 0, 0)]
    for number in refused:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
