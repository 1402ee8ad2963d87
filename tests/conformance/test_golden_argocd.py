"""The model of Argo CD against recordings of the real one: phase, message, results, writes and objects of every step.

The cases were recorded with the unmodified application-controller and repo-server of Argo CD 3.5.1 on a fast cluster.
`goldencases` names what concurrency leaves open; everything else must be equal.

The input of three cases says more than their recordings do, and no other input is changed:
- hook-of-other-kinds: the recording replaced an operation that was running, and cleared its state. `SetAppOperation` in
  util/argo/argo.go refuses that (`ErrAnotherOperationInProgress`), so it was no `argocd app sync`: the second step
  writes `operation` and `status.operationState: null`.
- missing-version: the cluster still had the CRD of another case. For a kind that is not served, Argo CD names any
  version of that kind in any group, so that CRD is assumed.
- ssa-conflict: the step between the syncs is not Argo CD's, and was not made with `kubectl apply`: Argo CD migrates the
  fields of `kubectl-client-side-apply`, and did not. Here it is a server-side apply.
"""

from __future__ import annotations

from pathlib import Path

import goldencases
import pytest
from goldencases import ASPECTS, Places

NAMES = goldencases.names("argocd")


def test_there_are_48_cases() -> None:
    assert len(NAMES) == 48


@pytest.mark.parametrize("name", NAMES)
def test_the_model_does_what_argocd_did(name: str, tmp_path: Path) -> None:
    case = goldencases.read("argocd", name)
    rehearsal = goldencases.played(case, tmp_path)
    real, model = goldencases.recorded(case, rehearsal), goldencases.modelled(case, rehearsal)
    for aspect in ASPECTS:
        was, is_ = ([getattr(step, aspect) for step in steps] for steps in (real, model))
        assert is_ == was, aspect


A, B, SECRET = ("ConfigMap/x/a", "ConfigMap/x/b", "Secret/x/s")
ONE_WAVE: Places = {name: {("app", "Sync", 0)} for name in (A, B, SECRET)}
TWO_WAVES: Places = {A: {("app", "Sync", 0)}, B: {("app", "Sync", 1)}}


def test_only_objects_of_one_kind_in_one_wave_may_change_places() -> None:
    assert _ordered("create", ONE_WAVE, B, A) == _ordered("create", ONE_WAVE, A, B)
    assert _ordered("create", TWO_WAVES, B, A) != _ordered("create", TWO_WAVES, A, B)
    assert _ordered("create", ONE_WAVE, SECRET, A) != _ordered("create", ONE_WAVE, A, SECRET)


def test_only_deletions_in_one_wave_may_change_places() -> None:
    assert _ordered("delete", ONE_WAVE, SECRET, A) == _ordered("delete", ONE_WAVE, A, SECRET)
    assert _ordered("delete", TWO_WAVES, B, A) != _ordered("delete", TWO_WAVES, A, B)


def test_an_object_is_deleted_again_only_if_it_was_created_again() -> None:
    once, created = ("delete", A, "deleting", ""), ("create", A, "created", "")
    gone = ("delete", A, "refused", 'configmaps "a" not found')
    assert goldencases.ordered([once, gone, created], ONE_WAVE) == [once, created]
    assert goldencases.ordered([once, created, once], ONE_WAVE) == [once, created, once]


def _ordered(verb: str, places: Places, *names: str) -> list[tuple[str, ...]]:
    return goldencases.ordered([(verb, name, "changed", "") for name in names], places)
