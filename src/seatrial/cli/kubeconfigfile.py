"""The kubeconfig that `serve` writes for clients and removes at the end. Never touches a file it did not write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import dig, listed

OWNER_ONLY = 0o600
CLUSTER = "seatrial"


@contextmanager
def written(path: str, content: str) -> Iterator[None]:
    """Write the file, readable by its owner only, and remove it on exit; without a path, do nothing."""
    if not path:
        yield
        return
    file = Path(path)
    try:
        handle = _opened(file)
    except OSError as why:
        raise CannotContinue(f"write the kubeconfig {path}: {why.strerror or why}") from None
    try:
        _lock(handle, path)
        _write(handle, content, path)
        try:
            yield
        finally:
            if _servers(file) in ([], _servers_in(content)):  # Not what another server wrote there.
                file.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _opened(file: Path) -> int:
    if file.exists() and _servers(file) is None:
        raise CannotContinue(
            f"write the kubeconfig {file}: the file exists and was not written by seatrial; choose another name"
        )
    return os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), OWNER_ONLY)


def _lock(handle: int, path: str) -> None:
    """For as long as this process has the file open. Windows has no such lock."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotContinue(
                f"write the kubeconfig {path}: another seatrial serve uses it; choose another name"
            ) from None


def _write(handle: int, content: str, path: str) -> None:
    try:
        if os.chmod in os.supports_fd:
            os.chmod(handle, OWNER_ONLY)
        os.truncate(handle, 0)
        os.write(handle, content.encode())
    except OSError as why:
        raise CannotContinue(f"write the kubeconfig {path}: {why.strerror or why}") from None


def _servers(file: Path) -> list[str] | None:
    """The servers of a file that is empty or names only our cluster: kubectl may have rewritten it in the meantime."""
    try:
        return _servers_in(file.read_text())
    except (OSError, UnicodeDecodeError):
        return None


def _servers_in(text: str) -> list[str] | None:
    if not text.strip():
        return []
    try:
        config = msgspec.yaml.decode(text)
    except msgspec.DecodeError:
        return None
    clusters = listed(config, "clusters")
    if [dig(cluster, "name") for cluster in clusters] != [CLUSTER]:
        return None
    return [str(dig(cluster, "cluster", "server")) for cluster in clusters]
