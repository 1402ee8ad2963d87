"""The kubeconfig that `serve` writes for clients and removes at the end. Never touches a file it did not write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
        _write(file, content)
    except OSError as why:
        raise CannotContinue(f"write the kubeconfig {path}: {why.strerror or why}") from None
    try:
        yield
    finally:
        if _is_ours(file):
            file.unlink(missing_ok=True)


def _write(file: Path, content: str) -> None:
    if file.exists() and not _is_ours(file):
        raise CannotContinue(
            f"write the kubeconfig {file}: the file exists and was not written by seatrial; choose another name"
        )
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWNER_ONLY)
    with os.fdopen(handle, "w") as opened:
        os.fchmod(handle, OWNER_ONLY)
        opened.write(content)


def _is_ours(file: Path) -> bool:
    """Whether the file is empty or names only our cluster: kubectl may have rewritten it in the meantime."""
    try:
        text = file.read_text()
        if not text.strip():
            return True
        config = msgspec.yaml.decode(text)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return False
    return [dig(cluster, "name") for cluster in listed(config, "clusters")] == [CLUSTER]
