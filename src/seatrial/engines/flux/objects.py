"""The Flux objects to reconcile, and what the controllers remember. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from seatrial.engines.postrendered import PostRendered
from seatrial.engines.script import DescribedObject
from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.resource import Body, Ref
from seatrial.readiness.flux import HealthExpression

KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"
HELM_GROUP = "helm.toolkit.fluxcd.io"
SOURCE_GROUP = "source.toolkit.fluxcd.io"


class IgnoredDifference(Struct, frozen=True):
    """A rule of `spec.ignore` of a Kustomization, or of `spec.driftDetection.ignore` of a HelmRelease."""

    paths: tuple[str, ...]
    """JSON pointers."""
    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    annotations: str = ""

    def matches(self, ref: Ref) -> tuple[tuple[str, str], ...]:
        """What each expression is held against."""
        own = (self.group, self.kind, self.namespace, self.name)
        return tuple(zip(own, (ref.group, ref.kind, ref.namespace, ref.name), strict=True))


class Kustomization(Struct, frozen=True):
    """One Kustomization, with its path built."""

    name: str
    namespace: str
    targets: tuple[DescribedObject, ...] = ()
    depends_on: tuple[Ref, ...] = ()
    wait: bool = False
    health_checks: tuple[Ref, ...] = ()
    prune: bool = True
    """Which the API requires to be said."""
    force: bool = False
    ignored: tuple[IgnoredDifference, ...] = ()
    """Fields that are left to others once an object is there."""
    suspended: bool = False
    deletion_policy: str = "MirrorPrune"
    timeout: str = ""
    assumed: bool = False
    """Whether its source was not found: it is assumed to become Ready."""
    error: str = ""
    """Why its path could not be built."""
    invalid: str = ""
    """Why it is stalled from the start: an expression that Flux cannot parse."""
    ready_exprs: Mapping[Ref, str] = {}
    """The CEL expressions for dependencies, instead of their Ready condition."""
    health: tuple[HealthExpression, ...] = ()
    without_namespace: frozenset[Ref] = frozenset()
    """Objects that need a namespace and have none: only kubectl takes the one of its context."""
    declared: Body = {}

    @property
    def ref(self) -> Ref:
        return Ref("Kustomization", self.namespace, self.name, KUSTOMIZE_GROUP)


class ReleasePolicy(Struct, frozen=True):
    """`spec.install`, `spec.upgrade` or `spec.uninstall` of a HelmRelease."""

    retries: int = 0
    """The retries of its remediation; below 0 is unlimited."""
    remediates_last: bool = False
    strategy: str = "rollback"
    """The remediation of a failed upgrade: rollback or uninstall."""
    retries_on_failure: bool = False
    """`strategy.name: RetryOnFailure`: no remediation, and no end either."""
    crds: str = "Create"
    flags: tuple[str, ...] = ()
    """Further Helm flags."""
    waits: bool = True
    waits_for_jobs: bool = True
    server_side: bool | None = True
    """Whether it uses server-side apply; force only counts without it. None: as the revision before did."""
    takes_ownership: bool = True
    """Whether it adopts existing objects."""
    ignores_tests: bool = False
    """Whether failed tests are ignored."""

    def is_exhausted(self, failures: int) -> bool:
        return 0 <= self.retries < failures and not self.retries_on_failure

    @property
    def is_endless(self) -> bool:
        return self.retries < 0 or self.retries_on_failure


class HelmRelease(Struct, frozen=True):
    """One HelmRelease, with its chart at hand and rendered."""

    name: str
    namespace: str
    release_name: str = ""
    target_namespace: str = ""
    chart: Callable[[], Any] | None = None
    archive: bytes = b""
    """The chart as a helm binary takes it."""
    chart_name: str = ""
    """`web@1.0.0`"""
    values: Body = {}
    adds: PostRendered = PostRendered()
    rendered_error: str = ""
    """Why post-rendering fails."""
    targets: tuple[DescribedObject, ...] = ()
    """The objects that are no hooks."""
    crds: tuple[DescribedObject, ...] = ()
    hooks: tuple[DescribedObject, ...] = ()
    runs_post_hooks: bool = False
    depends_on: tuple[Ref, ...] = ()
    ready_exprs: Mapping[Ref, str] = {}
    health: tuple[HealthExpression, ...] = ()
    install: ReleasePolicy = ReleasePolicy()
    upgrade: ReleasePolicy = ReleasePolicy()
    uninstall: ReleasePolicy = ReleasePolicy()
    rollback: ReleasePolicy = ReleasePolicy(server_side=None)
    suspended: bool = False
    tests: bool = False
    """Whether it is tested after each act."""
    needs_tests: bool = True
    """Whether it is not Ready where its tests fail."""
    drift: str = "disabled"
    """What is done about it: disabled, warn or enabled."""
    drift_ignored: tuple[IgnoredDifference, ...] = ()
    timeout: str = "5m0s"
    assumed: bool = False
    brings: bool = False
    """Whether a chart of it is not at hand and known to bring something."""
    error: str = ""
    invalid: str = ""
    declared: Body = {}

    @property
    def ref(self) -> Ref:
        return Ref("HelmRelease", self.namespace, self.name, HELM_GROUP)

    @property
    def everything(self) -> tuple[DescribedObject, ...]:
        return (*self.crds, *self.targets)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(target.ref for target in self.targets)


class FluxObjects(Struct, frozen=True):
    """The applied manifests, and all Kustomizations and HelmReleases they lead to."""

    roots: tuple[DescribedObject, ...]
    kustomizations: Mapping[Ref, Kustomization] = {}
    releases: Mapping[Ref, HelmRelease] = {}
    missing: frozenset[Ref] = frozenset()
    """Dependencies that the user says are not in the cluster."""

    def as_another_kind(self, ref: Ref) -> Ref | None:
        """Objects of the other kind with this name: a HelmRelease for a Kustomization, or the other way round."""
        others = (*self.kustomizations, *self.releases)
        return next((r for r in others if r.name == ref.name and r.kind != ref.kind), None)


class Good(Struct, frozen=True):
    """A revision that can be rolled back to."""

    revision: int
    chart: str


class ReleaseAttempts(Struct, frozen=True):
    """What helm-controller knows of a release: its last attempt, and how often it failed."""

    config: bytes = b""
    action: str = ""
    install_failures: int = 0
    upgrade_failures: int = 0
    is_there: bool = False
    is_in_sync: bool = False
    good: Good | None = None
    stalled: str = ""
    """Why it does not retry."""
    remediated: str = ""
    """What became of the rollback after the last attempt, which Ready tells instead of the attempt."""
    failed_tests: str = ""
    """What keeps a release that is in sync from being Ready."""
    test_failure: Failure = NO_FAILURE

    def failures(self) -> int:
        return self.install_failures if self.action == "install" else self.upgrade_failures


class FluxMemory:
    """What Flux remembers in the status of its objects from one step to the next."""

    def __init__(self) -> None:
        self.inventory: dict[Ref, tuple[DescribedObject, ...]] = {}
        self.deployed: dict[Ref, ReleaseAttempts] = {}
        self.known = FluxObjects(())
        """The objects of the last sync, including those that are pruned since."""
        self.ready: dict[Ref, bool] = {}
        """The Ready condition of each; without one it is in progress."""
