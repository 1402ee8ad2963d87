"""Prerequisites: objects that a release needs and does not contain. They are assumed to exist, and reported.

A rehearsal then fails only for what the release does, not for what the cluster was expected to have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from seatrial import kinds
from seatrial.graph import config_maps, edges, products_of
from seatrial.kinds import Kind, Need
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.operators import cert_manager, generated_crds, olm
from seatrial.kinds.operators.generic import is_description, operator_in
from seatrial.kinds.operators.manifests import crd_of, workloads
from seatrial.kinds.operators.starting import crds_created
from seatrial.kinds.operators.table import (
    OperatorKind,
    is_cluster_scoped,
    operator_kinds,
    plural_for,
    release_number,
    role_for,
    table,
    workload_of,
)
from seatrial.kinds.scripts.commands import ANY_RIGHT
from seatrial.kinds.scripts.program import ASSUMED_VALUE, stand_in
from seatrial.kinds.storage.volumes import GUESSED
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.tables.removed import REMOVED
from seatrial.model import lazy_re
from seatrial.model.program import short
from seatrial.model.release import Pin, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, metadata, name_of, ref_of, version_of
from seatrial.model.result import Prerequisite
from seatrial.plan.prerequisites.pinned import pin_for, pinned_operators

KUBERNETES_GROUPS = frozenset(group for group, _ in CATALOGUE)

ALL_RIGHTS = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
"""The rules of an assumed role: it allows whatever its subjects need."""

# Kinds that can be assumed with a minimal body without changing an outcome.
ASSUMED_BODIES: dict[tuple[str, str], Body] = {
    ("", "ConfigMap"): {"apiVersion": "v1", "data": {}},
    ("", "Secret"): {"apiVersion": "v1", "data": {}},
    ("", "ServiceAccount"): {"apiVersion": "v1", "metadata": {"annotations": {ANY_RIGHT: "assumed"}}},
    ("", "PersistentVolumeClaim"): {
        "apiVersion": "v1",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    (RBAC, "ClusterRole"): {"apiVersion": f"{RBAC}/v1", "rules": ALL_RIGHTS},
    (RBAC, "Role"): {"apiVersion": f"{RBAC}/v1", "rules": ALL_RIGHTS},
    ("scheduling.k8s.io", "PriorityClass"): {"apiVersion": "scheduling.k8s.io/v1", "value": 1000},
    ("storage.k8s.io", "StorageClass"): {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"annotations": {GUESSED: "expansion"}},
        "provisioner": "example.com/assumed",
        "allowVolumeExpansion": True,
    },
    ("node.k8s.io", "RuntimeClass"): {"apiVersion": "node.k8s.io/v1", "handler": "assumed"},
    ("networking.k8s.io", "IngressClass"): {
        "apiVersion": "networking.k8s.io/v1",
        "spec": {"controller": "example.com/assumed"},
    },
}
NAMED_ONLY: dict[tuple[str, str], Body] = {
    ("", "Namespace"): {"apiVersion": "v1"},
    ("", "Service"): {"apiVersion": "v1", "spec": {"ports": [{"port": 80}]}},
}
"""Bodies for objects that a program only reads by name."""
FLUX_KINDS = ("HelmRelease", "Kustomization")
NAME = lazy_re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_DATA_KEY = lazy_re.compile(r"\.data(?:\.((?:[-\w]|\\+\.)+)|\[\\*'([-.\w]+)\\*'\])")
BUILT_IN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
OPERATOR_NAMESPACE = "kube-system"
"""Where operators are assumed to run: a namespace that no release creates."""
SERVED_TOGETHER = {
    ("build.openshift.io", "BuildConfig"): ("build.openshift.io", "Build"),
    ("image.openshift.io", "ImageStream"): ("image.openshift.io", "ImageStreamTag"),
}
"""Kinds that are created from others: a cluster that serves the first also serves the second."""
ENGINE_OPERATORS = {"argocd": "argo-cd"}
"""By engine: the operator whose CRDs exist where it runs."""
NO_KINDS: Mapping[tuple[str, str], Kind] = MappingProxyType({})
BUILT_IN = {
    Ref("PriorityClass", "", "system-cluster-critical", "scheduling.k8s.io"),
    Ref("PriorityClass", "", "system-node-critical", "scheduling.k8s.io"),
}


def crds(
    releases: Iterable[Release],
    known: Iterable[Resource] = (),
    given: Iterable[Body] = (),
    *,
    deployed: bool = False,
    engine: str = "",
) -> list[tuple[Body, Prerequisite]]:
    """A CRD for every custom kind that is used and not defined: a `known` one, or a permissive one.

    `given` are the declared objects. For `deployed` releases, CRDs that operators generate already exist, and so do
    those of the engine's own package where OLM installs it. A permissive CRD serves all used versions, unless a release
    pins the chart of its operator: then those of that version.
    """
    several = list(releases)
    pins = pinned_operators(several)
    resources = [r for release in several for r in (*release.resources, *release.crds)]
    defined = {_defined(r.body) for r in resources} | {_defined(body) for body in given}
    if not deployed:
        generating = (r.body for r in resources if not _installs(r.body, ENGINE_OPERATORS.get(engine, "")))
        defined |= {_defined(crd) for body in generating for crd in generated_crds.crds_of(body)}
        settings = [r.body for r in resources if r.ref.kind == "ConfigMap"]
        defined |= {_defined(crd) for r in resources for crd in crds_created(r.body, settings)}
        defined |= {_described_key(name) for body in given for name in _generated(body)}
    found: dict[tuple[str, str], list[Resource]] = {}
    for resource in resources:
        if _is_custom(resource):
            found.setdefault((resource.ref.group, resource.ref.kind), []).append(resource)
    users = {
        _key(edge.need.object): edge.user for edge in edges(resources) if _key(edge.need.object) in operator_kinds()
    }
    users |= {SERVED_TOGETHER[key]: used[0] for key, used in found.items() if key in SERVED_TOGETHER}
    by_kind = {_defined(crd.body): crd for crd in known}
    return [
        _crd(key, found.get(key, []), by_kind.get(key), users.get(key), pins)
        for key in sorted({*found, *users})
        if key not in defined
    ]


def _installs(body: Body, operator: str) -> bool:
    """Whether OLM installs this operator for an object."""
    package = olm.package_of(body)
    return package is not None and package.name == operator


def _generated(given: Body) -> Iterable[str]:
    """The kinds whose CRDs a described operator creates, if the object describes one."""
    return operator_in(given).generates.values() if is_description(ref_in_cluster(given)) else ()


def _described_key(name: str) -> tuple[str, str]:
    kind, _, group = name.partition(".")
    return group, kind


def operators(releases: Iterable[Release], given: Iterable[Body] = ()) -> list[tuple[Body, Prerequisite]]:
    """Workloads of known operators that reconcile the used kinds and that no release installs."""
    resources = [r for release in releases for r in release.resources]
    bodies = (*(r.body for r in resources), *given)
    running = {(found[0].name, found[1].role) for body in bodies if (found := workload_of(body))}
    subscribed = (operator for r in resources if (operator := olm.package_of(r.body)))
    running |= {(operator.name, workload.role) for operator in subscribed for workload in operator.workloads}
    wanted: dict[tuple[str, str], Ref] = {}
    for user in (*(r.ref for r in resources), *(edge.need.object for edge in edges(resources))):
        for name, role in _reconcilers(_key(user)):
            wanted.setdefault((name, role), user)
    return [_workload(name, role, user) for (name, role), user in sorted(wanted.items()) if (name, role) not in running]


def namespaces(
    releases: Iterable[Release], assumed: Iterable[str], others: Sequence[tuple[Body, Prerequisite]] = ()
) -> Iterator[tuple[Body, Prerequisite]]:
    """The namespaces that are used and that no release creates; `others` are the other prerequisites."""
    given, wanted = list(releases), set(assumed)
    made = created_namespaces(given)
    used: dict[str, str] = dict.fromkeys(sorted(wanted), "the release is installed into it")
    for release in given:
        for resource in release.resources:
            used.setdefault(resource.ref.namespace, f"{resource.ref} is created in it")
    for body, prerequisite in others:
        used.setdefault(_home(body), f"{prerequisite.object} is assumed to be in it")
    for name in sorted(used):
        if name and name not in BUILT_IN_NAMESPACES and (name in wanted or name not in made):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            yield body, Prerequisite(f"Namespace/{name}", used[name])


def created_namespaces(releases: Iterable[Release]) -> set[str]:
    """The namespaces that releases contain, as regular resources or as hooks."""
    return {r.ref.name for release in releases for r in release.resources if r.ref.kind == "Namespace"}


def put_later(
    found: Iterable[tuple[Body, Prerequisite]], created: Iterable[str]
) -> Iterator[tuple[Body, Prerequisite]]:
    """The same prerequisites; those in a namespace that a step creates say so.

    They cannot be there before it, and a namespace that already exists changes what an install does.
    """
    names = set(created)
    for body, prerequisite in found:
        why = f"{prerequisite.why}; assumed as soon as the namespace exists"
        yield body, replace(prerequisite, why=why) if _home(body) in names else prerequisite


def objects(
    releases: Iterable[Release], given: Iterable[Body] = (), described: Mapping[tuple[str, str], Kind] = NO_KINDS
) -> list[tuple[Body, Prerequisite]]:
    """Objects that are needed by name and that no release creates; `described` are the kinds of a trial."""
    several = list(releases)
    resources = [resource for release in several for resource in release.resources]
    assumed = list(given)
    there = {resource.ref for resource in resources} | {ref_in_cluster(body) for body in assumed} | BUILT_IN
    there |= {hook.ref for release in several for hook in release.left_out}  # These are missing, not assumed.
    beside = config_maps(resources)
    there |= {product for resource in resources for product in products_of(resource, described, beside)}
    served = {_defined(body): _newest(body) for body in assumed if body.get("kind") == "CustomResourceDefinition"}
    wanted: dict[Ref, tuple[Resource, list[Need]]] = {}
    for edge in edges(resources):
        need = edge.need
        known = _key(need.object) in ASSUMED_BODIES or _key(need.object) in served
        known = known or (need.program and stand_in(need.object) is not None)
        if (
            known
            and not need.optional
            and not need.guess
            and need.object not in there
            and _may_exist(need.object, there)
        ):
            wanted.setdefault(need.object, (edge.user, []))[1].append(need)
    return [_assumed_object(ref, *wanted[ref], served) for ref in sorted(wanted) if not _is_created_by_kubernetes(ref)]


def used_by_programs(releases: Iterable[Release]) -> Iterator[tuple[Body, Prerequisite]]:
    """Existing objects that Pulumi programs read, patch or import, if their body can be assumed."""
    programs = [one for release in releases if release.program for one in release.program.registrations if one.ref]
    made = {one.ref for one in programs if not (one.reads or one.patches or one.options.imports)}
    for one in programs:
        if one.ref is None or one.object is None or one.ref in made or one.ref.name in BUILT_IN_NAMESPACES:
            continue
        does = "reads it" if one.reads else "patches it" if one.patches else "imports it"
        assumed = ASSUMED_BODIES.get(_key(one.ref)) or NAMED_ONLY.get(_key(one.ref))
        known = one.object if one.options.imports else assumed
        if known is not None:
            meta = {key: value for key, value in metadata(one.object).items() if key in ("name", "namespace")}
            body = {**known, "kind": one.ref.kind, "metadata": {**metadata(known), **meta}}
            yield body, Prerequisite(str(one.ref), f"{short(one.urn)} {does}")


def default_storage(releases: Iterable[Release]) -> Iterator[Prerequisite]:
    """The default StorageClass, if a PVC has no storageClassName."""
    for release in releases:
        for resource in release.resources:
            claims = [resource.body] if resource.ref.kind == "PersistentVolumeClaim" else []
            claims += (
                listed(resource.body, "spec", "volumeClaimTemplates") if resource.ref.kind == "StatefulSet" else []
            )
            if any("storageClassName" not in (claim.get("spec") or {}) for claim in claims):
                yield Prerequisite(
                    "StorageClass (default)", f"{resource.ref} requests storage without a storageClassName"
                )
                return


def _is_custom(resource: Resource) -> bool:
    """Whether a CRD could define its kind: not a kind that Kubernetes serves or served."""
    group, version = resource.ref.group, version_of(str(resource.body.get("apiVersion", "")))
    return group not in KUBERNETES_GROUPS and (group, version, resource.ref.kind) not in REMOVED


def _may_exist(ref: Ref, there: set[Ref]) -> bool:
    """Whether the cluster may have this object.

    It has no object with an invalid name, such as an unrendered template, and no Kustomization of Flux whose name is
    that of a HelmRelease in the input: then the reference has the wrong kind.
    """
    valid = ref.group == RBAC or NAME.fullmatch(ref.name) is not None
    same_name = (r for r in there if r.name == ref.name and r.kind in FLUX_KINDS)
    return valid and not (ref.kind in FLUX_KINDS and any(r.kind != ref.kind for r in same_name))


def _is_created_by_kubernetes(ref: Ref) -> bool:
    return (ref.kind, ref.name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")) or not ref.name


def _assumed_object(
    ref: Ref, user: Resource, needs: list[Need], served: Mapping[tuple[str, str], str]
) -> tuple[Body, Prerequisite]:
    meta = {"name": ref.name, "namespace": ref.namespace} if ref.namespace else {"name": ref.name}
    usual = ASSUMED_BODIES.get(_key(ref)) or stand_in(ref)
    usual = usual or {"apiVersion": f"{ref.group}/{served[_key(ref)]}", "spec": {}}
    body: Body = {**usual, "kind": ref.kind, "metadata": {**(usual.get("metadata") or {}), **meta}}
    keys = sorted({need.key for need in needs if need.key})
    data = dict.fromkeys(keys, "")
    if ref.kind in ("ConfigMap", "Secret") and any(need.program for need in needs):
        data |= dict.fromkeys(_keys_asked_for(user) or ["assumed"], ASSUMED_VALUE)
    if data:
        body["data"] = data
    named = f" (keys {', '.join(keys)})" if keys else ""
    return body, Prerequisite(f"{ref}", f"{user.ref} needs it{named}")


def _keys_asked_for(user: Resource) -> list[str]:
    """The keys of Secrets and ConfigMaps that a script reads: `{.data.password}`, `{.data['tls.crt']}`."""
    text = str(dig(user.body, "spec"))
    return sorted({(plain or quoted).replace("\\", "") for plain, quoted in _DATA_KEY.findall(text)})


def _crd(
    key: tuple[str, str],
    used: list[Resource],
    known: Resource | None,
    user: Resource | None,
    pins: Mapping[str, Pin],
) -> tuple[Body, Prerequisite]:
    group, kind = key
    versions = sorted({str(r.body.get("apiVersion", "")).rpartition("/")[2] for r in used})
    pin = pin_for(key, versions, pins)
    namespaced = bool(used[0].ref.namespace) if used else True
    release = pin.version if pin else ""
    body = known.body if known else _permissive_crd(group, kind, versions, namespaced=namespaced, release=release)
    if used:
        served = ", ".join(f"{group}/{version}" for version in versions)
        why = f"{used[0].ref} is of this kind ({served} must be served)"
    else:
        why = f"{user.ref if user else 'an object'} needs an object of this kind"
    operator = operator_kinds()[key][0].name if key in operator_kinds() else ""
    crd = f"CustomResourceDefinition/{name_of(body)}"
    return body, Prerequisite(crd, why + _installed_by(key, versions, pin), brought_by=operator)


def _installed_by(key: tuple[str, str], versions: list[str], pin: Pin | None) -> str:
    """The operator that installs a CRD, and its release or until which release it serves the used versions."""
    if key not in operator_kinds():
        return ""
    operator, kind = operator_kinds()[key]
    if pin is not None:
        verb = "installs" if pin.installed else "is assumed to install"
        return f"; {operator.name} {pin.version} {verb} it ({pin.source})"
    ended = [f"{v.name} before {'.'.join(map(str, v.until))}" for v in kind.versions if v.name in versions and v.until]
    return f"; {operator.name} installs it" + (f" ({', '.join(ended)})" if ended else "")


def _permissive_crd(group: str, kind: str, versions: list[str], *, namespaced: bool, release: str = "") -> Body:
    """A CRD that accepts any object of this kind: in the versions of a release, or in these, or in the newest."""
    if (group, kind) in operator_kinds():
        operator, known = operator_kinds()[group, kind]
        served = known.served(release_number(release, operator)) if release else ()
        if served:
            return crd_of(known, served, known.stored(release_number(release, operator)))
        names = versions or list(known.served(release_number("", operator)))[-1:]
        return crd_of(known, names, names[-1])
    unknown = OperatorKind(group, kind, plural_for(group, kind), namespaced, (), ("status",), ())
    return crd_of(unknown, versions, versions[0])


def _reconcilers(key: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The known operator that reconciles a kind, and its role."""
    behaves = key in kinds.known() and kinds.known()[key].behave is not kinds.inert
    operator = operator_kinds()[key][0] if key in operator_kinds() else None
    if operator is None or not behaves or operator.platform:
        return
    role = role_for(operator, key[0])
    if any(workload.role == role for workload in operator.workloads):
        yield operator.name, role
        if key[1] == "Certificate" and operator.name == cert_manager.OPERATOR:
            yield operator.name, "injector"


def _workload(name: str, role: str, user: Ref) -> tuple[Body, Prerequisite]:
    operator = table()[name]
    index = next(i for i, workload in enumerate(operator.workloads) if workload.role == role)
    body = list(workloads(operator, "", OPERATOR_NAMESPACE))[index]
    workload = operator.workloads[index].name
    installed = name if workload == name else f"{name} ({workload})"
    usual = f"{body['kind']}/{operator.namespace}/{workload}"
    return body, Prerequisite(usual, f"it reconciles {user}", operator=installed, brought_by=name)


def _home(body: Body) -> str:
    return str(metadata(body).get("namespace") or "")


def _key(ref: Ref) -> tuple[str, str]:
    return ref.group, ref.kind


def _defined(crd: Body) -> tuple[str, str]:
    """The kind that a CRD defines; for any other object, a kind that does not exist."""
    if crd.get("kind") != "CustomResourceDefinition":
        return "", ""
    return str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))


def _newest(crd: Body) -> str:
    served = [str(v.get("name")) for v in listed(crd, "spec", "versions") if v.get("served")]
    return served[-1] if served else ""


def ref_in_cluster(body: Body) -> Ref:
    group, kind = group_of(str(body.get("apiVersion"))), str(body.get("kind"))
    return ref_of(body, namespaced=not is_cluster_scoped(group, kind), namespace="default")


def platform_crds(written: Iterable[Resource]) -> Iterator[Body]:
    """The CRDs of given objects whose kinds a platform serves, such as an ImageStreamTag of OpenShift."""
    for key in sorted({_key(resource.ref) for resource in written}):
        if key in operator_kinds() and operator_kinds()[key][0].platform:
            operator, kind = operator_kinds()[key]
            release = release_number("", operator)
            yield crd_of(kind, kind.served(release), kind.stored(release))


def from_api_versions(api_versions: Iterable[str], served: Iterable[str]) -> Iterator[Body]:
    """CRDs that make the cluster serve `--api-versions g/v/Kind`."""
    there = set(served)
    for entry in api_versions:
        parts = entry.split("/")
        if len(parts) == 3 and entry not in there:
            group, version, kind = parts
            yield _permissive_crd(group, kind, [version], namespaced=True)
