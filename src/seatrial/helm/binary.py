"""A helm binary of the user's, as a process of its own: given files, a cluster and nothing else. Decides nothing.

Whatever it reads and writes lies in a folder that only this user can look into, and that is gone when the process is:
the chart, the values, the kubeconfig, and an empty home without plugins, repositories or caches.
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
"""How long it may take to say its version."""
ANSWER_BYTES = 4096
ASKS = ("version", "--template", "{{.Version}}")
ASKS_HELM_2 = ("version", "--client", "--template", "{{.Client.SemVer}}")
FLAG = "--helm-binary"
ERROR = "Error: "
NOT_ITS_FLAG = ("unknown flag: ", "unknown shorthand flag: ", "flag needs an argument: ", "invalid argument ")
CHART, VALUES, KUBECONFIG, HOME, SAID = "chart.tgz", "values.json", "kubeconfig", "home", "stderr"


class Binary(Struct, frozen=True):
    """A program that says it is Helm, and which."""

    path: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


@lru_cache(maxsize=8)
def find(path: str) -> Binary:
    """The helm at a path, or of a name that is looked up as a shell would."""
    found = shutil.which(path)
    if found is None:
        where = Path(path)
        wrong = "is a folder" if where.is_dir() else "is not executable" if where.exists() else "does not exist"
        raise CannotContinue(f"{FLAG} {path}: {wrong}")
    said = _answer(found, path, ASKS)
    version = VERSION.fullmatch(said) or VERSION.fullmatch(_answer(found, path, ASKS_HELM_2))
    if version is None:
        words = f"says {said.splitlines()[0]!r}" if said else "says nothing"
        raise CannotContinue(f"{FLAG} {path}: is no helm: asked for its version it {words}")
    if int(version["major"]) < OLDEST:
        raise CannotContinue(f"{FLAG} {path}: is Helm {version['version']}; Helm {OLDEST} and later can be rehearsed")
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
        with ExitStack() as begun:
            begun.callback(shutil.rmtree, self._folder, ignore_errors=True)
            self._write(kubeconfig, chart, values)
            with Path(self._folder, SAID).open("wb") as said:
                self._process = subprocess.Popen(
                    [binary.path, *arguments],
                    cwd=self._folder,
                    env=_environment(self._folder),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,  # a group of its own, so that whatever it starts ends with it
                )
            self._left = begun.pop_all()
        self._said = ""

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, within this time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does: Helm then records the release as failed."""
        _end(self._process, signal.SIGTERM)

    def close(self) -> None:
        """End it if it has not ended, and leave nothing behind."""
        if not self.wait(0):
            _end(self._process)
        self._process.wait()
        self._said = Path(self._folder, SAID).read_text(errors="replace")
        self._left.close()

    @property
    def failed(self) -> bool:
        return self._process.returncode != 0

    @property
    def error(self) -> str:
        """Helm's own words, once it is closed; the last of what it wrote that begins as errors do."""
        before, error, words = f"\n{self._said}".rpartition(f"\n{ERROR}")
        return words.strip() if error else before.strip()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What it wrote besides."""
        before, error, _ = f"\n{self._said}".rpartition(f"\n{ERROR}")
        said = before if error or not self.failed else ""
        return tuple(line for line in dict.fromkeys(said.splitlines()) if line.strip())

    def _write(self, kubeconfig: str, chart: bytes, values: Body | None) -> None:
        Path(self._folder, HOME).mkdir()
        Path(self._folder, KUBECONFIG).write_text(kubeconfig)
        if chart:
            Path(self._folder, CHART).write_bytes(chart)
        if values:
            Path(self._folder, VALUES).write_text(json.dumps(values))


def knows_not(error: str) -> bool:
    """Whether Helm does not understand what it was asked, so that nothing was rehearsed."""
    return error.startswith(NOT_ITS_FLAG)


def _answer(found: str, path: str, question: Iterable[str]) -> str:
    """The beginning of what it says; whatever it has started to say that ends with it."""
    with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
        Path(folder, HOME).mkdir()
        try:
            asked = subprocess.Popen(
                [found, *question],
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as wrong:
            raise CannotContinue(f"{FLAG} {path}: cannot be run: {wrong.strerror}") from None
        late = threading.Timer(ANSWER_SECONDS, _end, [asked])
        late.start()
        with asked:
            assert asked.stdout
            said = asked.stdout.read(ANSWER_BYTES)
            _end(asked)
        if not late.is_alive():
            raise CannotContinue(f"{FLAG} {path}: is no helm: it does not say its version")
        late.cancel()
    return said.decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    """End it with all that it has started."""
    with suppress(ProcessLookupError):  # It may just have ended by itself.
        os.killpg(process.pid, number)


def _environment(folder: str) -> dict[str, str]:
    """Nothing of the user's: no other cluster, no plugins, no repositories, no proxies, no registry to log in to."""
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
