"""How Helm stores a release revision: the type and name of its Secret, and its encoded content.

From `newSecretsObject`, `encodeRelease` and `decodeRelease` in pkg/storage/driver of Helm 4.2. Helm 3 does the same.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from functools import lru_cache
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.release import RECORD_TYPE
from seatrial.model.resource import Body, dig

TYPE = RECORD_TYPE
KINDS = ("Secret", "ConfigMap")
"""Kinds of records: the default, and that of HELM_DRIVER=configmap. The SQL driver keeps nothing in the cluster."""
NAME = lazy_re.compile(r"sh\.helm\.release\.v1\.(?P<release>.+)\.v(?P<revision>[0-9]+)")
TIMES = frozenset(
    ("first_deployed", "last_deployed", "deleted", "started_at", "completed_at", "createdAt", "modifiedAt")
)
"""When a release and its hooks changed (pkg/release/v1/info.go, hook.go), and labels of the Secret."""
_GZIP = b"\x1f\x8b\x08"


def record_name(release: str, revision: int) -> str:
    return f"sh.helm.release.v1.{release}.v{revision}"


def encode(content: Body) -> str:
    """A revision encoded for `data.release`."""
    zipped = gzip.compress(json.dumps(content).encode(), mtime=0)
    return base64.b64encode(base64.b64encode(zipped)).decode()


def decode(secret: Body) -> Body:
    """The decoded record of a revision; empty if it cannot be decoded."""
    return _decoded(str(dig(secret, "data", "release") or ""))


def without_times(secret: Body) -> Body:
    """A Secret with the decoded record, to be compared with another one: only whether its times are set is kept."""
    content = decode(secret)
    if not content:
        return secret
    hooks = [{**hook, "last_run": _as_flags(hook.get("last_run"))} for hook in content.get("hooks") or ()]
    labels = _as_flags(dig(secret, "metadata", "labels"))
    return {
        **secret,
        "data": {**content, "info": _as_flags(content.get("info")), "hooks": hooks},
        "metadata": {**secret["metadata"], "labels": labels},
    }


def _as_flags(fields: Any) -> Body:
    return {name: bool(value) if name in TIMES else value for name, value in (fields or {}).items()}


@lru_cache(maxsize=4)
def _decoded(release: str) -> Body:
    """Cached: rules ask for the same record once for every object in it."""
    try:
        data = base64.b64decode(base64.b64decode(release))
        content: Any = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
    except (binascii.Error, OSError, EOFError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
