"""How Helm reads its annotations: which objects are hooks, when they run, when they are deleted. Pure facts.

From `pkg/release/v1/util/manifest_sorter.go` and `pkg/action/hooks.go` of Helm 4.2; Helm 3 reads them alike.
"""

from __future__ import annotations

import re

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
"""What each of Helm's acts runs."""
SAYS_BEFORE: dict[str, str] = {
    "pre-install": "failed pre-install: ",
    "post-install": "failed post-install: ",
    "pre-upgrade": "pre-upgrade hooks failed: ",
    "post-upgrade": "post-upgrade hooks failed: ",
    "post-delete": "uninstallation completed with 1 error(s): ",
}
"""What Helm puts before the error of a hook, by its event."""

KNOWN_EVENTS = frozenset(event for events in EVENTS_OF.values() for event in events)
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def is_hook(body: Body) -> bool:
    return HOOK in annotations_of(body)


def events_of(body: Body) -> tuple[str, ...]:
    """The events that run this object as a hook; empty where it is a plain object of the release."""
    text = annotations_of(body).get(HOOK)
    return () if text is None else _listed(text)


def unknown_events(body: Body) -> tuple[str, ...]:
    """Events that Helm does not know; for one of them it leaves the whole object out, as hook and as plain object."""
    return tuple(event for event in events_of(body) if event not in KNOWN_EVENTS)


def weight_of(body: Body) -> int:
    """The weight as Helm reads it: what is no whole number is 0."""
    text = str(annotations_of(body).get(WEIGHT, ""))
    return int(text) if is_number(text) else 0


def is_number(weight: str) -> bool:
    return _NUMBER.fullmatch(weight) is not None


def runs_at(body: Body, action: str) -> bool:
    """Whether one of Helm's acts runs this object as a hook."""
    if unknown_events(body):
        return False
    return any(event in EVENTS_OF.get(action, ()) for event in events_of(body))


def delete_policies(body: Body) -> tuple[str, ...]:
    """When Helm deletes this hook; without the annotation, whatever has its name goes before it is made."""
    text = annotations_of(body).get(DELETE_POLICY)
    return (BEFORE_CREATION,) if text is None else _listed(text)


def _listed(text: object) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in str(text).split(","))
