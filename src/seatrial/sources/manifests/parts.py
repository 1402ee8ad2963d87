"""Files that belong to a chart, a program or a kustomization, whose folder is the input to check."""

from __future__ import annotations

from pathlib import Path

from seatrial.sources import disk
from seatrial.sources.files import shown
from seatrial.sources.manifests import kustomize_bases

GROUP = "kustomize.config.k8s.io"
PROGRAM = "a Pulumi program"
WHOLES = {
    "Chart.yaml": "a chart",
    "Pulumi.yaml": PROGRAM,
    "Pulumi.yml": PROGRAM,
    **dict.fromkeys(kustomize_bases.FILES, "a kustomization"),
}
LANGUAGES = (".cjs", ".js", ".mjs", ".py", ".ts")


def part_of(path: str) -> str:
    """An error sentence that names the folder to check instead; empty if the file is an input of its own."""
    where = Path(path)
    whole = WHOLES.get(where.name, "")
    beside = (name for name, other in WHOLES.items() if other == PROGRAM)
    if where.suffix in LANGUAGES and any(disk.is_file(where.parent / name) for name in beside):
        whole = PROGRAM
    folder = shown(str(where.parent))
    return f"{shown(path)}: this file is part of {whole}; pass its folder: {folder}" if whole else ""
