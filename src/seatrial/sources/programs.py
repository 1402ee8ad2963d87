"""Recognition of Pulumi programs, by their project file, and of files that Pulumi wrote. Reads no program."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

from seatrial.model.resource import Body
from seatrial.sources import disk

NAMES = ("Pulumi.yaml", "Pulumi.yml")


def is_program(path: str) -> bool:
    return project_file(Path(path)) is not None


def project_file(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if disk.is_file(folder / name)), None)


def is_recording(content: bytes) -> bool:
    """Whether this is a preview or stack export of Pulumi, possibly truncated."""
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.lstrip().startswith(b"{"):
        return False
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return b'"urn:pulumi:' in content or b'"deployment"' in content
    return isinstance(body, dict) and ("deployment" in body or is_preview(body))


def is_preview(body: Body) -> bool:
    return "changeSummary" in body or ("steps" in body and ("config" in body or "duration" in body))
