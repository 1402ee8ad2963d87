"""LimitRanger: default requests and limits of containers, and minimum and maximum of each.

From plugin/pkg/admission/limitranger of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from seatrial.cluster.admission.amounts import Amounts, amounts, of_pod, shown
from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.kinds import World
from seatrial.kinds.core.quantities import amount
from seatrial.model.refusal import RefusedBy
from seatrial.model.resource import Body, annotations_of, dig, listed, metadata

ANNOTATION = "kubernetes.io/limit-ranger"
SETS = (("defaultRequest", "requests", "request"), ("default", "limits", "limit"))
Problem = tuple[RefusedBy, str]
"""The violated bound, and its message."""
CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


def default(request: AdmissionRequest, world: World) -> Body:
    """The pod with default requests and limits for its containers."""
    body = request.body
    if request.operation == "CREATE":
        for limit_range in world.all("LimitRange", request.namespace):
            body = _with_defaults(body, limit_range)
    return body


def check_pod(request: AdmissionRequest, world: World) -> None:
    if request.operation == "CREATE":
        for limit_range in world.all("LimitRange", request.namespace):
            _refuse(request, _pod_problems(request.body.get("spec") or {}, limit_range))


def check_claim(request: AdmissionRequest, world: World) -> None:
    if metadata(request.old or {}).get("deletionTimestamp"):
        return
    for limit_range in world.all("LimitRange", request.namespace):
        _refuse(request, _claim_problems(amounts(dig(request.body, "spec", "resources", "requests")), limit_range))


def _refuse(request: AdmissionRequest, problems: Iterator[Problem]) -> None:
    found = list(dict.fromkeys(problems))
    if found:
        (by, first), *more = found
        raise request.refusal(f"[{', '.join(message for _, message in found)}]" if more else first, by)


def _with_defaults(pod: Body, limit_range: Body) -> Body:
    given: dict[str, Body] = {"requests": {}, "limits": {}}
    for limit in listed(limit_range, "spec", "limits"):
        if limit.get("type") == "Container":
            for source, field, _ in SETS:
                given[field].update(limit.get(source) or {})
    spec = dict(pod.get("spec") or {})
    done: list[str] = []
    for field, container_type in CONTAINERS:
        if field in spec:
            spec[field] = [_filled(container, given, container_type, done) for container in listed(spec, field)]
    if not done:
        return pod
    annotations = {**annotations_of(pod), ANNOTATION: f"LimitRanger plugin set: {'; '.join(done)}"}
    return {**pod, "metadata": {**metadata(pod), "annotations": annotations}, "spec": spec}


def _filled(container: Body, given: dict[str, Body], container_type: str, done: list[str]) -> Body:
    """The container with its defaults. Added defaults are appended to `done`."""
    resources = dict(container.get("resources") or {})
    for _, field, word in SETS:
        own = resources.get(field) or {}
        added = sorted(name for name in given[field] if name not in own)
        if added:
            resources[field] = {**own, **{name: given[field][name] for name in added}}
            done.append(f"{', '.join(added)} {word} for {container_type} {container.get('name')}")
    return {**container, "resources": resources}


def _pod_problems(spec: Body, limit_range: Body) -> Iterator[Problem]:
    containers = [*listed(spec, "containers"), *listed(spec, "initContainers")]
    for limit in listed(limit_range, "spec", "limits"):
        if limit.get("type") == "Container":
            for container in containers:
                resources = container.get("resources") or {}
                yield from _problems(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
        elif limit.get("type") == "Pod":
            yield from _problems(limit, of_pod(spec, "requests"), of_pod(spec, "limits"))


def _claim_problems(requests: Amounts, limit_range: Body) -> Iterator[Problem]:
    for limit in listed(limit_range, "spec", "limits"):
        if limit.get("type") == "PersistentVolumeClaim":
            for name, least in sorted((limit.get("min") or {}).items()):
                yield from _too_little(name, str(limit["type"]), amount(least), requests, {})
            for name, most in sorted((limit.get("max") or {}).items()):
                start = f"maximum {name} usage per {limit['type']} is {shown(name, amount(most))}"
                if name not in requests:
                    yield "limit-maximum", f"{start}.  No request is specified"
                elif requests[name] > amount(most):
                    yield "limit-maximum", f"{start}, but request is {shown(name, requests[name])}"


def _problems(limit: Body, requests: Amounts, limits: Amounts) -> Iterator[Problem]:
    kind = str(limit.get("type"))
    for name, least in sorted((limit.get("min") or {}).items()):
        yield from _too_little(name, kind, amount(least), requests, limits)
    for name, most in sorted((limit.get("max") or {}).items()):
        yield from _too_much(name, kind, amount(most), requests, limits)
    for name, ratio in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        yield from _too_far_apart(name, kind, amount(ratio), requests, limits)


def _too_little(name: str, kind: str, least: Fraction, requests: Amounts, limits: Amounts) -> Iterator[Problem]:
    start = f"minimum {name} usage per {kind} is {shown(name, least)}"
    if name not in requests:
        yield "limit-minimum", f"{start}.  No request is specified"
    elif requests[name] < least:
        yield "limit-minimum", f"{start}, but request is {shown(name, requests[name])}"
    elif limits.get(name, least) < least:
        yield "limit-minimum", f"{start}, but limit is {shown(name, limits[name])}"


def _too_much(name: str, kind: str, most: Fraction, requests: Amounts, limits: Amounts) -> Iterator[Problem]:
    start = f"maximum {name} usage per {kind} is {shown(name, most)}"
    if name not in limits:
        yield "limit-maximum", f"{start}.  No limit is specified"
    elif limits[name] > most:
        yield "limit-maximum", f"{start}, but limit is {shown(name, limits[name])}"
    elif requests.get(name, most) > most:
        yield "limit-maximum", f"{start}, but request is {shown(name, requests[name])}"


def _too_far_apart(name: str, kind: str, ratio: Fraction, requests: Amounts, limits: Amounts) -> Iterator[Problem]:
    start = f"{name} max limit to request ratio per {kind} is {shown(name, ratio)}"
    if not requests.get(name):
        yield "", f"{start}, but no request is specified or request is 0"
    elif not limits.get(name):
        yield "", f"{start}, but no limit is specified or limit is 0"
    elif limits[name] / requests[name] > ratio:
        yield "", f"{start}, but provided ratio is {float(limits[name] / requests[name]):f}"
