"""Names that Pulumi generates, numbered: a real one takes them at random, so two rehearsals have unlike ones."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.resource import Ref, annotations_of, labels_of
from seatrial.model.timeline import Rehearsal

AUTO_NAMED = "pulumi.com/autonamed"
TEMPLATE_HASH = "pod-template-hash"
SUFFIX = lazy_re.compile(r"(.*-)[0-9a-f]{8}")
T = TypeVar("T")


def numbered(rehearsal: Rehearsal) -> tuple[Rehearsal, dict[str, str]]:
    """A rehearsal with names of its own for all objects, and what became of each generated one."""
    names = _names(rehearsal)
    if not names:
        return rehearsal, names
    timeline = tuple(
        replace(
            event,
            object=renamed(event.object, names),
            message=_in(event.message, names),
            after=_in(event.after, names),
        )
        for event in rehearsal.timeline
    )
    steps = tuple(replace(step, error=_in(step.error, names)) for step in rehearsal.steps)
    return replace(rehearsal, timeline=timeline, steps=steps), names


def renamed(ref: Ref, names: dict[str, str]) -> Ref:
    return Ref(ref.kind, ref.namespace, _in(ref.name, names), ref.group)


def _names(rehearsal: Rehearsal) -> dict[str, str]:
    """Generated names by when they first appear: `settings-1`, and `settings-2` for the one that replaces it."""
    found: dict[str, str] = {}
    for event in rehearsal.timeline:
        name = event.object.name
        generated = SUFFIX.fullmatch(name) if annotations_of(event.after or {}).get(AUTO_NAMED) == "true" else None
        if generated and name not in found:
            found[name] = f"{generated[1]}{1 + sum(other.startswith(generated[1]) for other in found)}"
    return found | _of_templates(rehearsal) if found else found


def _of_templates(rehearsal: Rehearsal) -> dict[str, str]:
    """Names with the hash of a pod template, which may contain generated names, and those of its pods."""
    hashes: dict[str, str] = {}
    pods: dict[str, str] = {}
    for event in rehearsal.timeline:
        if (found := labels_of(event.after or {}).get(TEMPLATE_HASH)) and event.object.kind in ("ReplicaSet", "Pod"):
            number = hashes.setdefault(found, f"hash-{len(hashes) + 1}")
            if event.object.kind == "Pod":
                pods.setdefault(event.object.name, f"pod-{len(pods) + 1}-of-{number}")
    return hashes | pods


def _in(value: T, names: dict[str, str]) -> T:
    """A value in which every generated name is replaced, wherever it stands in a text."""
    text = msgspec.json.encode(value).decode()
    for name, other in sorted(names.items(), key=lambda one: -len(one[0])):  # A pod has the hash in its name.
        text = text.replace(name, other)
    result: T = msgspec.json.decode(text)
    return result
