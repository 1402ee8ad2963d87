"""The user's helm binary, run as a process with its own files and cluster. Makes no decisions.

Everything it reads and writes is in a temporary folder that only this user can read: the chart, the values, the
kubeconfig, and an empty home without plugins, repositories or caches. The folder is removed when the process ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body

OLDEST = 3
VERSION = re.compile(r"v?(?P<version>(?P<major>\d+)\.\d+\.\d+[\w.+-]*)")
ANSWER_SECONDS = 20
"""Time limit for printing its version."""
ANSWER_BYTES = 4096
VERSION_ARGUMENTS = ("version", "--template", "{{.Version}}")
VERSION_ARGUMENTS_HELM_2 = ("version", "--client", "--template", "{{.Client.SemVer}}")
FLAG = "--helm-binary"
ERROR = "Error: "
FLAG_ERRORS = ("unknown flag: ", "unknown shorthand flag: ", "flag needs an argument: ", "invalid argument ")
CHART, VALUES, KUBECONFIG, HOME, STDERR = "chart.tgz", "values.json", "kubeconfig", "home", "stderr"


class Binary(Struct, frozen=True):
    """A helm executable and its version."""

    path: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


@lru_cache(maxsize=8)
def find(path: str) -> Binary:
    """The helm at a path, or a name looked up in PATH."""
    found = shutil.which(path)
    if found is None:
        where = Path(path)
        error = "is a folder" if where.is_dir() else "is not executable" if where.exists() else "does not exist"
        raise CannotContinue(f"{FLAG} {path}: {error}")
    output = _answer(found, path, VERSION_ARGUMENTS)
    version = VERSION.fullmatch(output) or VERSION.fullmatch(_answer(found, path, VERSION_ARGUMENTS_HELM_2))
    if version is None:
        words = f"printed {output.splitlines()[0]!r}" if output else "printed nothing"
        raise CannotContinue(f"{FLAG} {path}: is not helm: `helm version` {words}")
    if int(version["major"]) < OLDEST:
        raise CannotContinue(f"{FLAG} {path}: is Helm {version['version']}; supported are Helm {OLDEST} and later")
    return Binary(found, version["version"])


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
        self._folder = tempfile.mkdtemp(prefix="seatrial-")
        with ExitStack() as cleanup:
            cleanup.callback(shutil.rmtree, self._folder, ignore_errors=True)
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
        _end(self._process, signal.SIGTERM)

    def close(self) -> None:
        """Kill the process if it is running, read its output and remove its folder."""
        if not self.wait(0):
            _end(self._process)
        self._process.wait()
        self._stderr = Path(self._folder, STDERR).read_text(errors="replace")
        self._cleanup.close()

    @property
    def failed(self) -> bool:
        return self._process.returncode != 0

    @property
    def error(self) -> str:
        """Helm's error, available after `close`: the last text on stderr that starts with `Error: `."""
        before, error, words = f"\n{self._stderr}".rpartition(f"\n{ERROR}")
        return words.strip() if error else before.strip()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The other lines on stderr."""
        before, error, _ = f"\n{self._stderr}".rpartition(f"\n{ERROR}")
        output = before if error or not self.failed else ""
        return tuple(line for line in dict.fromkeys(output.splitlines()) if line.strip())

    def _write(self, kubeconfig: str, chart: bytes, values: Body | None) -> None:
        Path(self._folder, HOME).mkdir()
        Path(self._folder, KUBECONFIG).write_text(kubeconfig)
        if chart:
            Path(self._folder, CHART).write_bytes(chart)
        if values:
            Path(self._folder, VALUES).write_text(json.dumps(values))


def is_flag_error(error: str) -> bool:
    """Whether Helm rejected a flag, so that nothing was rehearsed."""
    return error.startswith(FLAG_ERRORS)


def _answer(found: str, path: str, arguments: Iterable[str]) -> str:
    """The beginning of the output. The process and its children are killed."""
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        Path(folder, HOME).mkdir()
        try:
            process = subprocess.Popen(
                [found, *arguments],
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotContinue(f"{FLAG} {path}: cannot be run: {error.strerror}") from None
        timer = threading.Timer(ANSWER_SECONDS, _end, [process])
        timer.start()
        with process:
            assert process.stdout
            output = process.stdout.read(ANSWER_BYTES)
            _end(process)
        if not timer.is_alive():
            raise CannotContinue(f"{FLAG} {path}: is not helm: `helm version` did not end")
        timer.cancel()
    return output.decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    """Kill the process and its children."""
    with suppress(ProcessLookupError):  # It may have ended in the meantime.
        os.killpg(process.pid, number)


def _environment(folder: str) -> dict[str, str]:
    """No user settings: no other cluster, no plugins, no repositories, no proxies, no registry login."""
    home = str(Path(folder, HOME))
    return {
        "HOME": home,
        "HELM_CACHE_HOME": f"{home}/cache",
        "HELM_CONFIG_HOME": f"{home}/config",
        "HELM_DATA_HOME": f"{home}/data",
        "HELM_PLUGINS": f"{home}/plugins",
        "KUBECONFIG": str(Path(folder, KUBECONFIG)),
        "KUBECACHEDIR": f"{home}/kube",
        "PATH": os.defpath,
        "TMPDIR": home,
    }
