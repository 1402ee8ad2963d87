"""PodSecurity: what the labels of a namespace demand of its pods. Refuses pods, warns of what would make them.

From k8s.io/pod-security-admission (api, admission) of 1.34.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from seatrial.cluster.admission.asked import Asked
from seatrial.cluster.admission.pod_checks import Violation, violations
from seatrial.cluster.refusal import invalid
from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
LATEST = "latest"
PODS_CHECKED_MAX = 3000

# Where each kind keeps the template of its pods.
TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): ("spec", "template"),
}

_is_version = re.compile(r"v1\.(0|[1-9][0-9]*)").fullmatch


class Demand(Struct, frozen=True):
    """A level of one version: `restricted:v1.30`."""

    level: str = "privileged"
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def broken(self, pod: Body, minor: int) -> list[Violation]:
        """`latest` is the newest that this API server knows."""
        wanted = minor if self.version == LATEST else min(minor, int(self.version.removeprefix("v1.")))
        return list(violations(pod, self.level, wanted))


class Policy(Struct, frozen=True):
    enforce: Demand = Demand()
    warn: Demand = Demand()


def check_pod(asked: Asked, world: World) -> None:
    """Refuse a pod that breaks what is enforced; warn where it breaks what is to be warned of."""
    policy = _policy_of(asked, world)
    if policy is None or not _is_significant(asked):
        return
    broken = policy.enforce.broken(asked.body, asked.minor)
    if broken:
        raise asked.refused(f'violates PodSecurity "{policy.enforce}": {_told(broken)}', by="pod-security")
    _warn(asked, policy, asked.body)


def check_template(asked: Asked, world: World) -> None:
    """Warn of what will not get its pods: it is taken in all the same."""
    policy = _policy_of(asked, world)
    template = dig(asked.body, *TEMPLATES[asked.of])
    if policy is not None and isinstance(template, dict):
        _warn(asked, policy, template)


def check_namespace(asked: Asked, world: World) -> None:
    """Labels must be understood; pods that are there already and break the new demand are warned of."""
    wrong = list(_faults(labels_of(asked.body)))
    before = labels_of(asked.old or {})
    if wrong and (asked.old is None or wrong != list(_faults(before))):
        raise invalid("Namespace", "", asked.ref.name, wrong)
    old, new = _policy(before).enforce, _policy(labels_of(asked.body)).enforce
    if asked.old is None or _is_milder(new, old):
        return
    for words in _existing(asked, new, world):
        asked.warn(words)


def _policy_of(asked: Asked, world: World) -> Policy | None:
    """None where nothing is demanded."""
    namespace = world.get(Ref("Namespace", "", asked.namespace))
    labels = labels_of(namespace or {})
    if not any(label.startswith(PREFIX) for label in labels):
        return None
    return _policy(labels)


def _policy(labels: dict[str, str]) -> Policy:
    """What is not understood demands the most where it is enforced, and nothing where it is only told."""
    enforce = Demand(_level(labels, "enforce", "restricted"), _version(labels, "enforce"))
    warn = Demand(_level(labels, "warn", "privileged"), _version(labels, "warn"))
    stated = labels.get(f"{PREFIX}enforce") in LEVELS
    if stated and f"{PREFIX}warn" not in labels and LEVELS.index(enforce.level) > LEVELS.index(warn.level):
        version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
        warn = Demand(enforce.level, version)
    return Policy(enforce, warn)


def _level(labels: dict[str, str], mode: str, otherwise: str) -> str:
    found = labels.get(PREFIX + mode, "privileged")
    return found if found in LEVELS else otherwise


def _version(labels: dict[str, str], mode: str) -> str:
    found = labels.get(f"{PREFIX}{mode}-version", LATEST)
    return found if _is_version(found) else LATEST


def _faults(labels: dict[str, str]) -> Iterator[str]:
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in LEVELS:
            yield f'metadata.labels[{PREFIX}{mode}]: Invalid value: "{level}": must be one of {", ".join(LEVELS)}'
        if version is not None and version != LATEST and not _is_version(version):
            words = 'must be "latest" or "v1.x"'
            yield f'metadata.labels[{PREFIX}{mode}-version]: Invalid value: "{version}": {words}'


def _is_significant(asked: Asked) -> bool:
    """Of a pod that is there, only its images can change in a way that matters."""
    return asked.old is None or _images(asked.body) != _images(asked.old)


def _images(pod: Body) -> list[object]:
    return [[c.get("image") for c in listed(pod, "spec", field)] for field in ("initContainers", "containers")]


def _warn(asked: Asked, policy: Policy, pod: Body) -> None:
    if broken := policy.warn.broken(pod, asked.minor):
        asked.warn(f'would violate PodSecurity "{policy.warn}": {_told(broken)}')


def _told(broken: list[Violation]) -> str:
    return ", ".join(f"{v.reason} ({v.detail})" if v.detail else v.reason for v in broken)


def _is_milder(new: Demand, old: Demand) -> bool:
    if new == old or new.level == "privileged":
        return True
    return new.version == old.version and LEVELS.index(new.level) <= LEVELS.index(old.level)


def _existing(asked: Asked, demand: Demand, world: World) -> Iterator[str]:
    """Each way in which pods break it, with the first pod by name and how many others do."""
    pods = world.all("Pod", asked.ref.name)
    checked = sorted(pods, key=lambda pod: controller_of(pod) is not None)[:PODS_CHECKED_MAX]
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    for pod in checked:
        if broken := demand.broken(pod, asked.minor):
            words = ", ".join(violation.reason for violation in broken)
            first[words] = min(first.get(words, name_of(pod)), name_of(pod))
            count[words] += 1
    if len(checked) < len(pods):
        words = f"first {len(checked)} of {len(pods)} existing pods"
        yield f"new PodSecurity enforce level only checked against the {words}"
    if count:
        yield f'existing pods in namespace "{asked.ref.name}" violate the new PodSecurity enforce level "{demand}"'
    yield from sorted(f"{first[words]}{_others(number - 1)}: {words}" for words, number in count.items())


def _others(number: int) -> str:
    return {0: "", 1: " (and 1 other pod)"}.get(number, f" (and {number} other pods)")
