"""The resources that a Pulumi program registers, and their real dependencies. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.resource import Body, Place, Ref, name_of

KUBERNETES = "kubernetes:"
PROVIDER = "pulumi:providers:kubernetes"
STACK = "pulumi:pulumi:Stack"
CHART_V3 = "kubernetes:helm.sh/v3:Chart"
CHART_V4 = "kubernetes:helm.sh/v4:Chart"
HELM_RELEASE = "kubernetes:helm.sh/v3:Release"
LOCAL_COMPONENTS = (
    *("kubernetes:helm.sh/v2:Chart", CHART_V3),
    *("kubernetes:yaml:ConfigFile", "kubernetes:yaml:ConfigGroup", "kubernetes:kustomize:Directory"),
)
"""Components that the SDK expands in the program: never a dependency themselves."""
REMOTE_COMPONENTS = (
    *(CHART_V4, "kubernetes:yaml/v2:ConfigFile", "kubernetes:yaml/v2:ConfigGroup"),
    "kubernetes:kustomize/v2:Directory",
)
"""Components that the provider expands: a dependency on one waits for everything in it."""


class RegisteredOptions(Struct, frozen=True, omit_defaults=True):
    """Resource options that change what the engine does."""

    delete_before_replace: bool | None = None
    replace_on_changes: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    protect: bool = False
    retain_on_delete: bool = False
    create_timeout: str = ""
    update_timeout: str = ""
    delete_timeout: str = ""
    deleted_with: str = ""
    imports: str = ""
    """The id of an existing object to import."""


class Manner(Struct, frozen=True, omit_defaults=True):
    """How the provider treats a resource."""

    namespace: str = ""
    """The default namespace."""
    mutable_configs: bool = False
    """Whether the data of ConfigMaps are updated in place."""
    mutable_secrets: bool = False
    forces: bool = False
    """Whether fields of other managers are taken over."""
    upserts: bool = False
    """Whether existing objects are taken over instead of refused."""


class Guarded(Struct, frozen=True):
    """An object that a chart renders only if the cluster serves the kinds of these CRDs of the same program."""

    object: Ref
    crds: tuple[Ref, ...]


class Generated(Struct, frozen=True):
    """Fields of a Secret that differ between two renders of a chart with the same values."""

    object: Ref
    keys: tuple[str, ...]
    looked_up: bool = False
    """Whether the chart uses `lookup`: then it is assumed to read its own values back."""


class Registration(Struct, frozen=True, omit_defaults=True):
    """One request to the resource monitor, as the engine receives it."""

    urn: str
    type: str
    name: str
    custom: bool = True
    remote: bool = False
    reads: str = ""
    """The id of an object that is only read (`Service.get`); empty for created ones."""
    parent: str = ""
    inputs: Body = {}
    dependencies: tuple[str, ...] = ()
    """URNs from `dependsOn` and from inputs, after the SDK has expanded components."""
    property_dependencies: dict[str, tuple[str, ...]] = {}
    aliases: tuple[str, ...] = ()
    """URNs under which the engine may know it."""
    asked: tuple[str, ...] = ()
    """The URNs that `dependsOn` names in the program, if known."""
    options: RegisteredOptions = RegisteredOptions()
    provider: str = ""
    """The URN of its provider; empty for the default one."""
    manner: Manner = Manner()
    place: Place | None = None
    object: Body | None = None
    """The Kubernetes object of this resource."""
    ref: Ref | None = None
    contents: tuple[Body, ...] = ()
    """The rendered objects of a Release's chart, unordered: Helm orders them."""
    definitions: tuple[Body, ...] = ()
    """The CRDs in the crds/ folder of that chart."""
    patches: bool = False
    """Whether it only patches an object of another owner (`NamespacePatch`)."""
    auto_named: bool = False
    taken_ready: bool = False
    """Nothing in the cluster acts on its kind: what it waits for is assumed to happen."""
    unrendered: str = ""
    """Helm's error for its chart while the CRDs in `after` are missing in the cluster."""
    after: tuple[Ref, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    """Objects that its chart omits while CRDs of the program are missing in the cluster."""
    generated: tuple[Generated, ...] = ()
    """Secrets of a Release's chart whose values are random."""

    @property
    def is_component(self) -> bool:
        return not self.custom


class Program(Struct, frozen=True, omit_defaults=True):
    """Everything a program registers, in order."""

    project: str
    registrations: tuple[Registration, ...]
    stack: str = ""
    unknown: tuple[str, ...] = ()
    """Values and calls that could not be resolved, each a sentence."""
    warnings: tuple[str, ...] = ()
    recorded: bool = False
    """Whether it was read from Pulumi's state: then `dependsOn` is not known, only the resulting dependencies."""
    absent: tuple[str, ...] = ()
    """Charts and kustomizations that are not on disk, each a sentence with the way to get it."""
    varies: bool = False
    """Whether another run registers other values, because a chart generates some on every render."""

    def find(self, urn: str) -> Registration | None:
        return next((one for one in self.registrations if one.urn == urn), None)


def effective(program: Program, registration: Registration) -> frozenset[str]:
    """The custom resources that must be done before this one starts: its direct and indirect dependencies.

    A remote component stands for everything in it. A child starts after the dependencies of its parent.
    """
    by_urn = {one.urn: one for one in program.registrations}
    inside = inside_of(program.registrations)
    found: set[str] = set()
    pending = [registration.urn]
    seen: set[str] = set()
    while pending:
        urn = pending.pop()
        if urn in seen or urn not in by_urn:
            continue
        seen.add(urn)
        one = by_urn[urn]
        parent = by_urn.get(one.parent)
        for other in (*one.dependencies, *((parent.urn,) if parent and parent.custom else ())):
            found.add(other)
            found.update(inside.get(other, ()))
            pending.extend((other, *inside.get(other, ())))
        if parent is not None and not parent.custom:
            pending.append(parent.urn)
    return frozenset(urn for urn in found if urn in by_urn and by_urn[urn].custom and urn != registration.urn)


def creating(program: Program, definition: Ref) -> Iterator[Registration]:
    """The resources that create a CRD: the CRD itself, or a Release with it in its chart."""
    for one in program.registrations:
        names = {name_of(body) for body in (*one.definitions, *one.contents)}
        if one.ref == definition or definition.name in names:
            yield one


def is_rendered_after(program: Program, chart: Registration, crds: Iterable[Ref]) -> bool:
    """Whether a chart is rendered only after its program has created these CRDs.

    A `v3.Chart` never is: the program renders it as soon as it runs. Helm creates the crds/ of a Release before.
    """
    if chart.type == CHART_V3:
        return False
    own = {name_of(body) for body in chart.definitions} if chart.type == HELM_RELEASE else set()
    before = effective(program, chart)
    return all(ref.name in own or any(one.urn in before for one in creating(program, ref)) for ref in crds)


def acted_on(program: Program, knows: Callable[[str, str], bool]) -> Program:
    """The program with its objects marked on which nothing acts; `knows` takes a kind and its group."""

    def is_left_alone(ref: Ref | None) -> bool:
        return ref is not None and "." in ref.group and not knows(ref.kind, ref.group)

    marked = (replace(one, taken_ready=is_left_alone(one.ref)) for one in program.registrations)
    return replace(program, registrations=tuple(marked))


def inside_of(registrations: Iterable[Registration]) -> dict[str, set[str]]:
    """The resources inside each component."""
    parents = {one.urn: one.parent for one in registrations}
    inside: dict[str, set[str]] = {}
    for urn in parents:
        for ancestor in _ancestors(urn, parents):
            inside.setdefault(ancestor, set()).add(urn)
    return inside


def _ancestors(urn: str, parents: dict[str, str]) -> Iterator[str]:
    seen = {urn}
    while (urn := parents.get(urn, "")) and urn not in seen:
        seen.add(urn)
        yield urn


def urn_of(stack: str, project: str, parent: str, type_: str, name: str) -> str:
    """As the engine builds them: the types of all parents except the stack, then its own."""
    around = parent.split("::")[2] if parent else ""
    qualified = f"{around}${type_}" if around and around != STACK else type_
    return f"urn:pulumi:{stack}::{project}::{qualified}::{name}"


def short(urn: str) -> str:
    """A short name: the last part of its type, and its name."""
    parts = urn.split("::")
    if len(parts) < 4:
        return urn
    type_ = parts[2].rpartition("$")[2]
    version = type_.split(":")[1].rpartition("/")[2] if type_ in (CHART_V3, CHART_V4) else ""
    word = type_.rpartition(":")[2]
    return f"{version}.{word} {parts[3]}" if version else f"{word} {parts[3]}"


def api_version_of(type_: str) -> tuple[str, str]:
    """The apiVersion and kind of a Kubernetes type token such as `kubernetes:apps/v1:Deployment`."""
    _, module, kind = (*type_.split(":"), "", "")[:3]
    return module.removeprefix("core/"), kind
