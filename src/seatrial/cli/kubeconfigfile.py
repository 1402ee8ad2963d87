"""The kubeconfig that `serve` writes for clients and takes away again. Never touches one that it did not write."""

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
    """The file, readable by its owner alone, for as long as it is needed; nothing where no path is given."""
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
        raise CannotContinue(f"write the kubeconfig {file}: it is there already, and seatrial did not write it")
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(handle, "w") as opened:
        os.fchmod(handle, OWNER_ONLY)
        opened.write(content)


def _is_ours(file: Path) -> bool:
    """Whether the file is empty, or knows our cluster alone: kubectl may have rewritten it meanwhile."""
    try:
        text = file.read_text()
        if not text.strip():
            return True
        config = msgspec.yaml.decode(text)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return False
    return [dig(cluster, "name") for cluster in listed(config, "clusters")] == [CLUSTER]
