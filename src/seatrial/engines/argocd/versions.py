"""Argo CD versions: which can be requested, and since when each behaviour exists.

Read from the tags v2.8 to v3.5 of argoproj/argo-cd, and gitops-engine where that was a module of its own.
"""

from __future__ import annotations

from typing import Literal

KNOWN = (*((2, minor) for minor in range(8, 15)), *((3, minor) for minor in range(6)))
NEWEST = KNOWN[-1]

Behaviour = Literal[
    "PostDelete hooks",
    "prunes in reversed waves and waits for what it pruned",
    "Force as annotation",
    "Prune=confirm",
    "annotation tracking",
    "exclusions in argocd-cm",
    "hook finalizer",
    "SkipDryRunOnMissingResource of the app",
    "namespace before the dry run",
    "strips stale hook finalizers",
    "PreDelete hooks",
    "options of the live object",
    "Prune option of the app",
    "lists of delete hooks",
    "missing objects are errors",
    "waits for siblings of a failed apply",
    "hooks first in messages",
    "failed delete hooks are retried",
    "reasons of invalid tasks",
    "rollouts retry",
    "deletionOrder of sets",
    "rollouts heed revisions alone",
    "globs of value files",
    "ignore-healthcheck",
    "automated.enabled",
    "Missing where all are",
    "kubectl moves owners",
    "ClientSideApplyMigration",
]

SINCE: dict[Behaviour, tuple[int, int]] = {
    "PostDelete hooks": (2, 10),
    "kubectl moves owners": (2, 10),
    "prunes in reversed waves and waits for what it pruned": (2, 11),
    "Force as annotation": (2, 12),
    "Prune=confirm": (2, 14),
    "ignore-healthcheck": (2, 14),
    "annotation tracking": (3, 0),
    "exclusions in argocd-cm": (3, 0),
    "hook finalizer": (3, 0),
    "SkipDryRunOnMissingResource of the app": (3, 1),
    "namespace before the dry run": (3, 1),
    "rollouts retry": (3, 1),
    "automated.enabled": (3, 1),
    "ClientSideApplyMigration": (3, 1),
    "strips stale hook finalizers": (3, 2),
    "deletionOrder of sets": (3, 2),
    "rollouts heed revisions alone": (3, 3),
    "PreDelete hooks": (3, 3),
    "options of the live object": (3, 3),
    "failed delete hooks are retried": (3, 3),
    "Prune option of the app": (3, 4),
    "lists of delete hooks": (3, 4),
    "globs of value files": (3, 4),
    "missing objects are errors": (3, 4),
    "Missing where all are": (3, 4),
    "waits for siblings of a failed apply": (3, 4),
    "hooks first in messages": (3, 4),
    "reasons of invalid tasks": (3, 5),
}


def has(version: tuple[int, int], behaviour: Behaviour) -> bool:
    return version >= SINCE[behaviour]


def parse(text: str) -> tuple[int, int]:
    """`3.5` as numbers; patch releases are not distinguished."""
    major, minor, *_ = (*text.removeprefix("v").split("."), "0") if text else NEWEST
    return int(major), int(minor)


def shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
