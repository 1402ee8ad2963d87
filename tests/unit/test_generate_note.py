"""Notes: which sentences are understood, and what is held against them."""

from __future__ import annotations

import pytest

from seatrial.generate.note.checking import judged
from seatrial.generate.note.facts import Fact, Facts
from seatrial.generate.note.writing import note
from seatrial.model.resource import Ref

FACTS = Facts(
    "portal",
    "helm",
    "Helm",
    (
        Fact(Ref("Namespace", "", "shop"), "pre-install", -10, True, ("before-hook-creation",), 1, "deleted", ""),
        Fact(Ref("Secret", "shop", "token"), "regular", order=2, upgraded="kept", removed="deleted"),
        Fact(Ref("Role", "shop", "run", "rbac.authorization.k8s.io"), "regular", order=3, upgraded="kept"),
        Fact(
            Ref("ExternalSecret", "shop", "token", "external-secrets.io"),
            "post-install",
            5,
            True,
            ("before-hook-creation",),
            4,
            "recreated",
            "left",
        ),
    ),
    again="upgrade",
    removal="uninstall",
)


def said(text: str, facts: Facts = FACTS) -> list[str]:
    return [one.instead or "so" for one in judged(text, facts)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Tenant namespaces are created via Helm pre-install hooks with weight `-10`.",
        "1. Namespaces exist (pre-install, weight -10)",
        "- **Weight 5 (post-install)**: ExternalSecrets that depend on namespaces",
        "RBAC is created after the namespaces exist.",
        "External secrets are recreated by every upgrade.",
        "ExternalSecrets stay after helm uninstall.",
        "Hooks of the same weight run one after the other.",
        "All hooks use `before-hook-creation`.",
        "| Object | Phase | Weight |\n|---|---|---|\n| `ExternalSecret/shop/token` | post-install | 5 |",
    ],
)
def test_true_statements(sentence: str) -> None:
    assert said(sentence) == ["so"]


@pytest.mark.parametrize(
    ("sentence", "instead"),
    [
        ("Namespaces are post-install hooks.", "Namespace/shop is pre-install, weight -10"),
        ("ExternalSecrets have the hook weight 1.", "ExternalSecret/shop/token is post-install, weight 5"),
        ("Secrets are created in the post-install phase.", "Secret/shop/token is a regular resource"),
        (
            "ExternalSecrets are created before the Secret.",
            "Secret/shop/token is created before ExternalSecret/shop/token",
        ),
        (
            "ExternalSecrets now persist across Helm operations.",
            "ExternalSecret/shop/token is deleted and created again",
        ),
        (
            "Hooks without explicit weights may run in any order or in parallel.",
            "Helm runs the hooks of an event one at",
        ),
        ("Hooks that have no hook-delete-policy remain.", "a hook without a delete policy has the default"),
        ("All hooks use hook-succeeded.", "Namespace/shop (and 1 more) has before-hook-creation"),
    ],
)
def test_false_statements(sentence: str, instead: str) -> None:
    assert [text[: len(instead)] for text in said(sentence)] == [instead]


@pytest.mark.parametrize(
    "sentence",
    [
        "Previously, namespaces were created in the post-install phase.",
        "Namespaces should be post-install hooks.",
        "ExternalSecrets (main install) → need → Namespaces (pre-install hooks)",
        "Deployments are post-install hooks.",
        "```yaml\nhelm.sh/hook-weight: 7 # Namespace\n```",
        "This document describes the installation.",
    ],
)
def test_what_states_nothing_about_the_release(sentence: str) -> None:
    assert said(sentence) == []


def test_lines_below_a_phase_belong_to_it() -> None:
    box = "│ POST-INSTALL PHASE │\n│ Weight: 5 │\n│ • ExternalSecrets │\n│ • Roles (for the tenants) │"
    assert said(box) == ["so", "Role/shop/run is a regular resource"]
    assert said("## Pre-install, weight -10\n- Namespace\n\n## Others\n- Secret") == ["so"]


def test_a_generated_note_is_so() -> None:
    found = said(note(FACTS))
    assert set(found) == {"so"}
    assert len(found) >= 8


def test_waves_of_argo_cd() -> None:
    facts = Facts(
        "portal", "argocd", "Argo CD", (Fact(Ref("Job", "shop", "load"), "Sync", 3, order=1),), "sync", "delete"
    )
    assert said("The Job is in wave 3.", facts) == ["so"]
    assert said("The Job is a PreSync hook in wave 2.", facts) == ["Job/shop/load is Sync, wave 3"]
    assert said("Resources with the same weight run in parallel.", facts) == []
