"""Builds the control plane of the lab from its Go modules. Everything but the sources stays in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab import ROOT

SOURCES = ROOT / "lab" / "cluster"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
AT_ONCE = 2
VERSION = "v1.34.4"
"""Of Kubernetes, as in go.mod."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seatrial-lab"


def build() -> Path | None:
    """The folder with the executables; None where there is no Go. Nothing is built twice."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        return None
    folder = cache() / "bin"
    if _is_new(folder / "control-plane"):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    package = "k8s.io/component-base/version"
    major, minor, _ = VERSION.removeprefix("v").split(".")
    said = f"-X {package}.gitVersion={VERSION} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    command = [go, "build", "-p", str(AT_ONCE), "-trimpath", "-ldflags", f"-s -w {said}", "-o"]
    environment = {
        **os.environ,
        "GOMODCACHE": str(cache() / "mod"),
        "GOCACHE": str(cache() / "build"),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly",
    }
    subprocess.run(
        ["nice", "-n", "19", *command, str(folder / "control-plane"), "."], cwd=SOURCES, env=environment, check=True
    )
    for name in COMPONENTS:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to("control-plane")
    return folder


def _is_new(executable: Path) -> bool:
    """Whether it was built from the sources as they are. Go takes a minute to find that out."""
    sources = [path.stat().st_mtime for path in SOURCES.iterdir()]
    return executable.exists() and executable.stat().st_mtime > max(sources)
