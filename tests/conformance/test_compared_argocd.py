"""A real Argo CD in the sandbox, compared with the simulated one by `--compare-engines`. Runs recorded cases again."""

from __future__ import annotations

import os
import re
from pathlib import Path

import goldencases
import pytest

from seatrial.check import run_both
from seatrial.helm.argocd_hooks import FINALIZER
from seatrial.model.options import CheckOptions
from seatrial.model.result import EngineDifference

VARIABLE = "SEATRIAL_ARGOCD_BINARIES"
FOLDER = os.environ.get(VARIABLE, "")
CASES = (
    "waves-and-hooks",
    "helm-hooks",
    "presync-fails-retry-3",
    "prune-namespace",
    "delete-cascade",
    "ssa-conflict",
    "presync-fails-auto",
    "shared-object",
)

pytestmark = pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} is not set to a folder with the executables of Argo CD")


@pytest.mark.parametrize("name", CASES)
def test_a_case_goes_the_same_with_both(name: str, tmp_path: Path) -> None:
    case = goldencases.read("argocd", name)
    repos = goldencases.written(case, tmp_path)
    given = CheckOptions((str(tmp_path / "trial.yaml"),), repos=repos, engine_binaries=(f"argocd={FOLDER}",))
    one, found = run_both(given, "eager")
    assert one.rehearsal.engine.real
    assert [difference for difference in found.differences if not _is_chance(difference)] == []


def _is_chance(difference: EngineDifference) -> bool:
    """The real controller may act on an old copy of a hook that it has just recreated: then the finalizer stays.

    `removeHookFinalizer` in gitops-engine/pkg/sync/sync_context.go looks at the object in its cache.
    """
    update = re.fullmatch(r"argocd update Job/\S+ (changed|refused .*)", difference.model or difference.real)
    return FINALIZER in difference.real or (update is not None and not (difference.model and difference.real))
