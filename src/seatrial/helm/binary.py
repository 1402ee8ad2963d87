"""The user's helm binary, run as a process with its own files and cluster. Makes no decisions.

Everything it reads and writes is in a temporary folder that only this user can read: the chart, the values, the
kubeconfig, and an empty home without plugins, repositories or caches. The folder is removed when the process ends.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sandbox import confined, folders
from seatrial.sandbox.client import HOME, STDERR, STDOUT, Binary, answer, end, environment, located, write_kubeconfig
from seatrial.sandbox.watchdog import limits

OLDEST = 3
VERSION = lazy_re.compile(r"v?(?P<version>(?P<major>\d+)\.\d+(?:\.\d+)?[\w.+-]*)")
"""A helm that was built with `go install` has no patch version: v3.14, v4.1+unreleased."""
VERSION_ARGUMENTS = ("version", "--template", "{{.Version}}")
VERSION_ARGUMENTS_HELM_2 = ("version", "--client", "--template", "{{.Client.SemVer}}")
NAME = "helm"
FLAG = "--helm-binary"
ERROR = "Error: "
FLAG_ERRORS = ("unknown flag: ", "unknown shorthand flag: ", "flag needs an argument: ", "invalid argument ")
CHART, VALUES = "chart.tgz", "values.json"
HINT = "Use --debug flag to render out invalid YAML"
NO_MEMORY = ("out of memory", "cannot allocate memory")
_stand_in = [""]


class HelmError(Exception):
    """An error of Helm, in its own words."""


def stand_in_for_library(path: str) -> None:
    """The helm that renders from now on where Helm's library cannot be loaded; none if the path is empty."""
    _stand_in[0] = path


def stand_in() -> Binary | None:
    return find(_stand_in[0]) if _stand_in[0] else None


@lru_cache(maxsize=8)
def find(path: str) -> Binary:
    """The helm at a path, or a name looked up in PATH."""
    found = located(path, FLAG)
    output = answer(found, path, VERSION_ARGUMENTS, flag=FLAG, name=NAME)
    version = _version(output) or _version(answer(found, path, VERSION_ARGUMENTS_HELM_2, flag=FLAG, name=NAME))
    if version is None:
        words = f"printed {output.splitlines()[0]!r}" if output else "printed nothing"
        raise CannotContinue(f"{FLAG} {path}: is not helm: `helm version` {words}")
    if int(version["major"]) < OLDEST:
        raise CannotContinue(f"{FLAG} {path}: is Helm {version['version']}; supported are Helm {OLDEST} and later")
    return Binary(found, version["version"])


def _version(output: str) -> re.Match[str] | None:
    """The line with its version; warnings may come before it."""
    return next((match for line in output.splitlines() if (match := VERSION.fullmatch(line.strip()))), None)


def output(binary: Binary, arguments: Iterable[str], *, chart: bytes, values: Body | None = None) -> str:
    """What helm prints about a chart, without a cluster and in the sandbox. Raises `HelmError`."""
    with folders.temporary() as folder:
        home = Path(os.path.realpath(folder), HOME)
        home.mkdir()
        _write_files(folder, chart, values or {})
        memory = limits().memory_mb << 20
        seen = (home.parent, Path(binary.path).parent, Path(binary.path).resolve().parent)
        command = confined([binary.path, *arguments], home=str(home), seen=seen, memory_bytes_max=memory)
        with Path(folder, STDOUT).open("wb") as printed, Path(folder, STDERR).open("wb") as errors:
            process = subprocess.Popen(
                [binary.path, *arguments] if sys.platform == "win32" else command,
                cwd=folder,
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                start_new_session=True,
            )
            _ended(process)
        complaint = Path(folder, STDERR).read_text(errors="replace")
        if process.returncode == 0:
            return Path(folder, STDOUT).read_text(errors="replace")
    raise HelmError(lacks_memory(complaint) or _error(complaint) or f"helm ended with exit code {process.returncode}")


def _ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(limits().seconds)
    except subprocess.TimeoutExpired:
        raise HelmError(f"did not end within {limits().seconds:g} s (--time-limit)") from None
    finally:
        end(process)
        process.wait()


class Process:
    """One run of a helm binary."""

    def __init__(
        self,
        binary: Binary,
        arguments: Iterable[str],
        kubeconfig: str,
        *,
        chart: bytes = b"",
        values: Body | None = None,
    ) -> None:
        self._folder = folders.made()
        with ExitStack() as cleanup:
            cleanup.callback(folders.remove, self._folder)
            self._write(kubeconfig, chart, values)
            with Path(self._folder, STDERR).open("wb") as output:
                self._process = subprocess.Popen(
                    [binary.path, *arguments],
                    cwd=self._folder,
                    env=_environment(self._folder),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=output,
                    start_new_session=True,  # own process group: child processes are killed with it
                )
            _limit_memory(self._process.pid)
            self._cleanup = cleanup.pop_all()
        self._stderr = ""

    def wait(self, seconds: float) -> bool:
        """Whether the process ends within this time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Send SIGTERM, as Ctrl-C does: Helm then records the release as failed."""
        end(self._process, signal.SIGTERM)

    def close(self) -> None:
        """Kill the process if it is running, read its output and remove its folder."""
        if not self.wait(0):
            end(self._process)
        self._process.wait()
        self._stderr = Path(self._folder, STDERR).read_text(errors="replace")
        self._cleanup.close()

    @property
    def failed(self) -> bool:
        return self._process.returncode != 0

    @property
    def error(self) -> str:
        """Helm's error, available after `close`: the last text on stderr that starts with `Error: `."""
        return _error(self._stderr)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The other lines on stderr."""
        before, error, _ = f"\n{self._stderr}".rpartition(f"\n{ERROR}")
        output = before if error or not self.failed else ""
        return tuple(line for line in dict.fromkeys(output.splitlines()) if line.strip())

    def _write(self, kubeconfig: str, chart: bytes, values: Body | None) -> None:
        Path(self._folder, HOME).mkdir()
        write_kubeconfig(self._folder, kubeconfig)
        _write_files(self._folder, chart, values or {})


def _write_files(folder: str, chart: bytes, values: Body) -> None:
    if chart:
        Path(folder, CHART).write_bytes(chart)
    if values:
        Path(folder, VALUES).write_text(json.dumps(values))


def _error(stderr: str) -> str:
    """The last text that starts with `Error: `; else the first line, as of a panic."""
    _, error, words = f"\n{stderr}".rpartition(f"\n{ERROR}")
    if not error:
        return next((line.strip() for line in stderr.splitlines() if line.strip()), "")
    return words.replace(HINT, "").strip()


def lacks_memory(error: str) -> str:
    """What to say if helm ended because of its memory; empty if it did not."""
    known = any(words in error for words in NO_MEMORY)
    return f"needs more than {limits().memory_mb} MB of memory (--memory-limit)" if known else ""


def _limit_memory(process: int) -> None:
    """A template may be a bomb. Without the sandbox, only Linux limits the memory of another process."""
    if sys.platform == "linux":
        import resource

        most = limits().memory_mb << 20
        with suppress(ProcessLookupError):  # It has ended already.
            resource.prlimit(process, resource.RLIMIT_DATA, (most, most))


def is_flag_error(error: str) -> bool:
    """Whether Helm rejected a flag, so that nothing was rehearsed."""
    return error.startswith(FLAG_ERRORS)


def _environment(folder: str) -> dict[str, str]:
    """No plugins, repositories and registry login either."""
    home = str(Path(folder, HOME))
    return {
        **environment(folder),
        "HELM_CACHE_HOME": f"{home}/cache",
        "HELM_CONFIG_HOME": f"{home}/config",
        "HELM_DATA_HOME": f"{home}/data",
        "HELM_PLUGINS": f"{home}/plugins",
    }
