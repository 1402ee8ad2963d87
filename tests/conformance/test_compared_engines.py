"""The real kubectl against the embedded API, compared with the simulated one by `--compare-engines`."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.check import run_both
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import SCHEDULES, Schedule

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, labels: {app: shop}}\ndata: {color: COLOR}\n"
OTHER = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other, labels: {app: shop}}\n"
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: LABEL}}
  template: {metadata: {labels: {app: LABEL}}, spec: {containers: [{name: main, image: "nginx:1"}]}}
"""
HELD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/keep]}\n"
UNSERVED = "apiVersion: shop.example/v1\nkind: Widget\nmetadata: {name: blue}\n---\n"
KUSTOMIZED = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [app.yaml]\n"

TOOLING = "applyset.kubernetes.io/tooling"
"""The version of the kubectl that wrote an ApplySet, which is not that of the simulated one."""
TRIALS = {
    "created, unchanged and changed": ({"a/app.yaml": CONFIG, "b/app.yaml": CONFIG.replace("COLOR", "b")}, "aab", ""),
    "server-side": ({"a/app.yaml": CONFIG, "b/app.yaml": CONFIG.replace("COLOR", "b")}, "aab", "--server-side"),
    "an immutable field": ({"a/web.yaml": WEB, "b/web.yaml": WEB.replace("LABEL", "b")}, "ab", ""),
    "forced": ({"a/web.yaml": WEB, "b/web.yaml": WEB.replace("LABEL", "b")}, "ab", "--force"),
    "pruned": ({"a/app.yaml": CONFIG + OTHER, "b/app.yaml": WEB}, "ab", "--prune, --all"),
    "pruned by an ApplySet": ({"a/app.yaml": CONFIG + OTHER, "b/app.yaml": CONFIG}, "ab", "--prune, --applyset=shop"),
    "a kind that is not served": ({"a/app.yaml": UNSERVED + CONFIG}, "aa", ""),
    "a kustomization": ({"a/app.yaml": CONFIG, "a/kustomization.yaml": KUSTOMIZED}, "aa", ""),
    "subfolders": ({"a/app.yaml": CONFIG, "a/deep/web.yaml": WEB}, "a", "-R"),
}


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest) -> Schedule:
    found: Schedule = request.param
    return found


@pytest.mark.parametrize(("files", "steps", "flags"), list(TRIALS.values()), ids=list(TRIALS))
def test_apply_and_delete_do_the_same(
    files: dict[str, str], steps: str, flags: str, schedule: Schedule, kubectl_binary: str, tmp_path: Path
) -> None:
    applied = "".join(f"  - apply: {folder}\n    flags: [{flags}]\n" for folder in steps)
    assert _differences(files, f"{applied}  - delete: a\n", schedule, kubectl_binary, tmp_path) == ()


def test_a_delete_that_hangs_hangs_with_both(schedule: Schedule, kubectl_binary: str, tmp_path: Path) -> None:
    trial = "  - apply: a\n  - delete: a\n"
    assert _differences({"a/held.yaml": HELD + "---\n" + CONFIG}, trial, schedule, kubectl_binary, tmp_path) == ()


def test_client_side_apply_is_migrated_to_server_side(schedule: Schedule, kubectl_binary: str, tmp_path: Path) -> None:
    files = {"a/app.yaml": CONFIG, "b/app.yaml": CONFIG.replace("{color: COLOR}", "{other: '1'}")}
    trial = "  - apply: a\n  - apply: b\n    flags: [--server-side, --force-conflicts]\n"
    assert (
        _differences(files, trial + "  - apply: b\n    flags: [--server-side]\n", schedule, kubectl_binary, tmp_path)
        == ()
    )


def test_objects_are_deleted_by_name(schedule: Schedule, kubectl_binary: str, tmp_path: Path) -> None:
    trial = "  - apply: a\n  - delete: Deployment/default/web\n  - delete: ConfigMap/default/none\n"
    assert _differences({"a/web.yaml": WEB}, trial, schedule, kubectl_binary, tmp_path) == ()


def _differences(
    files: dict[str, str], steps: str, schedule: Schedule, binary: str, folder: Path
) -> tuple[object, ...]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "trial.yaml").write_text(f"engine: kubectl\nsteps:\n{steps}")
    options = CheckOptions(inputs=(str(folder / "trial.yaml"),), kubectl_binary=binary, compare_engines=True)
    one, found = run_both(options, schedule)
    assert one.rehearsal.engine.real
    return tuple(one for one in found.differences if TOOLING not in one.real)
