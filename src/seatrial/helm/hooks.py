"""How Helm reads its annotations: which objects are hooks, when they run, when they are deleted.

From `pkg/release/v1/util/manifest_sorter.go` and `pkg/action/hooks.go` of Helm 4.2. Helm 3 reads them the same way.
"""

from __future__ import annotations

import re

from seatrial.model import lazy_re
from seatrial.model.resource import Body, annotations_of

HOOK = "helm.sh/hook"
WEIGHT = "helm.sh/hook-weight"
DELETE_POLICY = "helm.sh/hook-delete-policy"
OUTPUT_LOG_POLICY = "helm.sh/hook-output-log-policy"
RESOURCE_POLICY = "helm.sh/resource-policy"

BEFORE_CREATION = "before-hook-creation"
SUCCEEDED = "hook-succeeded"
FAILED = "hook-failed"

EVENTS_OF: dict[str, tuple[str, ...]] = {
    "install": ("pre-install", "post-install"),
    "upgrade": ("pre-upgrade", "post-upgrade"),
    "rollback": ("pre-rollback", "post-rollback"),
    "uninstall": ("pre-delete", "post-delete"),
    "test": ("test", "test-success"),
}
"""The hook events of each Helm action."""
ERROR_PREFIX: dict[str, str] = {
    "pre-install": "failed pre-install: ",
    "post-install": "failed post-install: ",
    "pre-upgrade": "pre-upgrade hooks failed: ",
    "post-upgrade": "post-upgrade hooks failed: ",
    "post-delete": "uninstallation completed with 1 error(s): ",
}
"""The prefix of Helm's error for a failed hook, by event."""

KNOWN_EVENTS = frozenset(event for events in EVENTS_OF.values() for event in events)
_NUMBER = lazy_re.compile(r"[+-]?[0-9]+", re.ASCII)


def is_hook(body: Body) -> bool:
    return HOOK in annotations_of(body)


def events_of(body: Body) -> tuple[str, ...]:
    """The events that run this object as a hook; empty for a regular resource."""
    text = annotations_of(body).get(HOOK)
    return () if text is None else _listed(text)


def is_test(body: Body) -> bool:
    """Whether only `helm test` creates it."""
    return is_hook(body) and all(event.startswith("test") for event in events_of(body))


def unknown_events(body: Body) -> tuple[str, ...]:
    """Events that Helm does not know. An object with one is dropped: neither a hook nor a regular resource."""
    return tuple(event for event in events_of(body) if event not in KNOWN_EVENTS)


def weight_of(body: Body) -> int:
    """The weight as Helm reads it: 0 if it is not an integer."""
    text = str(annotations_of(body).get(WEIGHT, ""))
    return int(text) if is_number(text) else 0


def is_number(weight: str) -> bool:
    return _NUMBER.fullmatch(weight) is not None


def runs_at(body: Body, action: str) -> bool:
    """Whether a Helm action runs this object as a hook."""
    if unknown_events(body):
        return False
    return any(event in EVENTS_OF.get(action, ()) for event in events_of(body))


def delete_policies(body: Body) -> tuple[str, ...]:
    """When Helm deletes this hook. Default: before it is created, an object with the same name is deleted."""
    text = annotations_of(body).get(DELETE_POLICY)
    return (BEFORE_CREATION,) if text is None else _listed(text)


def _listed(text: object) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in str(text).split(","))
