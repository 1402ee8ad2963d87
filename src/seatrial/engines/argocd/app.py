"""What Argo CD syncs, and how it is configured. Data only."""

from __future__ import annotations

from msgspec import Struct

from seatrial.engines.argocd.projects import IN_CLUSTER, Destination, Project
from seatrial.engines.script import DescribedObject
from seatrial.helm.argocd_hooks import is_hook, is_ignored, phases_of, wave_of
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Body, Ref
from seatrial.readiness.argocd import Scripts

API_VERSION = f"{GROUP}/v1alpha1"
HOME = "argocd"
"""The namespace that Argo CD itself is usually installed into."""
PROGRAM = "argocd-application-controller"
"""Only what Argo CD applies has its own field manager. For other writes the API server takes the program's name."""
CASCADE = "resources-finalizer.argocd.argoproj.io"
AUTOMATED_RETRIES = 5
"""The default retries of an automated sync: `autoSync` in controller/appcontroller.go."""


class Marks(Struct, frozen=True):
    """An object with what Argo CD reads in its annotations, read once."""

    hook: bool
    ignored: bool
    phases: tuple[str, ...]
    wave: int


def marks_of(target: DescribedObject) -> Marks:
    return Marks(is_hook(target.body), is_ignored(target.body), phases_of(target.body), wave_of(target.body))


class App(Struct, frozen=True):
    """One Application, with its source rendered."""

    name: str
    destination: str
    """The namespace of objects without one."""
    targets: tuple[DescribedObject, ...] = ()
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
    """Its project's permissions; None permits everything."""
    where: Destination = Destination(*IN_CLUSTER, "")
    operation: Body | None = None
    """`operation`, where the manifest has one: somebody starts a sync without `argocd app sync`."""
    forgets: bool = False
    """Whether that manifest also clears `status.operationState`, as `argocd app sync` does."""
    assumed: bool = False
    """Whether its source was not found: it is assumed to sync successfully."""
    brings: bool = False
    """Whether a chart of it is not at hand and known to bring something."""
    error: str = ""
    """Argo CD's error if its source does not render or is not permitted."""

    @property
    def ref(self) -> Ref:
        return Ref("Application", self.namespace, self.name, GROUP)

    @property
    def instance(self) -> str:
        """The name by which its objects are tracked."""
        return self.name if self.namespace == HOME else f"{self.namespace}_{self.name}"


class Filter(Struct, frozen=True):
    """An entry of `resource.exclusions` or `resource.inclusions`; empty matches any."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()


class Settings(Struct, frozen=True):
    """`argocd-cm`, or what the operator writes from its `ArgoCD` resource."""

    version: tuple[int, int]
    scripts: Scripts = {}
    exclusions: tuple[Filter, ...] = ()
    inclusions: tuple[Filter, ...] = ()
    tracking: str = ""
    """annotation, label or annotation+label; empty is the version's default."""
    label: str = "app.kubernetes.io/instance"
    ignore_differences: tuple[Body, ...] = ()
    projects: dict[str, Project] = {}
    progressive_syncs: bool | None = None
    """Whether progressive syncs are enabled; None if unknown."""
    given: tuple[Body, ...] = ()
    """The objects that say so."""


class SyncOptions(Struct, frozen=True):
    """The options of one sync operation, beside those of its Application."""

    prune: bool = False
    selected: tuple[Ref, ...] = ()
    """A selective sync of these resources, which skips hooks."""
    skips_hooks: bool = False
    force: bool = False
    dry_run: bool = False
    options: tuple[str, ...] = ()
    retries: int = 0
    retries_given: bool = False
    """Whether a flag asks for the retries, not a policy."""
    automated: bool = False
    started: int = 0
    """The start time in seconds, which is part of generated hook names."""
