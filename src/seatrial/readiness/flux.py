"""Health checks in CEL that Flux users write for custom resources: `spec.healthCheckExprs`.

Upstream: `runtime/cel/status_reader.go` and `status_evaluator.go` of fluxcd/pkg. Only the group of `apiVersion` counts.
An entry without `kind` applies to all kinds of its group that have no entry of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial import cel
from seatrial.kinds import known
from seatrial.model.resource import Body, Ref, dig, group_of, metadata

EXPRESSIONS = (("current", "Current"), ("failed", "Failed"), ("inProgress", "InProgress"))
"""In the order in which Flux parses them, with Flux's names."""


class HealthExpression(Struct, frozen=True):
    """One entry of `healthCheckExprs`."""

    group: str
    kind: str
    current: str
    in_progress: str = ""
    failed: str = ""


class ExpressionVerdict(Struct, frozen=True):
    """A kstatus status, or why an expression could not be evaluated."""

    status: str
    error: str = ""


class HealthChecks(Struct, frozen=True):
    """The parsed entries: the checks, the error on which Flux stalls, and the entries that cannot be evaluated here."""

    checks: tuple[HealthExpression, ...] = ()
    invalid: str = ""
    unsupported: tuple[str, ...] = ()
    """Kinds whose expressions are not evaluated here."""


def read(entries: Iterable[Body]) -> HealthChecks:
    """Parse all entries, as Flux does first."""
    checks: dict[tuple[str, str], HealthExpression] = {}
    unsupported: list[str] = []
    for index, entry in enumerate(entries):
        group, kind = group_of(str(entry.get("apiVersion") or "")), str(entry.get("kind") or "")
        named = f"{kind}.{group}" if group else kind
        if (group, kind) in checks or named in unsupported:
            error = f"duplicate custom health check for GroupKind {named} at healthchecks[{index}]"
            return HealthChecks(invalid=error)
        fault = _fault(entry)
        if fault and not fault.is_ours:
            error = f"failed to create custom status evaluator for healthchecks[{index}]: {fault.message}"
            return HealthChecks(invalid=error)
        if fault:
            unsupported.append(named)
            continue
        texts = (str(entry.get(field) or "") for field in ("current", "inProgress", "failed"))
        checks[group, kind] = HealthExpression(group, kind, *texts)
    return HealthChecks(tuple(checks.values()), unsupported=tuple(unsupported))


def is_modelled(group: str, kind: str) -> bool:
    """Whether a model in `kinds/` writes the status of a kind."""
    return any(of == (group, kind or of[1]) and one.ready is not None for of, one in known().items())


def verdict(checks: tuple[HealthExpression, ...], ref: Ref, body: Body) -> ExpressionVerdict | None:
    """The result of the health check for an object's kind; None if there is no check.

    For kinds without a model, the check is used only if the object has a status.
    """
    own = [check for check in checks if check.group == ref.group and check.kind in (ref.kind, "")]
    if not own or not (body.get("status") or is_modelled(ref.group, ref.kind)):
        return None
    check = max(own, key=lambda check: bool(check.kind))
    observed, generation = dig(body, "status", "observedGeneration"), metadata(body).get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed != generation:
        return ExpressionVerdict("InProgress")
    for text, status in ((check.in_progress, "InProgress"), (check.failed, "Failed"), (check.current, "Current")):
        answer = cel.is_true(text, body) if text else False
        if isinstance(answer, cel.CelError):
            return ExpressionVerdict("Unknown", answer.message)
        if answer:
            return ExpressionVerdict(status)
    return ExpressionVerdict("InProgress")


def _fault(entry: Body) -> cel.CelError | None:
    if not entry.get("current"):
        return cel.CelError("expression Current not specified")
    for field, name in EXPRESSIONS:
        fault = cel.fault_of(str(entry[field])) if entry.get(field) else None
        if fault:
            return fault if fault.is_ours else cel.CelError(f"failed to parse the expression {name}: {fault.message}")
    return None
