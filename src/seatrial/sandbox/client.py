"""A binary of the user, such as kubectl, and one run of it against a cluster. Knows no engine.

It runs in the sandbox: the cluster is the only server that it reaches, its home is empty and thrown away, and it can
write nowhere else. It reads the files that it deploys where they are.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.sandbox import Door, confined, folders

ANSWER_SECONDS = 20
"""Time limit for printing its version."""
ANSWER_BYTES = 4096
VERSION = lazy_re.compile(r"v\d+\.\d+\.\d+")
KUBECONFIG, HOME, STDIN, STDOUT, STDERR = "kubeconfig", "home", "stdin", "stdout", "stderr"


class Binary(Struct, frozen=True):
    """An executable of an engine, and its version."""

    path: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


def located(path: str, flag: str) -> str:
    """The executable at a path, or of a name that is looked up in PATH."""
    found = shutil.which(path)
    if found is None:
        where = Path(path)
        error = "is a folder" if where.is_dir() else "is not executable" if where.exists() else "does not exist"
        raise CannotContinue(f"{flag} {path}: {error}")
    return str(Path(found).absolute())


def on_path(name: str) -> str:
    """The executable of a name in PATH; empty if there is none. Relative entries, such as `.`, do not count."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())) or ""


def versioned(folder: Path, prefix: str) -> list[str]:
    """The versions of folders such as `PREFIXv1.2.3`, oldest first."""
    names = (path.name.removeprefix(prefix) for path in folder.glob(f"{prefix}v*") if path.is_dir())
    found = {tuple(map(int, name[1:].split("."))): name[1:] for name in names if VERSION.fullmatch(name)}
    return [found[numbers] for numbers in sorted(found)]


def answer(
    found: str,
    path: str,
    arguments: Iterable[str],
    *,
    flag: str,
    name: str,
    variables: Mapping[str, str] | None = None,
) -> str:
    """The beginning of what it prints. The process and its children are killed."""
    with folders.temporary() as folder:
        Path(folder, HOME).mkdir()
        try:
            process = subprocess.Popen(
                [found, *arguments],
                env={**environment(folder), **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotContinue(f"{flag} {path}: cannot be run: {error.strerror}") from None
        timer = threading.Timer(ANSWER_SECONDS, end, [process])
        timer.start()
        with process:
            assert process.stdout
            output = process.stdout.read(ANSWER_BYTES)
            end(process)
        if not timer.is_alive():
            raise CannotContinue(f"{flag} {path}: is not {name}: `{name} version` did not end")
        timer.cancel()
    return output.decode(errors="replace").strip()


def end(process: subprocess.Popen[bytes], number: int | None = None) -> None:
    """Kill the process and its children; Windows knows no process groups."""
    with suppress(ProcessLookupError):  # It may have ended in the meantime.
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if number is None else number)


def environment(folder: str) -> dict[str, str]:
    """No user settings: no other cluster, no caches, no proxies."""
    home = str(Path(folder, HOME))
    return {
        "HOME": home,
        "KUBECONFIG": str(Path(folder, KUBECONFIG)),
        "KUBECACHEDIR": f"{home}/kube",
        "LANG": "C.UTF-8",
        "PATH": os.defpath,
        "TMPDIR": home,
    }


def write_kubeconfig(folder: str, text: str) -> None:
    """Only its owner may read a kubeconfig: Helm warns of others."""
    path = Path(folder, KUBECONFIG)
    path.touch(mode=0o600)
    path.write_text(text)


class BinaryRun:
    """One run of a binary."""

    def __init__(
        self,
        binary: Binary,
        arguments: Iterable[str],
        *,
        kubeconfig: str,
        door: Door,
        stdin: str = "",
        reads: Iterable[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = os.path.realpath(folders.made())
        with ExitStack() as cleanup:
            cleanup.callback(folders.remove, self._folder)
            self._file(HOME).mkdir()
            write_kubeconfig(self._folder, kubeconfig)
            self._file(STDIN).write_text(stdin)
            path = Path(binary.path)
            seen = [self._file("."), path.parent, path.resolve().parent, *map(Path, reads)]
            with (
                self._file(STDIN).open("rb") as given,
                self._file(STDOUT).open("wb") as output,
                self._file(STDERR).open("wb") as errors,
            ):
                self._process = subprocess.Popen(
                    confined([binary.path, *arguments], home=str(self._file(HOME)), seen=seen, door=door),
                    env={**environment(self._folder), **(variables or {})},
                    stdin=given,
                    stdout=output,
                    stderr=errors,
                    pass_fds=(door.descriptor,),
                    start_new_session=True,  # own process group: child processes are killed with it
                )
            os.close(door.descriptor)
            self._cleanup = cleanup.pop_all()
        self.stdout = self.stderr = ""
        """Available after `close`."""

    @property
    def home(self) -> str:
        """Its home, as the process knows it."""
        return str(self._file(HOME))

    def wait(self, seconds: float) -> bool:
        """Whether the process ends within this time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Tell the process to end, which lets it finish what it has begun."""
        end(self._process, signal.SIGTERM)

    def close(self) -> None:
        """Kill the process if it is running, read its output and remove its folder."""
        if not self.wait(0):
            end(self._process)
        self._process.wait()
        self.stdout, self.stderr = (self._file(name).read_text(errors="replace") for name in (STDOUT, STDERR))
        self._cleanup.close()

    @property
    def failed(self) -> bool:
        return self._process.returncode != 0

    def _file(self, name: str) -> Path:
        return Path(self._folder, name)
