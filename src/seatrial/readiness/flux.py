"""Health checks in CEL that users of Flux write for custom resources: `spec.healthCheckExprs`.

Upstream: `runtime/cel/status_reader.go` and `status_evaluator.go` of fluxcd/pkg. Only the group of `apiVersion` counts,
and without `kind` an entry is about all kinds of its group that have none of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial import cel
from seatrial.kinds import known
from seatrial.model.resource import Body, Ref, dig, group_of, metadata

EXPRESSIONS = (("current", "Current"), ("failed", "Failed"), ("inProgress", "InProgress"))
"""In the order in which they are parsed, with Flux's names for them."""


class HealthCheck(Struct, frozen=True):
    """One entry."""

    group: str
    kind: str
    current: str
    in_progress: str = ""
    failed: str = ""


class Verdict(Struct, frozen=True):
    """A word of kstatus, and why an expression has no answer."""

    status: str
    error: str = ""


class Read(Struct, frozen=True):
    """Entries as they were read: what they check, why Flux stalls on them, and what is beyond this program."""

    checks: tuple[HealthCheck, ...] = ()
    invalid: str = ""
    beyond: tuple[str, ...] = ()
    """Kinds whose expressions are not evaluated here."""


def read(entries: Iterable[Body]) -> Read:
    """Parse all entries, as Flux does before anything else."""
    checks: dict[tuple[str, str], HealthCheck] = {}
    beyond: list[str] = []
    for index, entry in enumerate(entries):
        group, kind = group_of(str(entry.get("apiVersion") or "")), str(entry.get("kind") or "")
        named = f"{kind}.{group}" if group else kind
        if (group, kind) in checks or named in beyond:
            words = f"duplicate custom health check for GroupKind {named} at healthchecks[{index}]"
            return Read(invalid=words)
        fault = _fault(entry)
        if fault and not fault.is_ours:
            words = f"failed to create custom status evaluator for healthchecks[{index}]: {fault.words}"
            return Read(invalid=words)
        if fault:
            beyond.append(named)
            continue
        texts = (str(entry.get(field) or "") for field in ("current", "inProgress", "failed"))
        checks[group, kind] = HealthCheck(group, kind, *texts)
    return Read(tuple(checks.values()), beyond=tuple(beyond))


def is_told(group: str, kind: str) -> bool:
    """Whether somebody here writes the status of a kind."""
    return any(of == (group, kind or of[1]) and one.ready is not None for of, one in known().items())


def verdict(checks: tuple[HealthCheck, ...], ref: Ref, body: Body) -> Verdict | None:
    """What the entry about an object's kind says of it; nothing where there is none.

    Of kinds that nobody here acts on, only what somebody wrote into their status is judged.
    """
    own = [check for check in checks if check.group == ref.group and check.kind in (ref.kind, "")]
    if not own or not (body.get("status") or is_told(ref.group, ref.kind)):
        return None
    check = max(own, key=lambda check: bool(check.kind))
    observed, generation = dig(body, "status", "observedGeneration"), metadata(body).get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed != generation:
        return Verdict("InProgress")
    for text, status in ((check.in_progress, "InProgress"), (check.failed, "Failed"), (check.current, "Current")):
        answer = cel.is_true(text, body) if text else False
        if isinstance(answer, cel.Fault):
            return Verdict("Unknown", answer.words)
        if answer:
            return Verdict(status)
    return Verdict("InProgress")


def _fault(entry: Body) -> cel.Fault | None:
    if not entry.get("current"):
        return cel.Fault("expression Current not specified")
    for field, name in EXPRESSIONS:
        fault = cel.fault_of(str(entry[field])) if entry.get(field) else None
        if fault:
            return fault if fault.is_ours else cel.Fault(f"failed to parse the expression {name}: {fault.words}")
    return None
