"""What Flux is asked to keep in the cluster, and what its controllers remember. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from seatrial.engines.script import Target
from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.resource import Body, Ref
from seatrial.readiness.flux import HealthCheck

KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"
HELM_GROUP = "helm.toolkit.fluxcd.io"
SOURCE_GROUP = "source.toolkit.fluxcd.io"


class Ignored(Struct, frozen=True):
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
    targets: tuple[Target, ...] = ()
    depends_on: tuple[Ref, ...] = ()
    wait: bool = False
    health_checks: tuple[Ref, ...] = ()
    prune: bool = True
    """Which the API requires to be said."""
    force: bool = False
    ignored: tuple[Ignored, ...] = ()
    """Fields that are left to others once an object is there."""
    suspended: bool = False
    deletion_policy: str = "MirrorPrune"
    timeout: str = ""
    assumed: bool = False
    """Whether its source is not at hand: it is taken to become Ready."""
    error: str = ""
    """Why its path could not be built."""
    invalid: str = ""
    """Why it is stalled before anything else: an expression that Flux cannot read."""
    ready_exprs: Mapping[Ref, str] = {}
    """What must be true of dependencies, in CEL, in place of their being Ready."""
    health: tuple[HealthCheck, ...] = ()
    declared: Body = {}

    @property
    def ref(self) -> Ref:
        return Ref("Kustomization", self.namespace, self.name, KUSTOMIZE_GROUP)


class Policy(Struct, frozen=True):
    """`spec.install`, `spec.upgrade` or `spec.uninstall` of a HelmRelease."""

    retries: int = 0
    """Of its remediation; below 0 there is no end."""
    remediates_last: bool = False
    strategy: str = "rollback"
    """What remedies a failed upgrade: rollback or uninstall."""
    retries_on_failure: bool = False
    """`strategy.name: RetryOnFailure`: no remediation, and no end either."""
    crds: str = "Create"
    flags: tuple[str, ...] = ()
    """What Helm is told beside, in the words of its flags."""
    waits: bool = True
    waits_for_jobs: bool = True
    server_side: bool = True
    """Whether the server merges; what Helm is forced to replace counts only where it does not."""
    takes_ownership: bool = True
    """Of what is there already, whoever made it."""
    ignores_tests: bool = False
    """Whether tests that fail are no failure of the act."""

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
    chart_name: str = ""
    """`web@1.0.0`"""
    values: Body = {}
    targets: tuple[Target, ...] = ()
    """The objects that are no hooks."""
    crds: tuple[Target, ...] = ()
    hooks: tuple[Target, ...] = ()
    runs_post_hooks: bool = False
    depends_on: tuple[Ref, ...] = ()
    ready_exprs: Mapping[Ref, str] = {}
    health: tuple[HealthCheck, ...] = ()
    install: Policy = Policy()
    upgrade: Policy = Policy()
    uninstall: Policy = Policy()
    suspended: bool = False
    tests: bool = False
    """Whether it is tested after each act."""
    needs_tests: bool = True
    """Whether it is not Ready where its tests fail."""
    drift: str = "disabled"
    """What is done about it: disabled, warn or enabled."""
    drift_ignored: tuple[Ignored, ...] = ()
    timeout: str = "5m0s"
    assumed: bool = False
    error: str = ""
    invalid: str = ""
    declared: Body = {}

    @property
    def ref(self) -> Ref:
        return Ref("HelmRelease", self.namespace, self.name, HELM_GROUP)

    @property
    def everything(self) -> tuple[Target, ...]:
        return (*self.crds, *self.targets)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(target.ref for target in self.targets)


class Fleet(Struct, frozen=True):
    """What somebody applies, and all Kustomizations and HelmReleases that come of it."""

    roots: tuple[Target, ...]
    kustomizations: Mapping[Ref, Kustomization] = {}
    releases: Mapping[Ref, HelmRelease] = {}

    def as_another_kind(self, ref: Ref) -> Ref | None:
        """What has this name and is not what is looked for: a HelmRelease for a Kustomization, or the other way."""
        others = (*self.kustomizations, *self.releases)
        return next((r for r in others if r.name == ref.name and r.kind != ref.kind), None)


class Good(Struct, frozen=True):
    """A revision that can be rolled back to."""

    revision: int
    chart: str


class Deployed(Struct, frozen=True):
    """What helm-controller knows of a release: what it last tried, and how often that failed."""

    config: bytes = b""
    action: str = ""
    install_failures: int = 0
    upgrade_failures: int = 0
    is_there: bool = False
    is_in_sync: bool = False
    good: Good | None = None
    stalled: str = ""
    """Why nothing more is tried."""
    failed_tests: str = ""
    """What keeps a release that is in sync from being Ready."""
    test_failure: Failure = NO_FAILURE

    def failures(self) -> int:
        return self.install_failures if self.action == "install" else self.upgrade_failures


class Memory:
    """What Flux remembers in the status of its objects from one step to the next."""

    def __init__(self) -> None:
        self.inventory: dict[Ref, tuple[Target, ...]] = {}
        self.deployed: dict[Ref, Deployed] = {}
        self.known = Fleet(())
        """All that there was in the last sync: what is pruned since is no longer among what comes of the input."""
        self.ready: dict[Ref, bool] = {}
        """Whether each has a Ready condition, and which; without one it is in progress."""
