"""What the container image does without: copies of Helm's library, and schemas that are not read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from chartfolder import write

SLIM = Path(__file__).parents[2] / "integrations" / "container" / "slim.py"
SCHEMAS = "kubernetes_validate/kubernetes-json-schema"


def test_what_is_loaded_and_read_stays(tmp_path: Path) -> None:
    copies = {f"helm_python/lib/{name}": "x" * 9 for name in ("libhelm_c.so", "libhelm_c.so.0", "libhelm_c.so.0.2.2")}
    other = {"helm_python/lib/libhelm_c.h": "short", "helm_python/_native.py": "", "jq.so": "x" * 9}
    schemas = {f"{SCHEMAS}/{name}": "{}" for name in ("v1.34.0-local/_definitions.json", "v1.34.0-local/pod.json")}
    strict = {f"{SCHEMAS}/v1.34.0-local-strict/_definitions.json": "{}"}
    write(tmp_path, {**copies, **other, **schemas, **strict})
    subprocess.run([sys.executable, str(SLIM), str(tmp_path)], check=True, capture_output=True)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == [
        "helm_python/_native.py",
        "helm_python/lib/libhelm_c.h",
        "helm_python/lib/libhelm_c.so.0.2.2",
        "jq.so",
        f"{SCHEMAS}/v1.34.0-local/_definitions.json",
    ]
