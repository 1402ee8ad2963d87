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

STORIES = {
    "argocd-apps-of-apps": ("root.yaml", "set.yaml"),
    "argocd-applicationset-rollingsync": ("set.yaml", "backwards.yaml"),
    "argocd-child-application-is-pruned": ("trial.yaml",),
    "argocd-changes-that-start-a-sync": ("trial.yaml",),
    "argocd-application-that-contains-itself-is-never-deleted": ("root.yaml",),
}
"""By story with child Applications or ApplicationSets: its inputs, each with the files of the whole story."""
SCENARIOS = Path(__file__).parents[1] / "scenarios"
FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REPO = re.compile(r"--repo (\S+)=(\S+)")

pytestmark = pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} is not set to a folder with the executables of Argo CD")


@pytest.mark.parametrize("name", CASES)
def test_a_case_goes_the_same_with_both(name: str, tmp_path: Path) -> None:
    case = goldencases.read("argocd", name)
    repos = goldencases.written(case, tmp_path)
    given = CheckOptions((str(tmp_path / "trial.yaml"),), repos=repos, engine_binaries=(f"argocd={FOLDER}",))
    one, found = run_both(given, "eager")
    assert one.rehearsal.engine.real
    assert [difference for difference in found.differences if not _is_chance(difference)] == []


@pytest.mark.parametrize(("story", "given"), [(story, one) for story, given in STORIES.items() for one in given])
def test_a_story_with_child_applications_goes_the_same_with_both(story: str, given: str, tmp_path: Path) -> None:
    text = (SCENARIOS / f"{story}.md").read_text()
    for name, content in reversed(FILE.findall(text)):  # The first files of a name are the good ones.
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    repos = tuple(f"{url}={tmp_path / folder}" for url, folder in dict(REPO.findall(text)).items())
    engines = () if given == "trial.yaml" else ("argocd",)
    options = CheckOptions(
        (str(tmp_path / given),), engines=engines, repos=repos, engine_binaries=(f"argocd={FOLDER}",)
    )
    _, found = run_both(options, "eager")
    assert [difference for difference in found.differences if not _is_chance(difference)] == []


def _is_chance(difference: EngineDifference) -> bool:
    """The real controller may act on an old copy of a hook that it has just recreated: then the finalizer stays.

    `removeHookFinalizer` in gitops-engine/pkg/sync/sync_context.go looks at the object in its cache.
    """
    words = r"argocd update (Job/\S+ (changed|refused .*)|\S+ refused .* not found)"
    update = re.fullmatch(words, difference.model or difference.real)
    return FINALIZER in difference.real or (update is not None and not (difference.model and difference.real))
