"""The environment that the real Helm needs here. Imports nothing: the command line reads it before anything else."""

QPS = 1_000_000
"""Lifts client-go's rate limit: Helm would ask five times a second while it waits."""
GOGC = b"GOGC=300"
"""Relaxes Go's garbage collection: Helm re-reads discovery for every object. Saves a twelfth of a large chart."""
HELM_ENVIRONMENT = {"HELM_QPS": str(QPS), "HELM_BURST_LIMIT": str(QPS), "GOGC": "300"}
"""The same for a helm in another process."""
SPARE = (b"GOGC=", b"_=", b"OLDPWD=", b"SHLVL=")
"""Variables of shells, which neither Helm nor this program reads."""


def is_set_for_go() -> bool:
    """Set GOGC for a Go runtime that this process loads later. False where that is not possible.

    Go does not ask the C library for the environment. It reads the variables that the process was started with, which
    follow its arguments in memory (`goenvs_unix` in runtime/runtime1.go). There is no room for one more, so this one
    takes the place of one that is not needed. `os.environ` and the environment of child processes are other copies.
    """
    import ctypes

    try:
        block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "_dl_argv")
    except (OSError, TypeError, ValueError):  # Another C library than glibc.
        return False
    index = 0
    while block[index] is not None:
        index += 1
    index += 1
    while (entry := block[index]) is not None:
        if entry.startswith(SPARE):
            block[index] = GOGC
            return True
        index += 1
    return False
