"""Whether the dependencies of a Kustomization or HelmRelease are ready, and the message if not.

Upstream: `checkDependencies` and `evalReadyExpr` in the controllers of kustomize-controller 1.9 and helm-controller
1.6. A `readyExpr` replaces the built-in check (the gate AdditiveCELDependencyCheck is off by default), including the
check of the revision: a dependency that was Ready before a change counts until it is reconciled again.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from seatrial import cel
from seatrial.engines.flux.objects import FluxMemory, FluxObjects, HelmRelease, Kustomization
from seatrial.model import lazy_re
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import Body, Ref, metadata

TERMINAL = "Reconciliation failed terminally due to configuration error"
VARIABLES = ("self", "dep")
STATUS = ("conditions", "observedGeneration", "history")
"""What is known here of the status of an object of Flux's own."""
_READ = lazy_re.compile(r"\b(?:self|dep)\.\??status\.\??(\w+)")


def unknown_status(expression: str) -> list[str]:
    """The status fields in an expression that are not modelled."""
    return [field for field in _READ.findall(expression) if field not in STATUS]


def invalid(name: str, expression: str) -> str:
    """Why Flux stalls on a readyExpr about this dependency, if it does."""
    fault = cel.fault_of_typed(expression, VARIABLES)
    return f"failed to evaluate dependency {name}: {fault.message}" if fault and not fault.is_ours else ""


class Dependencies(Struct, frozen=True):
    """What there is to look at when it is asked whether a dependency is ready."""

    fleet: FluxObjects
    memory: FluxMemory
    tried: Container[Ref]

    def of(self, ref: Ref) -> tuple[Ref, ...]:
        """An unknown dependency is assumed to exist, unless it is said to be missing, or another kind has its name."""
        own, fleet = self._own(ref), self.fleet
        named = own.depends_on if own else ()
        return tuple(r for r in named if self.is_known(r) or r in fleet.missing or fleet.as_another_kind(r))

    def is_known(self, ref: Ref) -> bool:
        return self._own(ref) is not None

    def unmet(self, ref: Ref) -> str:
        """The message about the first dependency that is not ready; empty if all are."""
        own = self._own(ref)
        if own is None or own.invalid:
            return ""
        return next(filter(None, (self._not_ready(own, dep) for dep in self.of(ref))), "")

    def failure(self, ref: Ref) -> Failure:
        """Why `unmet` has words: a dependency that does not exist, or one that is not ready."""
        own = self._own(ref)
        unmet = next((dep for dep in self.of(ref) if own and self._not_ready(own, dep)), None)
        if unmet is None:
            return NO_FAILURE
        return Failure(faults=(Fault("not-ready" if self.is_known(unmet) else "not-found", unmet),))

    def _not_ready(self, own: Kustomization | HelmRelease, dep: Ref) -> str:
        named = f"'{dep.namespace}/{dep.name}'"
        if not self.is_known(dep):
            return _not_found(own.ref, dep)
        expression = own.ready_exprs.get(dep)
        if expression is None:
            return "" if dep in self.tried and self.memory.ready.get(dep) else f"dependency {named} is not ready"
        answer = cel.is_true(expression, {"self": self._seen(own.ref), "dep": self._seen(dep)}, VARIABLES)
        if isinstance(answer, cel.CelError):
            return answer.message
        return "" if answer else f"dependency {named} is not ready according to readyExpr eval"

    def _seen(self, ref: Ref) -> Body:
        """An object of Flux's own as the API has it, with the status that its controller has written."""
        own = self._own(ref)
        body: Body = own.declared if own else {}
        before = self.memory.known.kustomizations.get(ref) or self.memory.known.releases.get(ref)
        changed = before is not None and before.declared.get("spec") != body.get("spec")
        generation = 2 if changed else 1
        meta = {**metadata(body), "generation": generation}
        return {**body, "metadata": meta, "status": self._status(own, generation)}

    def _status(self, own: Kustomization | HelmRelease | None, generation: int) -> Body:
        if own is None or own.ref not in self.memory.ready:
            return {"observedGeneration": -1}
        observed = generation if own.ref in self.tried else 1
        value = "True" if self.memory.ready[own.ref] else "False"
        ready = {"type": "Ready", "status": value, "observedGeneration": observed}
        status: Body = {"observedGeneration": observed, "conditions": [ready]}
        if isinstance(own, HelmRelease) and own.ref in self.memory.deployed:
            chart, _, version = own.chart_name.partition("@")
            snapshot = {"name": own.release_name, "namespace": own.target_namespace, "status": "deployed"}
            status["history"] = [{**snapshot, "chartName": chart, "chartVersion": version}]
        return status

    def _own(self, ref: Ref) -> Kustomization | HelmRelease | None:
        return self.fleet.kustomizations.get(ref) or self.fleet.releases.get(ref)


def _not_found(ref: Ref, missing: Ref) -> str:
    """kustomize-controller's words, or helm-controller's."""
    named = f"'{missing.namespace}/{missing.name}'"
    plural = "kustomizations" if missing.kind == "Kustomization" else "helmreleases"
    why = f'{plural}.{missing.group} "{missing.name}" not found'
    if ref.kind == "Kustomization":
        return f"dependency {named} not found: {why}"
    return f"unable to get {named} dependency: {why}"
