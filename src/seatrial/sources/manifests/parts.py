"""Files that are part of something else than manifests, and whose folder is what can be checked."""

from __future__ import annotations

from pathlib import Path

from seatrial.sources.files import shown
from seatrial.sources.manifests import kustomize

GROUP = "kustomize.config.k8s.io"
PROGRAM = "a Pulumi program"
WHOLES = {
    "Chart.yaml": "a chart",
    "Pulumi.yaml": PROGRAM,
    "Pulumi.yml": PROGRAM,
    **dict.fromkeys(kustomize.FILES, "a kustomization"),
}
LANGUAGES = (".cjs", ".js", ".mjs", ".py", ".ts")


def part_of(path: str) -> str:
    """What a file belongs to, as a sentence that names what to check in its place; empty where it may stand alone."""
    where = Path(path)
    whole = WHOLES.get(where.name, "")
    beside = (name for name, other in WHOLES.items() if other == PROGRAM)
    if where.suffix in LANGUAGES and any((where.parent / name).is_file() for name in beside):
        whole = PROGRAM
    folder = shown(str(where.parent))
    return f"{shown(path)}: this is a file of {whole}; name its folder: {folder}" if whole else ""
