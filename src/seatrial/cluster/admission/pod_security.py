"""PodSecurity: the levels in a namespace's labels. Refuses pods, and warns of workloads whose pods would be refused.

From k8s.io/pod-security-admission (api, admission) of 1.34.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from seatrial.cluster.admission.pod_checks import Violation, violations
from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.cluster.refusal import invalid
from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
LATEST = "latest"
PODS_CHECKED_MAX = 3000

# The path of each kind's pod template.
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

_VERSION = lazy_re.compile(r"v1\.(0|[1-9][0-9]*)")


class LevelVersion(Struct, frozen=True):
    """A level of one version: `restricted:v1.30`."""

    level: str = "privileged"
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations_of(self, pod: Body, minor: int) -> list[Violation]:
        """`latest` is the newest version that this API server knows."""
        wanted = minor if self.version == LATEST else min(minor, int(self.version.removeprefix("v1.")))
        return list(violations(pod, self.level, wanted))


class NamespaceLevels(Struct, frozen=True):
    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


def check_pod(request: AdmissionRequest, world: World) -> None:
    """Refuse a pod that violates the enforced level; warn if it violates the warn level."""
    policy = _policy_of(request, world)
    if policy is None or not _is_significant(request):
        return
    found = policy.enforce.violations_of(request.body, request.minor)
    if found:
        raise request.refusal(f'violates PodSecurity "{policy.enforce}": {_listed(found)}', by="pod-security")
    _warn(request, policy, request.body)


def check_template(request: AdmissionRequest, world: World) -> None:
    """Warn of a workload whose pods would violate the level. The workload itself is admitted."""
    policy = _policy_of(request, world)
    template = dig(request.body, *TEMPLATES[request.group_kind])
    if policy is not None and isinstance(template, dict):
        _warn(request, policy, template)


def check_namespace(request: AdmissionRequest, world: World) -> None:
    """Labels must be valid. Warn of existing pods that violate the new level."""
    problems = list(_faults(labels_of(request.body)))
    before = labels_of(request.old or {})
    if problems and (request.old is None or problems != list(_faults(before))):
        raise invalid("Namespace", "", request.ref.name, problems)
    old, new = _policy(before).enforce, _policy(labels_of(request.body)).enforce
    if request.old is None or _is_milder(new, old):
        return
    for message in _existing(request, new, world):
        request.warn(message)


def _policy_of(request: AdmissionRequest, world: World) -> NamespaceLevels | None:
    """None if the namespace has no such labels."""
    namespace = world.get(Ref("Namespace", "", request.namespace))
    labels = labels_of(namespace or {})
    if not any(label.startswith(PREFIX) for label in labels):
        return None
    return _policy(labels)


def _policy(labels: dict[str, str]) -> NamespaceLevels:
    """An invalid enforce level means restricted; an invalid warn level means privileged."""
    enforce = LevelVersion(_level(labels, "enforce", "restricted"), _version(labels, "enforce"))
    warn = LevelVersion(_level(labels, "warn", "privileged"), _version(labels, "warn"))
    stated = labels.get(f"{PREFIX}enforce") in LEVELS
    if stated and f"{PREFIX}warn" not in labels and LEVELS.index(enforce.level) > LEVELS.index(warn.level):
        version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
        warn = LevelVersion(enforce.level, version)
    return NamespaceLevels(enforce, warn)


def _level(labels: dict[str, str], mode: str, otherwise: str) -> str:
    found = labels.get(PREFIX + mode, "privileged")
    return found if found in LEVELS else otherwise


def _version(labels: dict[str, str], mode: str) -> str:
    found = labels.get(f"{PREFIX}{mode}-version", LATEST)
    return found if _VERSION.fullmatch(found) else LATEST


def _faults(labels: dict[str, str]) -> Iterator[str]:
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in LEVELS:
            yield f'metadata.labels[{PREFIX}{mode}]: Invalid value: "{level}": must be one of {", ".join(LEVELS)}'
        if version is not None and version != LATEST and not _VERSION.fullmatch(version):
            message = 'must be "latest" or "v1.x"'
            yield f'metadata.labels[{PREFIX}{mode}-version]: Invalid value: "{version}": {message}'


def _is_significant(request: AdmissionRequest) -> bool:
    """For an existing pod, only changes of its images matter."""
    return request.old is None or _images(request.body) != _images(request.old)


def _images(pod: Body) -> list[object]:
    return [[c.get("image") for c in listed(pod, "spec", field)] for field in ("initContainers", "containers")]


def _warn(request: AdmissionRequest, policy: NamespaceLevels, pod: Body) -> None:
    if found := policy.warn.violations_of(pod, request.minor):
        request.warn(f'would violate PodSecurity "{policy.warn}": {_listed(found)}')


def _listed(found: list[Violation]) -> str:
    return ", ".join(f"{v.reason} ({v.detail})" if v.detail else v.reason for v in found)


def _is_milder(new: LevelVersion, old: LevelVersion) -> bool:
    if new == old or new.level == "privileged":
        return True
    return new.version == old.version and LEVELS.index(new.level) <= LEVELS.index(old.level)


def _existing(request: AdmissionRequest, level: LevelVersion, world: World) -> Iterator[str]:
    """Each kind of violation, with the first pod by name and how many other pods have it."""
    pods = world.all("Pod", request.ref.name)
    checked = sorted(pods, key=lambda pod: controller_of(pod) is not None)[:PODS_CHECKED_MAX]
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    for pod in checked:
        if found := level.violations_of(pod, request.minor):
            message = ", ".join(violation.reason for violation in found)
            first[message] = min(first.get(message, name_of(pod)), name_of(pod))
            count[message] += 1
    if len(checked) < len(pods):
        message = f"first {len(checked)} of {len(pods)} existing pods"
        yield f"new PodSecurity enforce level only checked against the {message}"
    if count:
        yield f'existing pods in namespace "{request.ref.name}" violate the new PodSecurity enforce level "{level}"'
    yield from sorted(f"{first[message]}{_others(number - 1)}: {message}" for message, number in count.items())


def _others(number: int) -> str:
    return {0: "", 1: " (and 1 other pod)"}.get(number, f" (and {number} other pods)")
