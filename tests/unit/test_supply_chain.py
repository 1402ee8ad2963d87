"""What seatrial is built from: locks with hashes, licences, and modules that every platform can import."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {"dev": ("dev",), "container": ("live", "fleet")}
NAME = re.compile(r"^([a-z0-9][\w.-]*)==\S+", re.M)
ON_LINUX = ("seatrial.__main__", "seatrial.sandbox.confined", "seatrial.sources.pulumi.recorder")
"""What is run in the sandbox only, or runs the command line."""
IMPORTING = """
import asyncio, concurrent.futures.process, ctypes, importlib, multiprocessing, os, pkgutil, signal, socket, subprocess
import sys, tempfile, cyclopts, helm_python, httptools, rich.console
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "readline"):
    sys.modules[name] = None
kept = ("SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN")
for name in dir(signal):
    if (name.startswith(("SIG", "ITIMER")) and name not in kept) or name in ("setitimer", "alarm"):
        delattr(signal, name)
for name in ("killpg", "fork", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "getuid", "setsid", "uname", "sysconf"):
    delattr(os, name)
import seatrial
for found in pkgutil.walk_packages(seatrial.__path__, "seatrial."):
    if found.name not in sys.argv[1:]:
        importlib.import_module(found.name)
"""
"""As on Windows: without the modules, signals and functions that only POSIX systems have."""


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_locked_with_its_hashes(lock: str) -> None:
    """After a change of dependencies: make lock."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for extra in LOCKS[lock] for one in extras[extra])]
    assert {_normal(re.split(r"[<>=\[ ]", one)[0]) for one in wanted} - set(NAME.findall(text)) == set()
    assert all("--hash=sha256:" in entry for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.M) if entry.strip())


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    assert "://" not in text
    assert "index" not in text


def test_the_licence_of_every_package_in_the_image_is_listed() -> None:
    locked = set(NAME.findall((ROOT / "requirements/container.lock").read_text()))
    listed = set(re.findall(r"^\| ([\w.-]+) \|", (ROOT / "docs/supply-chain.md").read_text(), re.M))
    assert locked - listed == set()


def test_every_module_can_be_imported_on_windows() -> None:
    command = [sys.executable, "-c", IMPORTING, *ON_LINUX]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
