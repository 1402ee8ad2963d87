"""What an engine does in one step: a closed union. `play` decides once how each is run. Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from seatrial.engines.postrendered import PostRendered
from seatrial.model.program import Program
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref
from seatrial.sandbox.client import Binary

if TYPE_CHECKING:  # Loading a folder loads its engine, and a check needs one or two of them.
    from seatrial.engines.argocd.app import Settings
    from seatrial.engines.argocd.fleet import Applications
    from seatrial.engines.flux.objects import FluxObjects


class HelmAct(Struct, frozen=True):
    """One act of Helm on one release, for a step or for an engine that has a Helm in it.

    As a line of a script: `message` of the answer is Helm's error, `stuck` where it would wait forever.
    """

    action: str
    release: str
    namespace: str
    chart: Callable[[], Any] | None = None
    """Loads the chart. Helm takes a new one for every act: rendering drops what the values disable, for good."""
    values: Body = {}
    flags: tuple[str, ...] = ()
    revision: int = 0
    """For `rollback`; 0 is the previous one."""
    archive: bytes = b""
    """The chart as a helm binary takes it."""
    defaults: Body = {}
    """The values of the chart itself, as Helm records them."""
    asks: bool = False
    """Whether its templates ask the cluster, the revision or chance."""
    binary: Binary | None = None
    """The helm that runs in place of the SDK."""
    simulated: bool = False
    """Whether Helm 3 is simulated in place of a real Helm."""
    render: Callable[[list[str]], Release] | None = None
    """Renders the chart where the cluster serves more API versions than was planned with. The SDK needs none."""
    looks_up: HelmAct | None = None
    """How the real Helm renders for a simulated one a chart that uses `lookup`."""
    as_version: tuple[int, ...] = ()
    """The version that is asked for, if another one is rehearsed in its place."""
    manager: str = ""
    """The field manager, if it is not Helm's own."""
    adds: PostRendered = PostRendered()


class ProgramFolder(Struct, frozen=True):
    """A folder with the executables of an engine, and its version."""

    given: str
    """As the user gives it: `argocd=DIR`."""
    version: str
    found: dict[str, str]
    """The executables that it needs, by name: in the folder, or on the PATH."""


class Manifest(Struct, frozen=True):
    """An object, and the file that it was read from; none where it is only named."""

    body: Body
    file: str = "STDIN"


class Apply(Struct, frozen=True):
    """Objects to apply or delete, in the order of their files."""

    objects: tuple[Manifest, ...]


class Sync(Struct, frozen=True):
    """Applications to sync or delete, and how Argo CD is set up."""

    fleet: Applications
    settings: Settings


class Reconcile(Struct, frozen=True):
    """What Flux keeps in the cluster."""

    fleet: FluxObjects


class Up(Struct, frozen=True):
    """A Pulumi program to bring up, refresh or destroy."""

    program: Program


class Invocation(Struct, frozen=True):
    """A command of the user's own binary of an engine, which runs in place of the simulated one."""

    binary: Binary
    action: str
    arguments: tuple[str, ...]
    namespace: str
    """The default one of its kubeconfig."""
    stdin: str = ""
    reads: tuple[str, ...] = ()
    """Files and folders of the user that it reads."""
    patience: str = ""
    """How long it waits, in words."""
    folders: tuple[str, ...] = ()
    """Where it finds other programs that it runs."""
    refs: dict[str, Ref] = {}
    """The objects that it deploys, by the names that the engine has for them."""
    kept: bytes = b""
    """What the engine remembers outside of the cluster, as the step before left it."""


class Repository(Struct, frozen=True):
    """A repository that the user's controllers fetch from, with the files that the simulated ones read."""

    url: str
    instead_of: str = ""
    """The URL of the user, where it is none that controllers in a sandbox can fetch from."""
    files: dict[str, bytes] = {}
    """The files of a git repository."""
    revisions: tuple[str, ...] = ()
    """What sources call its commit, beside HEAD."""
    charts: dict[tuple[str, str], bytes] = {}
    """The archives of a repository of Helm charts, by name and version."""


class RealControllers(Struct, frozen=True):
    """The user's own controllers of an engine, which run in place of the simulated ones."""

    programs: ProgramFolder
    action: str
    instead_of: Sync | Reconcile
    """What the simulated ones do."""
    given: tuple[Body, ...] = ()
    """The objects that the user gives to the engine, with the URLs of their sources."""
    settings: tuple[Body, ...] = ()
    """Objects of the engine itself."""
    repositories: tuple[Repository, ...] = ()
    """Those that Argo CD fetches from."""
    files: dict[str, bytes] = {}
    """Other files that the controllers need, by their path in the sandbox."""
    artifacts: dict[str, tuple[bytes, str]] = {}
    """What each source has fetched, by its object: an archive, and its revision."""
    flags: tuple[str, ...] = ()


Act = HelmAct | Invocation | RealControllers | Apply | Sync | Reconcile | Up
