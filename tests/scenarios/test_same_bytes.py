"""The same input gives the same bytes: whatever the hash seed, the locale, the time zone and the terminal are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from story import scenes

RUN = "import sys; from seatrial.cli import main; sys.exit(main(sys.argv[1:]))"
STORIES = {
    "helm": "two-autoscalers-fight-over-a-deployment",
    "argocd": "argocd-helm-hooks-that-break-the-app",
    "flux": "flux-deleted-kustomization-deletes-its-pvc",
    "kubectl": "kubectl-crd-and-custom-resource-in-one-folder",
    "pulumi, Python": "pulumi-webhook-race-three-fixes",
}
ENVIRONMENTS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Chatham", "COLUMNS": "60", "TERM": "xterm"},
)


@pytest.mark.parametrize("engine", STORIES)
def test_every_environment_gives_the_same_bytes(engine: str, tmp_path: Path) -> None:
    scene = next(scenes((Path(__file__).parent / f"{STORIES[engine]}.md").read_text()))
    for block in scene.files:
        file = tmp_path / block.attributes["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.body)
    first, second = (_output(tmp_path, scene.arguments, environment) for environment in ENVIRONMENTS)
    assert first == second


def _output(folder: Path, arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[int, bytes, bytes]:
    verb, *rest = (word for word in arguments if word not in ("-o", "json", "concise", "full"))
    wanted = ["-o", "json=report.json", "-o", "full"] if verb == "check" else []
    cached = ["--no-cache"] if verb == "check" else []
    done = subprocess.run(
        [sys.executable, "-c", RUN, verb, *rest, *wanted, *cached],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=200,
    )
    assert done.returncode in (0, 1), done.stderr
    report = folder / "report.json"
    return done.returncode, done.stdout, report.read_bytes() if report.exists() else b""
