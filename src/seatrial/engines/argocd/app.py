"""What Argo CD is asked to sync, and how it is set up. Data only; nobody here reads files or speaks to a cluster."""

from __future__ import annotations

from msgspec import Struct

from seatrial.engines.argocd.projects import IN_CLUSTER, Destination, Project
from seatrial.engines.script import Target
from seatrial.helm.argocd_hooks import is_hook, is_ignored, phases_of, wave_of
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Body, Ref
from seatrial.readiness.argocd import Scripts

API_VERSION = f"{GROUP}/v1alpha1"
HOME = "argocd"
"""The namespace that Argo CD itself is usually installed into."""
CASCADE = "resources-finalizer.argocd.argoproj.io"
AUTOMATED_RETRIES = 5
"""Of an automated sync that says nothing else: `autoSync` in controller/appcontroller.go."""


class Marks(Struct, frozen=True):
    """What Argo CD reads in the annotations of an object; read once, and needed at every step."""

    hook: bool
    ignored: bool
    phases: tuple[str, ...]
    wave: int


def marks_of(target: Target) -> Marks:
    return Marks(is_hook(target.body), is_ignored(target.body), phases_of(target.body), wave_of(target.body))


class App(Struct, frozen=True):
    """One Application, with its source rendered."""

    name: str
    destination: str
    """The namespace of objects that name none."""
    targets: tuple[Target, ...] = ()
    namespace: str = HOME
    options: tuple[str, ...] = ()
    """`spec.syncPolicy.syncOptions`."""
    automated: bool = False
    prune: bool = False
    self_heal: bool = False
    allow_empty: bool = False
    retries: int | None = None
    revision: str = ""
    finalizers: tuple[str, ...] = (CASCADE,)
    namespace_metadata: Body | None = None
    """`managedNamespaceMetadata`."""
    ignore_differences: tuple[Body, ...] = ()
    project: Project | None = None
    """What it may touch; None is anything."""
    where: Destination = Destination(*IN_CLUSTER, "")
    assumed: bool = False
    """Whether its source is not at hand: it is taken to sync well, whatever is in it."""
    error: str = ""
    """Why its source could not be rendered, or may not be used, in Argo CD's words."""

    @property
    def ref(self) -> Ref:
        return Ref("Application", self.namespace, self.name, GROUP)

    @property
    def instance(self) -> str:
        """The name by which its objects are tracked."""
        return self.name if self.namespace == HOME else f"{self.namespace}_{self.name}"


class Filter(Struct, frozen=True):
    """An entry of `resource.exclusions` or `resource.inclusions`; what is empty is any."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()


class Settings(Struct, frozen=True):
    """`argocd-cm`, or what an operator makes of its `ArgoCD` resource."""

    version: tuple[int, int]
    scripts: Scripts = {}
    exclusions: tuple[Filter, ...] = ()
    inclusions: tuple[Filter, ...] = ()
    tracking: str = ""
    """annotation, label or annotation+label; empty is the version's own."""
    label: str = "app.kubernetes.io/instance"
    ignore_differences: tuple[Body, ...] = ()
    projects: dict[str, Project] = {}
    progressive_syncs: bool | None = None
    """Whether sets may sync step by step; None where nothing says so."""


class Asked(Struct, frozen=True):
    """What one sync operation is asked to do, beside what its Application says."""

    prune: bool = False
    selected: tuple[Ref, ...] = ()
    """Only these; hooks are skipped then."""
    skips_hooks: bool = False
    force: bool = False
    dry_run: bool = False
    options: tuple[str, ...] = ()
    retries: int = 0
    automated: bool = False
    started: int = 0
    """When, in seconds; part of the names of hooks that have none of their own."""
