"""Images of Jobs and init containers whose program is not known: it is assumed to succeed and to change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds.scripts.commands import commands_run
from seatrial.kinds.scripts.known_images import known_images
from seatrial.kinds.scripts.probes import PROBES
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.release import Case
from seatrial.model.resource import Body, dig

ENDS = {"Job": ("spec", "template", "spec"), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}
RUNS_ON = dict.fromkeys(("DaemonSet", "Deployment", "StatefulSet"), ("spec", "template", "spec"))
KNOWN = frozenset(("kubectl", "oc", *PROBES))


def unknown_images(cases: Iterable[Case]) -> Iterator[str]:
    """Each image once, in the order of the objects that run it."""
    seen: set[str] = set()
    for case in cases:
        for resource in case.given_resources():
            for image in _unknown(resource.body, resource.ref.kind):
                if image not in seen:
                    seen.add(image)
                    yield image


def _unknown(body: Body, kind: str) -> Iterator[str]:
    path = {**ENDS, **RUNS_ON}.get(kind)
    spec = dig(body, *path) if path else None
    if not isinstance(spec, dict):
        return
    read = {place for place, command in commands_run(spec, "default") if _is_known(command.words)}
    for place, container in containers_of(spec):
        image = str(container.get("image") or "")
        ends = kind in ENDS or place[0] == "initContainers"
        if ends and image and place not in read and not any(known.runs(image) for known in known_images()):
            yield image


def _is_known(words: tuple[str, ...]) -> bool:
    return bool(words) and words[0].rpartition("/")[2] in KNOWN
