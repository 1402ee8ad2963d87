"""Charts and folders for tests, written from text."""

from __future__ import annotations

from pathlib import Path

CHART = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
