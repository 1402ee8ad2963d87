"""How Argo CD reads annotations: the table of `argocd.md`, row by row."""

from __future__ import annotations

import pytest

from seatrial.helm import argocd_hooks
from seatrial.model.resource import Body

HELM, ARGO = "helm.sh/hook", "argocd.argoproj.io/hook"
PRE, POST = ("PreSync",), ("PostSync",)


def test_a_regular_resource_is_in_the_sync_phase() -> None:
    assert argocd_hooks.phases_of(_annotated({})) == ("Sync",)


@pytest.mark.parametrize(
    ("annotations", "phases"),
    [
        ({HELM: "pre-install"}, PRE),
        ({HELM: "pre-upgrade"}, PRE),
        ({HELM: "pre-install,pre-upgrade"}, PRE),
        ({HELM: "post-install, post-upgrade"}, POST),
        ({HELM: "pre-install,test"}, PRE),
        ({HELM: "post-install,post-delete"}, POST),
        ({HELM: "pre-install,post-install"}, (*PRE, *POST)),
        ({ARGO: "Sync"}, ("Sync",)),
        ({ARGO: "PreSync,PostSync"}, (*PRE, *POST)),
        ({ARGO: "Skip,PreSync"}, PRE),
        ({ARGO: "SyncFail", HELM: "pre-install"}, ("SyncFail",)),
        ({ARGO: "presync", HELM: "pre-install"}, PRE),
        ({ARGO: "PostDelete", HELM: "pre-install"}, PRE),
    ],
)
def test_phases_of_hooks(annotations: dict[str, str], phases: tuple[str, ...]) -> None:
    body = _annotated(annotations)
    assert argocd_hooks.is_hook(body)
    assert argocd_hooks.phases_of(body) == phases


@pytest.mark.parametrize(
    "annotations",
    [
        {HELM: "test"},
        {HELM: "pre-rollback"},
        {HELM: "crd-install,pre-delete"},
        {HELM: "PRE-INSTALL"},
        {ARGO: "presync"},
    ],
)
def test_hooks_without_a_known_phase_are_ignored(annotations: dict[str, str]) -> None:
    body = _annotated(annotations)
    assert argocd_hooks.is_ignored(body)
    assert argocd_hooks.phases_of(body) == ()


def test_a_skipped_object_is_not_a_hook_and_has_no_phase() -> None:
    body = _annotated({ARGO: "Skip"})
    assert (argocd_hooks.is_hook(body), argocd_hooks.is_ignored(body), argocd_hooks.phases_of(body)) == (
        False,
        False,
        (),
    )


def test_crd_install_is_not_a_hook() -> None:
    assert argocd_hooks.phases_of(_annotated({HELM: "crd-install"})) == ("Sync",)


@pytest.mark.parametrize(
    ("annotations", "wave"),
    [
        ({}, 0),
        ({"argocd.argoproj.io/sync-wave": "-5"}, -5),
        ({"argocd.argoproj.io/sync-wave": "+5"}, 5),
        ({"argocd.argoproj.io/sync-wave": " 5"}, 0),
        ({"argocd.argoproj.io/sync-wave": "early"}, 0),
        ({"helm.sh/hook-weight": "5"}, 5),
        ({"argocd.argoproj.io/sync-wave": "early", "helm.sh/hook-weight": "5"}, 5),
        ({"argocd.argoproj.io/sync-wave": "0", "helm.sh/hook-weight": "5"}, 0),
    ],
)
def test_the_wave_of_any_object(annotations: dict[str, str], wave: int) -> None:
    assert argocd_hooks.wave_of(_annotated(annotations)) == wave


def test_an_annotation_that_is_not_a_string_hides_all_others() -> None:
    body: Body = _annotated({})
    body["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": 5, ARGO: "PreSync"}
    assert (argocd_hooks.wave_of(body), argocd_hooks.phases_of(body)) == (0, ("Sync",))


@pytest.mark.parametrize(
    ("annotations", "policies"),
    [
        ({}, ("BeforeHookCreation",)),
        ({"helm.sh/hook-delete-policy": "hook-succeeded"}, ("HookSucceeded",)),
        ({"helm.sh/hook-delete-policy": "never"}, ("BeforeHookCreation",)),
        (
            {"argocd.argoproj.io/hook-delete-policy": "HookFailed", "helm.sh/hook-delete-policy": "hook-succeeded"},
            ("HookFailed", "HookSucceeded"),
        ),
    ],
)
def test_delete_policies_of_argocd_and_helm_both_count(annotations: dict[str, str], policies: tuple[str, ...]) -> None:
    assert argocd_hooks.delete_policies(_annotated(annotations)) == policies


def test_before_3_4_a_delete_hook_had_no_other_events() -> None:
    body = _annotated({HELM: "post-install,post-delete"})
    assert argocd_hooks.runs_on_deletion(body, "PostDelete")
    assert not argocd_hooks.runs_on_deletion(body, "PostDelete", whole_value=True)


def _annotated(annotations: dict[str, str]) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": dict(annotations)}}
