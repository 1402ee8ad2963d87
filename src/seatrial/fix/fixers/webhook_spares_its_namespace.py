"""A webhook is not called for the namespace of its own backend, nor for kube-system."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_siblings
from seatrial.fix.proposal import Fixer, Problem, Proposal
from seatrial.model.resource import Pointer, dig

NAME = "kubernetes.io/metadata.name"


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    configuration = problem.newest(ref)
    first = next(iter(problem.finding.pointers), None)
    if configuration is None or not isinstance(first, Pointer) or first.path[:1] != ("webhooks",):
        return
    index = first.path[1]
    webhook = dig(configuration.body, "webhooks", index)
    namespace = str(dig(webhook, "clientConfig", "service", "namespace") or "")
    if not namespace or "namespaceSelector" in webhook:
        return
    release = problem.release_of(configuration)
    own = "{{ .Release.Namespace }}" if release.chart and namespace == release.namespace else namespace
    lines = [
        "namespaceSelector:",
        "  matchExpressions:",
        f"    - key: {NAME}",
        "      operator: NotIn",
        f"      values: [{own}, kube-system]",
    ]
    yield Proposal(
        f"exclude the namespace of its backend from {ref}",
        with_siblings(configuration, ("webhooks", index, "name"), lines),
        why_unsafe=f"objects in {namespace} and kube-system are no longer checked",
    )


FIXER = Fixer(("webhook-fail-policy-self-block",), propose)
